"""The command line: git's habits, data on stdout, everything else on stderr."""
