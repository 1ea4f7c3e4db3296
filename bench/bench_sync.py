"""Sync: the first one of a whole import beside the peer's one-way push, and one turn in a short and in a long thread.

python -m bench sync [--corpus DIR] [--cache DIR] [--megabytes 350] [--turns 30]

A server puts words into its index after a push, when it has time: how long that takes is measured too. Server,
database and device are one machine's, over loopback HTTP; the peer pushes into another database of the same
PostgreSQL, over its socket. Its own import, which it needs first, is not counted; ours neither.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench import peer
from bench.corpus.plan import Plan, write_corpus
from bench.timing import load_line
from raddle.actions.sync.one_thread import push
from raddle.adapters.remote.http_hub import HttpHub
from raddle.adapters.remote.http_link import HttpLink
from raddle.config import load_config
from raddle.model.protocol.wire import encode_push, json_bytes
from raddle.server.embedded_pg.running import start
from raddle.wiring import open_stores
from raddle.wiring.syncing import Syncing

_SIZES = (10, 50_000)


class Device(NamedTuple):
    """A made-up machine of one person."""

    environment: dict[str, str]

    def run(self, *words: str, stdin: str = "") -> str:
        """What `raddle …` prints there."""
        argv = [sys.executable, "-m", "raddle", *words]
        done = subprocess.run(
            argv, env=self.environment, input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"raddle {' '.join(words)}: {done.stderr}")
        return done.stdout


def _environment(folder: Path, **more: str) -> dict[str, str]:
    (folder / "home").mkdir(parents=True, exist_ok=True)
    places = {
        f"RADDLE_{part.upper()}_DIR": str(folder / part) for part in ("data", "config", "state", "cache")
    }
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(folder / "home"), **places, **more}


@contextlib.contextmanager
def _serving(folder: Path, database: str) -> Iterator[tuple[str, str]]:
    """(The address of a server over `database`, a token of its one person)."""
    environment = _environment(folder, RADDLE_DATABASE_URL=database)
    operator = Device(environment)
    operator.run("serve", "user", "add", "ada")
    token = operator.run("serve", "token", "ada").strip()
    argv = [sys.executable, "-m", "raddle", "serve", "--port", "0"]
    server = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        for line in server.stderr:
            if line.startswith("listening on "):
                yield line.split()[-1], token
                break
        else:
            raise RuntimeError("the server does not start")
    finally:
        server.terminate()
        server.wait()


def _messages_in(device: Device) -> int:
    return sum(thread["message_count"] for thread in json.loads(device.run("list", "--all", "--json")))


def _first_sync(device: Device) -> tuple[float, int]:
    started = time.perf_counter()
    device.run("sync", "--json")
    return time.perf_counter() - started, _messages_in(device)


def _until_indexed(database: str) -> float:
    """Seconds from now until no message waits for the index any more."""
    started = time.perf_counter()
    with psycopg.connect(database, autocommit=True) as connection:
        while connection.execute("SELECT EXISTS (SELECT FROM search_waiting)").fetchone() == (True,):
            time.sleep(0.1)
    return time.perf_counter() - started


def _peer_push(program: str, claude: str, scratch: Path, database: str) -> tuple[float, int]:
    there = peer.Peer(program=program, claude_home=claude, home=str(scratch / "peer"))
    there.reset()
    environment = there.environment() | {
        "AGENTSVIEW_PG_URL": _as_url(database),
        "AGENTSVIEW_PG_ALLOW_INSECURE": "1",
        "AGENTSVIEW_PG_MACHINE": "bench",
    }
    subprocess.run([program, "sync"], env=environment, check=True, capture_output=True)
    started = time.perf_counter()
    done = subprocess.run(
        [program, "pg", "push", "--no-vectors"], env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"the peer's push: {done.stderr or done.stdout}")
    with psycopg.connect(database) as connection:
        schema = connection.execute(
            "SELECT table_schema FROM information_schema.tables WHERE table_name = 'messages'"
        ).fetchone()
        assert schema is not None
        counted = connection.execute(
            psycopg.sql.SQL("SELECT count(*) FROM {}.messages").format(psycopg.sql.Identifier(schema[0]))
        ).fetchone()
    assert counted is not None
    return seconds, int(counted[0])


def _as_url(database: str) -> str:
    parts = conninfo_to_dict(database)
    host = quote(str(parts["host"]), safe="")
    return f"postgres://{parts['user']}@/{parts['dbname']}?host={host}&port={parts['port']}&sslmode=disable"


def _one_turn(
    address: str, token: str, scratch: Path, turns: int
) -> list[tuple[int, float, int, float, float]]:
    """Of each size: messages, milliseconds, bytes of a push (median), and the processor's at both ends of the list."""
    rows = []
    config = load_config(_environment(scratch / "turns"))
    with open_stores(config) as stores, HttpHub(HttpLink(address, token)) as hub:
        sizes: list[int] = []
        real = hub.push

        def counted(thread_id: str, delta: object, epoch: str) -> object:
            sizes.append(len(json_bytes(encode_push(delta, epoch))))  # type: ignore[arg-type]
            return real(thread_id, delta, epoch)  # type: ignore[arg-type]

        hub.push = counted  # type: ignore[method-assign,assignment]
        work = Syncing(stores, hub, address)
        threads = []
        for size in _SIZES:
            with stores.threads.create() as editor:
                for number in range(size):
                    editor.append(
                        "user" if number % 2 else "assistant", f"turn {number} of a thread of {size}"
                    )
                threads.append(editor.thread.id)
            push(work.place, threads[-1])
        times: dict[str, list[float]] = {name: [] for name in threads}
        bytes_of: dict[str, list[int]] = {name: [] for name in threads}
        for number in range(turns):
            for name in threads:
                stores.threads.append(name, "user", f"one more, the {number}th")
                sizes.clear()
                started = time.perf_counter()
                push(work.place, name)
                times[name].append((time.perf_counter() - started) * 1000)
                bytes_of[name].append(sum(sizes))
        for size, name in zip(_SIZES, threads, strict=True):
            ordered = sorted(times[name])
            rows.append(
                (
                    size,
                    statistics.median(ordered),
                    int(statistics.median(bytes_of[name])),
                    ordered[0],
                    ordered[-1],
                )
            )
        work.bases.close()
    return rows


def main(arguments: list[str]) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench sync", description=__doc__)
    parser.add_argument("--corpus", help="a Claude home; made where it is not there")
    parser.add_argument("--cache", default=str(Path(tempfile.gettempdir()) / "raddle-bench"))
    parser.add_argument("--venv", help="where the peer is installed already")
    parser.add_argument("--megabytes", type=int, default=350)
    parser.add_argument("--turns", type=int, default=30)
    options = parser.parse_args(arguments)
    claude = options.corpus or str(Path(options.cache) / f"corpus-{options.megabytes}")
    if not Path(claude).exists():
        write_corpus(claude, Plan(megabytes=options.megabytes))
    program = (
        peer.program_in(options.venv) if options.venv else peer.install(str(Path(options.cache) / "peer"))
    )
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as name:
        scratch = Path(name)
        scratch.chmod(0o711)
        with start(scratch / "pg", roots_folder=scratch / "accounts") as running:
            for database in ("ours", "theirs"):
                with psycopg.connect(running.url, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {database} TEMPLATE raddle")
            with _serving(scratch / "server", make_conninfo(running.url, dbname="ours")) as (address, token):
                device = Device(
                    _environment(
                        scratch / "device",
                        CLAUDE_CONFIG_DIR=claude,
                        RADDLE_SERVER=address,
                        RADDLE_TOKEN=token,
                    )
                )
                device.run("import", "claude-code")
                seconds, messages = _first_sync(device)
                indexing = _until_indexed(make_conninfo(running.url, dbname="ours"))
                rows = _one_turn(address, token, scratch, options.turns)
            theirs, their_messages = _peer_push(
                program, claude, scratch, make_conninfo(running.url, dbname="theirs")
            )
    ours_rate, their_rate = messages / seconds, their_messages / theirs
    whole, whole_rate = seconds + indexing, messages / (seconds + indexing)
    print("| first sync | messages | seconds | messages/s | to the peer |\n|---|---|---|---|---|")
    print(f"| raddle | {messages:,} | {seconds:.1f} | {ours_rate:,.0f} | {ours_rate / their_rate:.1f}x |")
    print(
        f"| raddle, until every word is in the index | {messages:,} | {whole:.1f} | {whole_rate:,.0f}"
        f" | {whole_rate / their_rate:.1f}x |"
    )
    print(f"| {peer.PACKAGE} pg push | {their_messages:,} | {theirs:.1f} | {their_rate:,.0f} | 1.0x |\n")
    print("| one turn to a thread of | ms (median) | bytes | fastest | slowest |\n|---|---|---|---|---|")
    for size, median, sent, fastest, slowest in rows:
        print(f"| {size:,} | {median:.1f} | {sent} | {fastest:.1f} | {slowest:.1f} |")
    print(load_line())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
