"""A PostgreSQL of raddle's own, for who names none: found, set up, started, shared and stopped."""
