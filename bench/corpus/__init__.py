"""A Claude Code home of any size, made up from a seed, in the statistical shape of real ones.

    python -m bench.corpus DIR --megabytes 350 --seed 1
    python -m bench.corpus DIR --preset many

Nothing in it was ever said by anyone. `plan` is the way in for programs; `shape` measures a home, made or
real.
"""
