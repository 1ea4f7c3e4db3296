"""Search on the server: words in PostgreSQL, found with the language and the answers of the local search."""
