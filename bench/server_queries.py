"""The queries that `bench server_search` asks, class by class, drawn from what the database holds."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable

from psycopg import Connection


def classes(
    connection: Connection, tokens: Counter[str], options: argparse.Namespace
) -> dict[str, list[str]]:
    """Queries of each class, drawn from what is there."""
    rng = random.Random(f"queries/{options.seed}")
    counted = [(term, count) for term, count in tokens.items() if term.isascii() and len(term) > 1]
    words = [(term, count) for term, count in counted if term.isalpha()]
    everything = options.messages

    def some(choose: Callable[[int], bool], least: int = 2) -> list[str]:
        found = [term for term, count in words if choose(count) and len(term) >= least]
        return rng.choices(found, k=options.queries) if found else []

    said = [
        stream
        for (stream,) in connection.execute(
            "SELECT stream FROM search_texts TABLESAMPLE SYSTEM (1) REPEATABLE (1) LIMIT 4000"
        )
    ]
    common = some(lambda count: count > everything // 20)
    medium = some(lambda count: everything // 5000 < count <= everything // 20)
    wide = some(lambda count: count > everything // 2000, 5)
    shas = [
        term
        for term, _ in counted
        if len(term) >= 12 and not term.isalpha() and set(term) <= set("0123456789abcdef")
    ]
    return {
        "rare word": some(lambda count: count <= 10, 5),
        "medium word": medium,
        "common word": common,
        "two words": [
            f"{a} {b}" for a, b in zip(medium, some(lambda count: count > everything // 500), strict=True)
        ],
        "two common words": [f"{a} {b}" for a, b in zip(common, reversed(common), strict=True)],
        "phrase": [f'"{phrase}"' for phrase in _phrases(rng, said, options.queries)],
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
        "CJK": rng.choices(
            ["認証", "接続設定", "数据库", "会話", "テスト", "你好世界", "文字列"], k=options.queries
        ),
        "sha prefix": [sha[: rng.randrange(7, 12)] for sha in rng.choices(shas, k=options.queries)]
        if shas
        else [],
        "fragment": [f"~{word[1:-1]}" for word in some(lambda count: count <= everything // 100, 7)],
        "filters": [f"role:user {word}" for word in medium[:20]]
        + [f"after:30d {word}" for word in medium[:20]],
    }


def _phrases(rng: random.Random, said: list[str], count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        words = rng.choice(said).split(" ")
        at = rng.randrange(max(len(words) - 3, 1))
        chosen = words[at : at + 3]
        if len(chosen) == 3 and all(word.isalpha() and word.isascii() for word in chosen):
            found.append(" ".join(chosen))
    return found
