"""raddle from Python: `raddle.record()` for programs that run agents, `raddle.open()` for those that read threads."""
