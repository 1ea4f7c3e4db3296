"""Import of a whole home, and again with nothing new: ours, the peer, the naive way, interleaved in one run.

python -m bench import [--corpus DIR] [--cache DIR] [--megabytes 350] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench import peer
from bench.corpus.plan import Plan, write_corpus
from bench.timing import Command, interleaved, load_line, table


def _ours(home: Path, claude: str, name: str, *, fresh: bool) -> Command:
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home / "home"),
        "CLAUDE_CONFIG_DIR": claude,
        **{f"RADDLE_{part.upper()}_DIR": str(home / part) for part in ("data", "config", "state", "cache")},
    }

    def reset() -> None:
        shutil.rmtree(home, ignore_errors=True)
        (home / "home").mkdir(parents=True)

    argv = [sys.executable, "-m", "raddle", "import", "claude-code"]
    return Command(name=name, argv=argv, environment=environment, prepare=reset if fresh else None)


def main(arguments: list[str]) -> int:
    """Print two tables: from scratch, and again."""
    parser = argparse.ArgumentParser(prog="python -m bench import", description=__doc__)
    parser.add_argument("--corpus", help="a Claude home; made where it is not there")
    parser.add_argument("--cache", default=str(Path(tempfile.gettempdir()) / "raddle-bench"))
    parser.add_argument("--venv", help="where the peer is installed already")
    parser.add_argument("--megabytes", type=int, default=350)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    cache = Path(options.cache)
    claude = options.corpus or str(cache / f"corpus-{options.megabytes}")
    if not Path(claude).exists():
        write_corpus(claude, Plan(megabytes=options.megabytes))
    program = peer.program_in(options.venv) if options.venv else peer.install(str(cache / "peer"))
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as scratch:
        there = peer.Peer(program=program, claude_home=claude, home=str(Path(scratch) / "peer"))
        ours = Path(scratch) / "ours"
        naive = Path(scratch) / "naive"
        commands = [
            there.import_command(),
            _ours(ours, claude, "raddle", fresh=True),
            Command(
                name="naive",
                argv=[sys.executable, "-m", "bench.naive_import", claude, str(naive)],
                prepare=lambda: shutil.rmtree(naive, ignore_errors=True),
            ),
        ]
        print("from scratch; ratios are to the peer\n")
        print(table(interleaved(commands, rounds=options.rounds)))
        print("\nagain, nothing new\n")
        again = [there.again_command(), _ours(ours, claude, "raddle", fresh=False)]
        print(table(interleaved(again, rounds=max(options.rounds, 5))))
        print(load_line())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
