"""Side-by-side benchmarks: ours, the naive way and the peer, in one run, as ratios."""
