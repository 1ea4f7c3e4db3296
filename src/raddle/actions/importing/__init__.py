"""Other agents' sessions, read as threads: one importer a file, one registry, one run."""
