"""Threads as the server holds them: one row a message, one a register, one for what lists ask."""
