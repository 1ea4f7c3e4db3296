"""Search over many threads, class by class of query, against reading every text; size, list and fresh process too.

    python -m bench search [--threads 10000] [--messages 500000] [--queries 300] [--folder DIR] [--reuse]

Times are of one call in a warm process, best messages and snippets included; the naive way is a search for the
lower-cased text in texts that lie in memory in lower case already, which flatters it. DIR keeps the index;
`--reuse` measures the one that lies there.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench.corpus.project import Project
from bench.corpus.words import Zipf, cjk_text, hex_text, prose
from bench.timing import Command, interleaved, load_line
from raddle.adapters.local_store.search_blocks import decompressed
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.clock import format_time
from raddle.model.threads.message import Message, ToolCall
from raddle.model.threads.search_fields import index_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import Source, ThreadSummary

NOW = 1_796_000_000_000_000
_DAY = 86_400_000_000
_PROJECTS = 24
_OPENING = 0.06
"""Share of the messages that a user wrote."""


class Corpus:
    """Threads in the shape of agents' sessions: much tool output, less of everything else.

    Held against 0.8 MB of real ones (in brackets): 150 words (137) and 17 parts of identifiers (9) in a kB of
    text, which zstd makes 0.29 (0.25) of itself in blocks of 64 kB; 770 bytes in a message (870).
    """

    def __init__(self, threads: int, messages: int, seed: int) -> None:
        self._rng = random.Random(f"search/{seed}")
        self._projects = [Project(f"search/{seed}", at, scale=1.0) for at in range(_PROJECTS)]
        drawn = [self._rng.lognormvariate(3.2, 1.2) for _ in range(threads)]
        self._logs: dict[str, Zipf] = {}
        scale = messages / sum(drawn)
        self._sizes = [max(int(each * scale), 2) for each in drawn]

    def __iter__(self) -> Iterator[tuple[ThreadSummary, list[Message]]]:
        rng = self._rng
        for number, size in enumerate(self._sizes):
            project = self._projects[min(int(rng.expovariate(0.25)), _PROJECTS - 1)]
            project.look_at(rng)
            start = NOW - int(rng.random() ** 2 * 400 * _DAY)
            sha = hex_text(rng, 40)
            messages = [
                self._message(project, f"{number}-{at}", start + at * 20_000_000, at) for at in range(size)
            ]
            yield self._summary(project, number, messages, sha), messages

    def _summary(self, project: Project, number: int, messages: list[Message], sha: str) -> ThreadSummary:
        return ThreadSummary(
            id=f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}",
            title=messages[0].content[:60],
            message_count=len(messages),
            created_at=messages[0].ts,
            last_activity_at=messages[-1].ts,
            workspace_root=project.root,
            git_branch=self._rng.choice(("main", "main", f"feature/{project.names.one(self._rng)}")),
            git_remote_url=f"github.com/dev/{project.name}",
            git_commits=(sha,),
            source=Source(agent="claude-code", session_id=str(number)),
            is_pinned=number % 500 == 0,
        )

    def _message(self, project: Project, message_id: str, at: int, place: int) -> Message:
        rng, share = self._rng, self._rng.random()
        stamp = format_time(at)
        if place == 0 or share < _OPENING:
            text = prose(rng, project.phrases, project.names, int(rng.lognormvariate(5.0, 0.8)))
            if rng.random() < 0.02:
                text += cjk_text(rng, 40)
            return Message(id=message_id, role="user", content=text, ts=stamp)
        if share < 0.5:
            said = prose(rng, project.phrases, project.names, int(rng.lognormvariate(4.5, 0.7)))
            thought = prose(rng, project.phrases, project.names, 260) if rng.random() < 0.2 else ""
            path = f"{project.root}/{project.paths(rng, 1)[0]}"
            command = f"git show {hex_text(rng, 12)}" if rng.random() < 0.05 else path
            call = ToolCall(
                id="c",
                tool_name=rng.choice(("Read", "Bash", "Edit", "Grep")),
                arguments_json={"path": command},
            )
            return Message(
                id=message_id,
                role="assistant",
                content=said if rng.random() < 0.6 else "",
                thinking=thought,
                tool_calls=(call,),
                ts=stamp,
            )
        return Message(id=message_id, role="tool", content=self._output(project), ts=stamp, tool_name="Read")

    def _output(self, project: Project) -> str:
        """What a tool said: a stretch of a file, what grep found in one, or a log."""
        rng = self._rng
        file = project.a_file(rng)
        length = int(min(rng.lognormvariate(2.3, 1.0), 300)) + 1
        first = 0 if rng.random() < 0.6 else rng.randrange(max(len(file.lines) - length, 1))
        kind = rng.random()
        if kind < 0.35:
            return file.numbered(first, first + length)
        if kind < 0.45:
            found = enumerate(file.lines[first : first + length], first)
            return "\n".join(f"{file.path}:{at}:{line}" for at, line in found)
        if kind < 0.55:
            return prose(rng, project.phrases, project.names, 45 * length)
        return "\n".join(self._log_of(project).draw(rng, length // 2 + 1))

    def _log_of(self, project: Project) -> Zipf:
        """What the project's tests and servers print: the same lines again and again."""
        if project.name not in self._logs:
            rng = self._rng
            said = prose(rng, project.phrases, project.names, 40_000).splitlines()
            names = project.names.draw(rng, len(said))
            lines = [
                f"{rng.choice(('ok', 'INFO', '---', 'WARN'))} {name}: {line}"
                for name, line in zip(names, said, strict=True)
            ]
            self._logs[project.name] = Zipf(lines, exponent=0.8)
        return self._logs[project.name]


def build(path: Path, options: argparse.Namespace) -> None:
    """Make the index, and say what it took."""
    start, cpu = time.perf_counter(), time.process_time()
    cutting = inserting = 0.0
    cutter = Cutter()
    with SearchIndex(path) as index:
        with index.bulk() as bulk:
            for summary, messages in Corpus(options.threads, options.messages, options.seed):
                before = time.process_time()
                rows = [index_row(message, cutter) for message in messages]
                between = time.process_time()
                bulk.add(summary.id, rows)
                bulk.finish(summary.id, summary)
                cutting += between - before
                inserting += time.process_time() - between
            before = time.process_time()
        inserting += time.process_time() - before
        index.finish_rebuild()
    print(
        f"made in {time.perf_counter() - start:.0f} s ({time.process_time() - cpu:.0f} CPU-s with the corpus):",
        end=" ",
    )
    print(f"cut {cutting:.1f} CPU-s, insert {inserting:.1f} CPU-s")


def texts_in(path: Path) -> list[str]:
    """Every message's text as the naive way has it: in lower case, in memory."""
    with sqlite3.connect(path) as sql:
        blocks = sql.execute("SELECT data FROM blocks ORDER BY first")
        return [
            "\n".join(message.texts).lower()
            for (data,) in blocks
            for message in decompressed(data)
            if message is not None
        ]


def terms_by_count(path: Path) -> list[tuple[str, int]]:
    """(term, messages that have it)."""
    with sqlite3.connect(path) as sql:
        return [
            (term, count)
            for term, count in sql.execute("SELECT term, doc FROM word_terms")
            if term < "\ue000"
        ]


def classes(path: Path, texts: list[str], options: argparse.Namespace) -> dict[str, list[str]]:
    """Queries of each class, drawn from what is there."""
    rng = random.Random(f"queries/{options.seed}")
    counted = [(term, count) for term, count in terms_by_count(path) if term.isascii() and len(term) > 1]
    words = [(term, count) for term, count in counted if term.isalpha()]
    everything = len(texts)

    def some(choose: Callable[[int], bool], least: int = 2) -> list[str]:
        found = [term for term, count in words if choose(count) and len(term) >= least]
        return rng.choices(found, k=options.queries) if found else []

    common = some(lambda count: count > everything // 20)
    medium = some(lambda count: everything // 5000 < count <= everything // 20)
    picked = [text for text in rng.choices(texts, k=options.queries * 12) if "/src/" in text]
    paths = [text[text.index("/src/") + 1 :].split()[0].split(":")[0].strip('",') for text in picked]
    wide = some(lambda count: count > everything // 2000, 5)
    shas = [
        term
        for term, _ in counted
        if len(term) >= 12 and not term.isalpha() and set(term) <= set("0123456789abcdef")
    ]
    cjk = ["認証", "接続設定", "数据库", "会話", "テスト", "你好世界", "검색", "文字列"]
    return {
        "rare word": some(lambda count: count <= 10, 5),
        "medium word": medium,
        "common word": common,
        "two words": [
            f"{one} {other}"
            for one, other in zip(medium, some(lambda count: count > everything // 500), strict=False)
        ],
        "two common words": [
            f"{one} {other}"
            for one, other in zip(common, some(lambda count: count > everything // 20), strict=False)
        ],
        "path": paths[: options.queries],
        "phrase": [f'"{phrase}"' for phrase in _phrases(rng, texts, options.queries)],
        "phrase, common words": [
            '"of the"',
            '"if the"',
            '"in the"',
            '"that is"',
            '"to the"',
            '"the of"',
            '"is a"',
        ],
        "prefix, 3 letters": [f"{word[:3]}*" for word in wide],
        "prefix, 5 letters": [f"{word[:5]}*" for word in wide],
        "CJK": rng.choices(cjk, k=options.queries),
        "sha prefix": [sha[: rng.randrange(7, 12)] for sha in rng.choices(shas, k=options.queries)]
        if shas
        else [],
        "fragment": [f"~{word[1:-1]}" for word in some(lambda count: count <= everything // 100, 7)],
        "filters": [f"role:user {word}" for word in medium[:20]]
        + [f"after:30d {word}" for word in medium[:20]],
    }


def _phrases(rng: random.Random, texts: list[str], count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        words = rng.choice(texts)[:400].replace("`", "").split()
        at = rng.randrange(max(len(words) - 3, 1))
        chosen = words[at : at + 3]
        if len(chosen) == 3 and all(word.isalpha() for word in chosen):
            found.append(" ".join(chosen))
    return found


def measure(index: SearchIndex, asked: dict[str, list[str]], texts: list[str], naive: int) -> None:
    """The table of times, in milliseconds: of the processor, which others' load does not move, and by the clock."""
    print(f"{'':24}{'':17}{'processor ms':>24}{'wall ms':>24}{'naive wall':>12}")
    heads = f"{'p50':>8}{'p99':>8}{'max':>8}"
    print(f"{'class':24}{'queries':>8}{'threads':>9}{heads}{heads}{'p50':>12}")
    for name, queries in asked.items():
        if not queries:
            continue
        for query in queries:  # a warm process has met the pages it reads
            index.search(query, now=NOW)
        walls, cpus, threads = [], [], []
        for query in queries:
            start, cpu = time.perf_counter(), time.process_time()
            answer = index.search(query, now=NOW)
            cpus.append(1e3 * (time.process_time() - cpu))
            walls.append(1e3 * (time.perf_counter() - start))
            threads.append(answer.total_threads)
        plain = [_naive(texts, query) for query in queries[:naive]]
        cells = "".join(f"{cell:8.1f}" for taken in (cpus, walls) for cell in _quantiles(taken))
        print(
            f"{name:24}{len(queries):8}{median(threads):9.0f}{cells}"
            + (f"{median(plain):12.0f}" if plain else "")
        )


def _quantiles(taken: list[float]) -> tuple[float, float, float]:
    """Median, 99th percentile, most."""
    ordered = sorted(taken)
    return median(ordered), ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)], ordered[-1]


def _naive(texts: list[str], query: str) -> float:
    words = [
        word.strip('"*~').lower()
        for word in (query.split() if '"' not in query else [query])
        if ":" not in word
    ]
    start = time.perf_counter()
    sum(1 for text in texts if all(word in text for word in words))
    return 1e3 * (time.perf_counter() - start)


def fresh_process(path: Path, query: str) -> None:
    """A search in a process of its own, beside an interpreter that does nothing, in turns."""
    program = (
        "import sys; from pathlib import Path; from raddle.adapters.local_store.search_index import SearchIndex;"
        "SearchIndex(Path(sys.argv[1])).search(sys.argv[2])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as compiled:
        environment["PYTHONPYCACHEPREFIX"] = compiled  # as an installed raddle has it
        commands = [
            Command(name="bare", argv=[sys.executable, "-c", "pass"], environment=environment),
            Command(
                name="search", argv=[sys.executable, "-c", program, str(path), query], environment=environment
            ),
        ]
        runs = interleaved(commands, rounds=15, warm_ups=2)
    more = median(
        1e3 * (other.wall - bare.wall) for bare, other in zip(runs["bare"], runs["search"], strict=True)
    )
    processor = median(
        1e3 * (other.cpu - bare.cpu) for bare, other in zip(runs["bare"], runs["search"], strict=True)
    )
    print(
        f"fresh process: {more:.0f} ms wall, {processor:.0f} ms of the processor, more than the bare interpreter"
    )


def main(arguments: list[str]) -> int:
    """Build or open the index, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench search", description=__doc__)
    parser.add_argument("--threads", type=int, default=2_000)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument(
        "--naive", type=int, default=2, help="queries of each class that are also asked the naive way"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="where the index is kept (default: a temporary folder)")
    parser.add_argument("--reuse", action="store_true", help="measure the index that lies there")
    parser.add_argument("--optimize", action="store_true", help="merge the index into one piece first")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="raddle-bench-") as temporary:
        path = Path(options.folder or temporary) / "search.sqlite3"
        if not options.reuse:
            path.unlink(missing_ok=True)
            build(path, options)
        with SearchIndex(path) as index:
            if options.optimize:
                start = time.perf_counter()
                index.optimize()
                print(f"optimized in {time.perf_counter() - start:.1f} s")
            texts = texts_in(path)
            size = sum(len(text.encode()) for text in texts)
            stored = sum(each.stat().st_size for each in path.parent.glob("search.sqlite3*"))
            print(f"{len(texts)} messages, {size / 1e6:.0f} MB of text;", end=" ")
            print(f"index {stored / 1e6:.0f} MB: {stored / size:.2f} of it")
            measure(index, classes(path, texts, options), texts, options.naive)
            start = time.perf_counter()
            listed = index.list()
            print(f"list of {len(listed)}: {1e3 * (time.perf_counter() - start):.0f} ms")
        fresh_process(path, "session token")
    print(load_line())
    return 0
