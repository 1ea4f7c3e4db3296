"""The outside world: disk, git, programs. Satisfies the ports of `raddle.actions` by shape."""
