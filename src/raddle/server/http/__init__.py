"""What every route shares: how bodies are coded, how errors are told, who is asking."""
