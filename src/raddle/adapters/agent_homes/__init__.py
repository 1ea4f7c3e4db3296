"""Where other agents keep their sessions, found and read; never written to."""
