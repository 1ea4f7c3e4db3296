"""`python -m bench NAME …`: runs one benchmark; without a name, says which there are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run `bench.bench_NAME.main` with the rest of the arguments."""
    names = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    if not arguments or arguments[0] not in names:
        print("python -m bench NAME …, where NAME is one of:", ", ".join(names))
        return 2 if arguments else 0
    module = importlib.import_module(f"bench.bench_{arguments[0]}")
    result = module.main(arguments[1:])
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
