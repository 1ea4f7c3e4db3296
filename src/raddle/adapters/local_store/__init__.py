"""Threads on this machine: thread files, journals, the search index, the import ledger."""
