"""Side-by-side measurements: seeded inputs, a stopwatch for processes, and the peer to measure against."""
