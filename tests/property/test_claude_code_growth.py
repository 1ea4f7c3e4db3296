"""Any Claude Code session, however tangled: read in goes or at once, nothing said is lost or out of reach."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.claude_code import ClaudeCode
from tests.builders_claude_code import SESSION, ClaudeSession, calls, starts, thinks, uuid_of
from tests.property.growth import (
    TOKEN,
    kept_in_place,
    must_be_in_reach,
    must_grow_to_the_same,
    must_read_a_torn_line_when_it_is_whole,
    with_junk,
    words_in,
)
from tests.reading import named, read, same_thread

FILE = named(f"{SESSION}.jsonl")

KINDS = (
    "typed typed again notice says part part part call result result progress progress system compact replay "
    "repeat side side title summary bare dangling pictures queued timeless back moves"
).split()

Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 30), st.integers(0, 3)), min_size=1, max_size=40
)


class Tangled:
    """A session made of steps. `words`: tokens that must be found. `chances`: forks there may be."""

    def __init__(self, steps: list[Step]) -> None:
        self.session = ClaudeSession()
        self.words: set[str] = set()
        self.chances = 0
        self.uuids: list[str] = []
        self.main: list[str] = []
        for step in steps:
            self._take(*step)
        if not self.session.lines:
            self._take("typed", 0, 0)

    def _word(self) -> str:
        word = f"w{len(self.words)}w"
        self.words.add(word)
        return word

    def _earlier(self, which: int) -> str | None:
        return self.uuids[-1 - which % len(self.uuids)] if self.uuids else None

    def _take(self, kind: str, which: int, flag: int) -> None:
        session = self.session
        before = len(session.lines)
        last = session.last
        getattr(self, f"_{kind}")(which, flag)
        if len(session.lines) > before and session.last is not None and session.last != last:
            self.uuids.append(session.last)
        if kind == "side":
            session.last = last

    def _typed(self, which: int, flag: int) -> None:
        self.session.user(self._word())

    def _again(self, which: int, flag: int) -> None:
        self.chances += 1
        self.session.user(self._word(), under=self._earlier(which) if flag else None)

    def _notice(self, which: int, flag: int) -> None:
        self.session.user(f"<system-reminder>{self._word()}</system-reminder>", isMeta=bool(flag))

    def _says(self, which: int, flag: int) -> None:
        self.session.says(self._word(), out=flag)

    def _part(self, which: int, flag: int) -> None:
        block: Any = thinks(self._word()) if flag == 1 else self._word() if flag else "\n"
        self.session.says(block, message=f"msg_{which % 3}", out=which, under=self._earlier(0))

    def _call(self, which: int, flag: int) -> None:
        block = (
            starts(f"c{which}", self._word()) if flag == 1 else calls(f"c{which}", "Read", path=self._word())
        )
        self.session.says(block, message=f"msg_{which % 3}")

    def _result(self, which: int, flag: int) -> None:
        content: Any = "" if flag == 0 else [{"type": "text", "text": self._word()}]
        self.session.result(f"c{which}", content, under=self._earlier(which * flag))

    def _progress(self, which: int, flag: int) -> None:
        self.chances += bool(which * flag)  # what is typed under it is typed under an earlier turn
        self.session.progress(f"c{which}", under=self._earlier(which * flag))

    def _system(self, which: int, flag: int) -> None:
        self.session.line("system", subtype="informational", content=self._word() if flag else "")

    def _compact(self, which: int, flag: int) -> None:
        self.session.compacts(self._word())

    def _replay(self, which: int, flag: int) -> None:
        if self.session.lines:
            line = json.loads(self.session.lines[which % len(self.session.lines)])
            if "uuid" in line:
                line["uuid"] = uuid_of(f"replay {len(self.session.lines)}")
                self.session.bare(**line)
                self.session.last = line["uuid"]

    def _repeat(self, which: int, flag: int) -> None:
        if self.session.lines:
            self.session.lines.append(self.session.lines[which % len(self.session.lines)])

    def _side(self, which: int, flag: int) -> None:
        under = None if flag == 0 else self._earlier(which)
        self.session.user(self._word(), under=under, isSidechain=True)

    def _title(self, which: int, flag: int) -> None:
        kind, name = ("custom-title", "customTitle") if flag else ("ai-title", "aiTitle")
        self.session.bare(type=kind, sessionId=SESSION, **{name: f"title {which}"})

    def _summary(self, which: int, flag: int) -> None:
        self.session.bare(type="summary", summary=f"summary {which}", leafUuid=self._earlier(which) or "x")

    def _bare(self, which: int, flag: int) -> None:
        self.session.user(self._word(), without=("uuid", "parentUuid"))

    def _dangling(self, which: int, flag: int) -> None:
        self.session.says(self._word(), under=uuid_of(f"nobody {which}"))

    def _pictures(self, which: int, flag: int) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
        self.session.user([{"type": "image", "source": source}, {"type": "text", "text": self._word()}])

    def _queued(self, which: int, flag: int) -> None:
        self.session.line("attachment", attachment={"type": "queued_command", "prompt": self._word()})

    def _timeless(self, which: int, flag: int) -> None:
        self.session.says(self._word(), without=("timestamp",))

    def _moves(self, which: int, flag: int) -> None:
        field = ("cwd", "gitBranch", "version", "cwd")[flag]
        self.session.fields[field] = f"{field} {which % 3}"

    def _back(self, which: int, flag: int) -> None:
        self.session.says(self._word(), at=which)


@given(STEPS)
def test_every_word_is_said_exactly_once(steps: list[Step]) -> None:
    tangled = Tangled(steps)
    counts = words_in(read(ClaudeCode(), FILE, tangled.session.data))
    assert counts == dict.fromkeys(tangled.words, 1)


@given(STEPS)
def test_every_turn_is_in_reach(steps: list[Step]) -> None:
    tangled = Tangled(steps)
    must_be_in_reach(read(ClaudeCode(), FILE, tangled.session.data), heads=1 + tangled.chances)


@given(STEPS, st.lists(st.integers(0, 60), min_size=1, max_size=3))
def test_a_file_read_in_goes_gives_what_it_gives_at_once(steps: list[Step], cuts: list[int]) -> None:
    must_grow_to_the_same(ClaudeCode(), FILE, Tangled(steps).session.lines, cuts)


@given(STEPS, st.data())
def test_a_torn_last_line_is_read_when_it_is_whole(steps: list[Step], data: st.DataObject) -> None:
    must_read_a_torn_line_when_it_is_whole(ClaudeCode(), FILE, Tangled(steps).session.lines, data)


@given(STEPS, st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=12)), max_size=4))
def test_damage_between_lines_costs_no_word(steps: list[Step], damage: list[tuple[int, bytes]]) -> None:
    tangled = Tangled(steps)
    found = words_in(read(ClaudeCode(), FILE, with_junk(tangled.session.lines, damage)))
    assert tangled.words <= found.keys()


@given(STEPS, st.data())
def test_a_damaged_byte_costs_one_line_at_most(steps: list[Step], data: st.DataObject) -> None:
    tangled = Tangled(steps)
    lines = tangled.session.lines
    at = data.draw(st.integers(0, len(lines) - 1))
    place = data.draw(st.integers(0, len(lines[at]) - 1))
    byte = data.draw(st.sampled_from([b"\0", b"\xff", b'"', b"{", b"}", b"\\", b" "]))
    damaged = [*lines[:at], lines[at][:place] + byte + lines[at][place + 1 :], *lines[at + 1 :]]
    reading = read(ClaudeCode(), FILE, damaged)
    elsewhere = set(TOKEN.findall(b"\n".join([*lines[:at], *lines[at + 1 :]]).decode()))
    assert elsewhere & tangled.words <= words_in(reading).keys()
    assert reading.thread.tree.lost() == []


@given(STEPS, st.integers(1, 5))
def test_how_lines_are_handed_over_makes_no_difference(steps: list[Step], batch: int) -> None:
    lines = Tangled(steps).session.lines
    one = read(ClaudeCode(), FILE, lines, batch=batch)
    other = read(ClaudeCode(), FILE, lines, batch=1000)
    assert same_thread(one.thread, other.thread)


@given(STEPS, st.integers(0, 40))
def test_the_rest_of_a_file_is_joined_without_taking_anything_back(steps: list[Step], cut: int) -> None:
    for before, after in kept_in_place(ClaudeCode(), FILE, Tangled(steps).session.lines, cut):
        assert after.content.startswith(before.content)
