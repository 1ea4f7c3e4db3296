"""The command line of the corpus: `python -m bench.corpus DIR --megabytes 350 --seed 1`."""

from __future__ import annotations

import argparse
import os
import sys
import time

from msgspec.structs import replace

from bench.corpus.plan import PRESETS, Plan, write_corpus


def _plan_of(options: argparse.Namespace) -> Plan:
    plan = PRESETS[options.preset]
    habits = replace(plan.habits, noise=options.noise)
    megabytes = plan.megabytes if options.megabytes is None else options.megabytes
    messages = plan.messages if options.megabytes is None else 0
    threads = plan.threads if options.threads is None else options.threads
    return Plan(megabytes=megabytes, messages=messages, threads=threads, seed=options.seed, habits=habits)


def main(arguments: list[str] | None = None) -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.corpus", description="Write a made-up Claude Code home."
    )
    parser.add_argument("directory")
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--megabytes", type=float, help="in place of the preset's size")
    parser.add_argument(
        "--threads", type=int, help="number of sessions; otherwise as many as real homes have"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--noise", type=int, default=0, help="a random sha or uuid for each N characters of output"
    )
    options = parser.parse_args(arguments)
    if os.path.isdir(options.directory) and os.listdir(options.directory):
        parser.error(f"{options.directory} is not empty")
    before = time.perf_counter()
    done = write_corpus(options.directory, _plan_of(options))
    seconds = time.perf_counter() - before
    sizes = f"{done.files} files, {done.threads} threads, {done.messages} messages, {done.bytes} bytes"
    sys.stdout.write(f"{sizes} in {seconds:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
