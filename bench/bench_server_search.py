"""Search on the server over many messages in one PostgreSQL, class by class of query; beside it the plainest index.

    python -m bench server_search [--threads 20000] [--messages 1000000] [--queries 60] [--database URL] [--reuse]

The corpus is that of `bench search`, written with COPY by the functions that a push uses for its rows, in one person's
space: nothing is left to leave out. Times are of one call in a warm process, ranking, page of 20 and snippets
included. The plain way, on the first `--plain` threads of the same data (all of them unless told): one row a thread, a
GIN index over `to_tsvector('english', title || branch || conversation::text)`, `plainto_tsquery`, `ts_rank`, 20 rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg import Connection

from bench.bench_search import NOW, Corpus
from bench.server_queries import classes
from bench.timing import load_line
from raddle.model.clock import parse_time
from raddle.model.ids import MonotonicIds
from raddle.model.threads.message import Message
from raddle.model.threads.search_fields import header_of
from raddle.model.threads.summary import ThreadSummary
from raddle.server import rows
from raddle.server.embedded_pg.running import start
from raddle.server.search import answers, index, streams
from raddle.server.search.reading import Reader
from raddle.server.tables.migrating import migrate

_COPIED = {
    "threads": "space_id, id, number, owner_id, version, summary, last_activity, shown_count, message_count",
    "messages": "space_id, thread_id, id, seq, changed_version, size, body",
    "search_threads": "number, space, owner_id, activity, is_open, is_deleted, is_pinned, is_archived, has_removed,"
    " format",
    "search_headers": "number, space, stream, facts",
    "search_texts": "number, thread, message_id, space, block, tools_at, stream, extra",
    "search_rows": "number, place, at, fields, is_shown, part_of",
    "search_blocks": "number, thread, messages",
}
_BATCH = 100
"""Threads of one COPY."""


class Writer:
    """Copies threads into the tables; indexes come after."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        new_id = MonotonicIds()
        self.user, self.space = UUID(new_id()), UUID(new_id())
        connection.execute("INSERT INTO spaces (id, kind, name) VALUES (%s, 'personal', 'b')", (self.space,))
        connection.execute(
            "INSERT INTO users (id, name, personal_space) VALUES (%s, 'b', %s)", (self.user, self.space)
        )
        found = connection.execute(
            "INSERT INTO search_spaces (space_id) VALUES (%s) RETURNING number", (self.space,)
        ).fetchone()
        assert found is not None
        self.space_number = int(found[0])
        self._lines: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _COPIED}
        self._threads = self._rows = self._blocks = 0
        self.tokens: Counter[str] = Counter()
        self.bytes = 0
        self.cutting = 0.0

    def add(self, summary: ThreadSummary, messages: list[Message]) -> None:
        """One thread."""
        self._threads += 1
        number, activity = self._threads, parse_time(summary.last_activity_at) or 0
        before = time.process_time()
        made, _ = index.rows_of(messages, number, self.space_number)
        self.cutting += time.process_time() - before
        self._lines["threads"].append(
            (
                *(self.space, summary.id, number, self.user, 1, msgspec.json.encode(summary), activity),
                *(len(messages), len(messages)),
            )
        )
        for message in messages:
            body = rows.message_json(message)
            self.bytes += len(body)
            self._lines["messages"].append(
                (self.space, summary.id, message.id.encode(), message.order, 1, len(body), rows.packed(body))
            )
        self._lines["search_threads"].append(
            (
                number,
                self.space_number,
                self.user,
                activity,
                True,
                False,
                summary.is_pinned,
                False,
                False,
                streams.FORMAT,
            )
        )
        self._lines["search_headers"].append(
            (number, self.space_number, *streams.header_streams(header_of(summary)))
        )
        self._add_rows(number, made)
        if number % _BATCH == 0:
            self.flush()

    def _add_rows(self, number: int, made: list[index.Row]) -> None:
        of_block: dict[int, int] = {}
        for some in index.blocks_of(made):
            self._blocks += 1
            self._lines["search_blocks"].append((self._blocks, number, len(some)))
            of_block.update((id(row), self._blocks) for row in some)
        for row in made:
            first = self._rows + 1
            for part in row.parts:
                self._rows += 1
                self.tokens.update(set(part.stream.split(" ")))
                where = (self._rows, number, row.message_id, self.space_number, of_block.get(id(row)))
                place = number * index.AUDIENCES + row.audience
                part_of = first if len(row.parts) > 1 else None
                self._lines["search_texts"].append((*where, part.tools_at, part.stream, part.extra))
                self._lines["search_rows"].append((self._rows, place, row.at, row.fields, True, part_of))

    def flush(self) -> None:
        """Copy what waits."""
        for table, lines in self._lines.items():
            statement = f"COPY {table} ({_COPIED[table]}) FROM STDIN"
            with self.connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
                for line in lines:
                    copy.write_row(line)
            lines.clear()

    def terms(self) -> None:
        """Copy the vocabulary."""
        terms = {token.lstrip(streams.PIECE) for token in self.tokens}
        with (
            self.connection.cursor() as cursor,
            cursor.copy(b"COPY search_terms (space, term) FROM STDIN") as copy,
        ):
            for term in sorted(terms):
                if not "\ue000" <= term[:1] <= "\ue01f":
                    copy.write_row((self.space_number, term))


def build(connection: Connection, options: argparse.Namespace) -> None:
    """Fill the database, and say what it took."""
    connection.execute("DROP SCHEMA public CASCADE")
    connection.execute("CREATE SCHEMA public")
    connection.execute("CREATE EXTENSION pg_trgm")
    migrate(connection)
    later = [
        (name, definition.encode())
        for name, definition in connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            " AND tablename LIKE 'search%' AND indexdef NOT LIKE '%UNIQUE%'"
        )
    ]
    for name, _ in later:
        connection.execute(f"DROP INDEX {name}".encode())
    began = time.perf_counter()
    writer = Writer(connection)
    for summary, messages in Corpus(options.threads, options.messages, options.seed):
        writer.add(summary, messages)
    writer.flush()
    writer.terms()
    copied = time.perf_counter() - began
    print(
        f"{writer.bytes / 1e6:.0f} MB of messages copied in {copied:.0f} s,"
        f" of which cut {writer.cutting:.0f} CPU-s"
    )
    connection.execute("SET maintenance_work_mem = '512MB'")
    for name, definition in sorted(later, key=lambda each: b"gin" in each[1]):
        began = time.perf_counter()
        connection.execute(definition)
        if (took := time.perf_counter() - began) > 1:
            print(f"{name}: {took:.0f} s", flush=True)
    connection.execute("CREATE TABLE chosen (class text, query text)")
    with connection.cursor() as cursor:
        lines = [
            (name, query)
            for name, some in classes(connection, writer.tokens, options).items()
            for query in some
        ]
        cursor.executemany("INSERT INTO chosen VALUES (%s, %s)", lines)
    connection.execute("VACUUM ANALYZE")


def plain_index(connection: Connection, most: int) -> None:
    """The index over whole conversations, of the first `most` threads; what it refuses is left out, and said."""
    connection.execute("DROP TABLE IF EXISTS plain")
    connection.execute(
        "CREATE TABLE plain (id bigint, title text, branch text, conversation jsonb, words tsvector)"
    )
    began, refused = time.perf_counter(), 0
    threads = connection.execute(
        "SELECT number, space_id, id, summary FROM threads ORDER BY number LIMIT %s", (most,)
    ).fetchall()
    for number, space, thread, summary in threads:
        header = msgspec.json.decode(summary, type=ThreadSummary)
        said = [
            {"role": message.role, "content": message.content}
            for (body,) in connection.execute(
                "SELECT body FROM messages WHERE space_id = %s AND thread_id = %s ORDER BY seq",
                (space, thread),
            )
            for message in (rows.message_of(body),)
        ]
        conversation = json.dumps(said).replace("\\u0000", "")
        connection.execute(
            "INSERT INTO plain VALUES (%s, %s, %s, %s)",
            (number, header.title, header.git_branch, conversation),
        )
        try:
            connection.execute(
                "UPDATE plain SET words = to_tsvector('english', title || ' ' || branch || ' ' || conversation::text)"
                " WHERE id = %s",
                (number,),
            )
        except psycopg.errors.ProgramLimitExceeded:
            refused += 1
    connection.execute("CREATE INDEX plain_words ON plain USING gin (words)")
    connection.execute("VACUUM ANALYZE plain")
    took = time.perf_counter() - began
    print(
        f"the plain index: {len(threads)} threads in {took:.0f} s, of which it refused {refused}", flush=True
    )


def measure(connection: Connection, reader: Reader, has_plain: bool, least: int) -> None:
    """The table of times, in milliseconds."""
    chosen: dict[str, list[str]] = {}
    for name, query in connection.execute("SELECT class, query FROM chosen"):
        chosen.setdefault(name, []).append(query)
    heads = f"{'p50':>8}{'p99':>8}{'max':>8}"
    connection.execute("SET max_parallel_workers_per_gather = 0")  # whose processor time would not be seen
    print(f"{'':48}{'processor ms':>24}{'wall ms':>24}")
    print(f"{'class':24}{'queries':>8}{'threads':>9}{'whole':>7}{heads}{heads}{'plain p50':>12}{'p99':>8}")
    for name, queries in chosen.items():
        queries = queries[:least]
        for query in queries:
            answers.search(connection, reader, query, now=NOW)
        walls, cpus, threads, whole = [], [], [], 0
        for query in queries:
            began, cpu = time.perf_counter(), _processor(connection)
            answer = answers.search(connection, reader, query, now=NOW)
            walls.append(1e3 * (time.perf_counter() - began))
            cpus.append(1e3 * (_processor(connection) - cpu))
            threads.append(answer.total_threads)
            whole += answer.scope.is_complete
        plain = (
            [_plainly(connection, query) for query in queries[:20] for _ in range(2)][1::2]
            if has_plain
            else []
        )
        cells = "".join(f"{cell:8.1f}" for taken in (cpus, walls) for cell in _quantiles(taken))
        beside = f"{_quantiles(plain)[0]:12.1f}{_quantiles(plain)[1]:8.1f}" if plain else ""
        share = f"{100 * whole // len(queries)}%"
        print(f"{name:24}{len(queries):8}{median(threads):9.0f}{share:>7}{cells}{beside}", flush=True)
    walls = []
    cursor = ""
    for _ in range(50):
        began = time.perf_counter()
        page = answers.listed(connection, reader, limit=50, cursor=cursor)
        walls.append(1e3 * (time.perf_counter() - began))
        cursor = page.cursor
    print(f"{'list, 50 pages of 50':48}" + "".join(f"{cell:8.1f}" for cell in _quantiles(walls)))


def _processor(connection: Connection) -> float:
    """Seconds of the processor that this process and its server process took; others' load does not move them."""
    spent = Path(f"/proc/{connection.info.backend_pid}/schedstat")
    return time.process_time() + (int(spent.read_text().split()[0]) / 1e9 if spent.exists() else 0.0)


def _quantiles(taken: list[float]) -> tuple[float, float, float]:
    """Median, 99th percentile, most."""
    ordered = sorted(taken)
    return median(ordered), ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)], ordered[-1]


def _plainly(connection: Connection, query: str) -> float:
    words = " ".join(word.strip('"*~') for word in query.split() if ":" not in word)
    began = time.perf_counter()
    connection.execute(
        "SELECT id, title, ts_rank(words, plainto_tsquery('english', %(q)s)) AS rank FROM plain"
        " WHERE words @@ plainto_tsquery('english', %(q)s) ORDER BY rank DESC LIMIT 20",
        {"q": words},
    ).fetchall()
    return 1e3 * (time.perf_counter() - began)


def sizes(connection: Connection) -> None:
    """What lies on the disk."""
    for name, size in connection.execute(
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind = 'r' ORDER BY 2 DESC LIMIT 8"
    ):
        print(f"  {name}: {size / 1e6:.0f} MB with its indexes")
    for name, size in connection.execute(
        "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname IN"
        " ('search_rows_words', 'search_blocks_words', 'search_rows', 'search_blocks', 'plain_words')"
    ):
        print(f"  {name}: {size / 1e6:.0f} MB alone")


@contextlib.contextmanager
def a_database(url: str | None) -> Iterator[str]:
    """The database to fill: the one named, or one of its own that goes again."""
    if url is not None:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o711)
        running = start(folder / "data", None, roots_folder=folder / "accounts", is_durable=False)
        try:
            yield running.url
        finally:
            running.stop()


def main(arguments: list[str]) -> int:
    """Fill or take the database, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench server_search", description=__doc__)
    parser.add_argument("--threads", type=int, default=2_000)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--plain", type=int, help="threads that the plain index gets (default: all of them)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--database", help="a database that may be emptied (default: one that is started for it)"
    )
    parser.add_argument("--reuse", action="store_true", help="measure what lies in --database")
    options = parser.parse_args(arguments)
    with (
        a_database(options.database) as url,
        contextlib.closing(psycopg.connect(url, autocommit=True)) as connection,
    ):
        if not options.reuse:
            build(connection, options)
        has_plain = connection.execute("SELECT to_regclass('plain') IS NOT NULL").fetchone() == (True,)
        if options.plain != 0 and (options.plain or not has_plain):
            plain_index(connection, options.plain or options.threads)
        user, space = connection.execute("SELECT id, personal_space FROM users LIMIT 1").fetchone()  # type: ignore[misc]
        sizes(connection)
        measure(connection, Reader(user, (space,)), options.plain != 0, options.queries)
    print(load_line())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
