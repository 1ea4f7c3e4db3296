"""How long an agent waits for its server: from the start of `raddle mcp-serve` to the answer of `initialize`.

    python -m bench mcp [--rounds 9]

In turns: served by a daemon, in its own process, and an interpreter that does nothing but import the official SDK,
which is the least that a server of its own can take. Memory is that of the process once it has answered; what the
daemon grew by when the first agent came is told beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.timing import load_line

_PROMISED_SECONDS = 0.2
_PATIENCE_SECONDS = 60.0
_SDK = "python -c 'import mcp…'"
_IMPORT = "import mcp.server.stdio, mcp.server.lowlevel, os; os.write(1, b'{}\\n'); os.read(0, 1)"
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


class Start(NamedTuple):
    """One start: seconds to the answer, and the process's memory then in MB."""

    seconds: float
    megabytes: float


def main(arguments: list[str]) -> int:
    """Print a line for each way to be served."""
    parser = argparse.ArgumentParser(prog="python -m bench mcp", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    raddle = [sys.executable, "-P", "-m", "raddle"]
    ways = {
        "mcp-serve, a daemon runs": [*raddle, "mcp-serve"],
        "mcp-serve --no-daemon": [*raddle, "mcp-serve", "--no-daemon"],
        _SDK: [sys.executable, "-P", "-c", _IMPORT],
    }
    before = load_line()
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as folder:
        environment = _environment(Path(folder))
        daemon = subprocess.Popen([*raddle, "daemon"], env=environment, stdin=-3, stdout=-3, stderr=-3)
        try:
            _until_it_listens(Path(folder))
            alone = _megabytes(daemon.pid)
            first = _started(ways["mcp-serve, a daemon runs"], environment)
            served = _megabytes(daemon.pid)
            starts: dict[str, list[Start]] = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, argv in ways.items():
                    starts[name].append(_started(argv, environment))
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(_PATIENCE_SECONDS)
    print(f"{'':28}{'median':>9}{'best':>9}{'× the SDK':>11}{'MB':>7}")
    for name, found in starts.items():
        print(_line(name, found, starts[_SDK]))
    print(f"the first agent of a daemon waits {first.seconds * 1000:.0f} ms; the daemon grows from", end=" ")
    print(f"{alone:.0f} to {served:.0f} MB\npromised: under {_PROMISED_SECONDS * 1000:.0f} ms with a daemon")
    print(f"before: {before}; after: {load_line()}")
    return 0


def _environment(folder: Path) -> dict[str, str]:
    (folder / ".claude/projects").mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "PYTHONPATH"}}
    return {**kept, "HOME": str(folder)}


def _until_it_listens(folder: Path) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not list((folder / ".local/state/raddle").glob("mcp-*.sock")):
        if time.monotonic() > end:
            raise SystemExit("the daemon does not listen for agents")
        time.sleep(0.05)
    time.sleep(1.0)  # its first import, of nothing


def _started(argv: list[str], environment: dict[str, str]) -> Start:
    began = time.perf_counter()
    with subprocess.Popen(argv, env=environment, stdin=-1, stdout=-1, stderr=-3) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        if not process.stdout.readline():
            raise SystemExit(f"no answer of {argv}")
        seconds = time.perf_counter() - began
        return Start(seconds, _megabytes(process.pid))


def _megabytes(pid: int) -> float:
    """Resident memory; 0 where the system does not say so."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


def _line(name: str, own: list[Start], sdk: list[Start]) -> str:
    ratio = median(one.seconds / other.seconds for one, other in zip(own, sdk, strict=True))
    wall = [one.seconds * 1000 for one in own]
    size = median(one.megabytes for one in own)
    return f"{name:28}{median(wall):6.0f} ms{min(wall):6.0f} ms{ratio:11.2f}{size:7.0f}"
