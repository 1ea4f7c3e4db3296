"""Seeded vocabularies and the texts drawn from them: prose, names, code lines, shas, CJK, emoji.

Owns what a generated text is made of. A second place that made words would break the promise that one
seed gives one corpus, and the measured growth of its vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

COMMON = (
    "the to of a and in is that for it on with as this be not are or from at by an if we can will was has"
    " but have when which all so no there they then one only should would its now use also more into out up"
    " any each after before does you i let me see need because where what how same just these first both"
    " than other still here could two like already new while between without since over them once"
).split()

ROOTS = (
    "session auth token config request response client server handler error file path test build cache index"
    " query store sync merge branch commit message thread user agent tool result input output parse format"
    " read write load save open close start stop run task worker queue lock retry timeout limit offset page"
    " cursor table column row key value field schema record event stream buffer chunk line word text string"
    " number count size length total time date clock zone hash digest cipher secret login password cookie"
    " header body status code route path query template render view state action reducer store hook context"
    " provider module package import export version release tag patch diff hunk tree node edge graph parent"
    " child root leaf depth level scope policy rule guard filter sort order group batch window bucket shard"
    " replica leader follower election heartbeat socket packet frame stream channel pipe signal thread pool"
    " metric trace span log logger debug warn info panic recover fixture mock stub snapshot golden coverage"
    " lint type check verify validate assert expect migrate rollback seed backup restore archive compress"
    " encode decode marshal serialize escape quote split join trim pad align fold map reduce scan walk visit"
    " fetch push pull clone rebase squash stage stash worktree remote origin upstream mirror checkpoint draft"
    " invoice ledger payment order cart price currency account balance transfer receipt customer tenant org"
    " sensor reading device firmware gateway station tide harbour vessel route map tile layer zoom marker"
).split()

EMOJI = ("✅", "❌", "🚀", "⚠️", "🔍", "🧵", "📦", "🐛", "✨", "🔒")
CJK = (
    "認証 接続 設定 同期 履歴 検索 索引 保存 失敗 成功 会話 文字列 テスト ファイル エラー ブランチ 错误 修复"
    " 测试 数据库 连接 超时 配置 消息 用户 分支 提交 合并 你好 世界 메모리 동기화 검색 테스트 오류"
).split()
ADJECTIVES = (
    "quiet amber brisk hidden velvet copper silver wandering crystalline humming gentle stormy".split()
)
GERUNDS = "knitting drifting weaving spinning orbiting humming sailing mapping folding sorting".split()
ANIMALS = "heron otter lynx finch badger marmot gecko ibis newt raven tern vole".split()

_ONSETS = "b br c ch d dr f fl g gl h j k l m n p pl qu r s sh st t tr v w z".split()
_VOWELS = "a e i o u ai ea ou".split()
_CODAS = ("", "", "n", "r", "l", "s", "t", "m", "nd", "ck", "x")
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" * 4
_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz" * 4 + b"123456789ABCDEFGHJKLMNPQ"
_HOLD = 0.15


class Zipf:
    """Draws from `items` as a language does: the r-th with a weight of 1 / (r + shift) ** exponent."""

    def __init__(self, items: Sequence[str], exponent: float = 1.0, shift: float = 2.7) -> None:
        self.items = items
        self._cumulative = list(accumulate(1 / (rank + shift) ** exponent for rank in range(len(items))))

    def draw(self, rng: random.Random, count: int) -> list[str]:
        """`count` of the items."""
        return rng.choices(self.items, cum_weights=self._cumulative, k=count)

    def one(self, rng: random.Random) -> str:
        """One of the items."""
        return rng.choices(self.items, cum_weights=self._cumulative)[0]


def coined_words(rng: random.Random, count: int) -> list[str]:
    """`count` different pronounceable words of two to four syllables that mean nothing."""
    seen: dict[str, None] = {}
    while len(seen) < count:
        syllables = rng.choices((2, 3, 4), cum_weights=(5, 9, 10))[0]
        parts = [rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(syllables)]
        seen["".join(parts) + rng.choice(_CODAS)] = None
    return list(seen)


def identifier(rng: random.Random, words: Zipf, *, camel: bool) -> str:
    """A name as code has them, of one to three words: camelCase or snake_case, now and then the other."""
    parts = words.draw(rng, rng.choices((1, 2, 3), cum_weights=(3, 8, 10))[0])
    style = rng.random()
    if style < _HOLD:
        return "".join(part.capitalize() for part in parts)
    if camel or style > 1 - _HOLD:
        return parts[0] + "".join(part.capitalize() for part in parts[1:])
    return "_".join(parts)


def prose(rng: random.Random, phrases: Zipf, names: Zipf, length: int) -> str:
    """About `length` characters of sentences, some of their words names in backticks, in short paragraphs."""
    drawn = phrases.draw(rng, max(length // 15, 1))
    marked = names.draw(rng, len(drawn) // 6 + 1)
    for place, name in zip(range(rng.randrange(1, 6), len(drawn), 6), marked, strict=False):
        drawn[place] = f"`{name}`"
    sentences, at = [], 0
    ends = (". ", ". ", ". ", ": ", "; ", "? ", ".\n\n", ".\n- ", ":\n1. ")
    while at < len(drawn):
        until = at + 2 + int(rng.random() * 6)
        sentence = " ".join(drawn[at:until])
        sentences.append(sentence[:1].upper() + sentence[1:])
        sentences.append(ends[int(rng.random() * len(ends))])
        at = until
    sentences[-1] = "."
    return "".join(sentences)


def cjk_text(rng: random.Random, length: int) -> str:
    """About `length` characters of words in scripts without spaces, with full stops of their own."""
    out: list[str] = []
    for place, word in enumerate(rng.choices(CJK, k=max(length // 3, 3)), start=1):
        out.append(word)
        if place % 7 == 0:
            out.append("。")
    return "".join(out)


def hex_text(rng: random.Random, digits: int) -> str:
    """`digits` random hexadecimal digits: a commit, a digest."""
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def uuid_text(rng: random.Random) -> str:
    """A random UUID, version 4."""
    number = rng.getrandbits(128) & ~(0xF << 76) & ~(0b11 << 62) | 4 << 76 | 0b10 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def base64_text(rng: random.Random, length: int) -> str:
    """`length` random characters of the base64 alphabet, which no compressor makes smaller than 3/4."""
    return rng.randbytes(length).translate(_BASE64).decode("ascii")


def image_text(rng: random.Random, length: int) -> str:
    """A picture of about `length` characters in base64: it begins as a PNG does, the rest is noise."""
    return f"iVBORw0KGgoA{base64_text(rng, length // 4 * 4)}"


def api_id(rng: random.Random, prefix: str) -> str:
    """An id as the model's API gives them: `msg_01…`, `toolu_01…`, `req_01…`."""
    return f"{prefix}_01{rng.randbytes(22).translate(_BASE58).decode('ascii')}"
