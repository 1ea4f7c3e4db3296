"""Any Gemini CLI session, however tangled: read in goes or at once, nothing said is lost, repeated or out of reach."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.gemini_cli import GeminiCli
from tests.builders_gemini_cli import SESSION, GeminiSession, answer, as_text
from tests.property.growth import (
    kept_in_place,
    must_be_in_reach,
    must_grow_to_the_same,
    must_read_a_torn_line_when_it_is_whole,
    with_junk,
    words_in,
)
from tests.reading import named, read, same_thread

FILE = named(f"session-2026-06-03T08-00-{SESSION[:8]}.jsonl")

KINDS = (
    "typed typed says says calls calls results news begins back listed masked compact title repeat nameless bare"
    " late timeless"
).split()

Step = tuple[str, int]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 30)), min_size=1, max_size=30)


class Tangled:
    """A session made of steps. `words`: tokens that must be found. `chances`: forks there may be."""

    def __init__(self, steps: list[Step]) -> None:
        self.session = GeminiSession()
        self.words: set[str] = set()
        self.chances = 0
        self.is_compacted = False
        for kind, which in steps:
            getattr(self, f"_{kind}")(which)
        self.session.user(self._word())

    def _word(self) -> str:
        word = f"w{len(self.words)}w"
        self.words.add(word)
        return word

    def _typed(self, which: int) -> None:
        self.session.user(self._word())

    def _says(self, which: int) -> None:
        self.session.says(self._word() if which % 3 else "", thoughts=(self._word(),) if which % 2 else ())

    def _calls(self, which: int) -> None:
        if not self.session.records or self.session.records[-1]["type"] != "gemini":
            self.session.says()
        is_old = which % 2 and not self.is_compacted
        call = f"call_{which % 4}" if is_old else f"own_call_{len(self.words)}"
        if any(one["id"] == call for one in self.session.records[-1].get("toolCalls", ())):
            return
        response = None if which % 5 == 0 else {"output": self._word()}
        self.session.calls((call, "ls", {"path": self._word()}, response))

    def _results(self, which: int) -> None:
        last = [record for record in self.session.records if record["type"] == "gemini"][-1:]
        calls = [call for record in last for call in record.get("toolCalls", ())]
        parts = [
            call["result"][0] if "result" in call else answer(call["id"], "ls", {"output": ""})
            for call in calls
        ]
        if parts:
            self.session.results(*parts)

    def _news(self, which: int) -> None:
        self.session.record(("info", "warning", "error")[which % 3], self._word())

    def _begins(self, which: int) -> None:
        self.session.begins(f"/home/dev/{which % 3}")

    def _back(self, which: int) -> None:
        typed = [one["id"] for one in self.session.records if one["type"] == "user" and one["id"]]
        if typed:
            self.chances += 1
            self.session.goes_back_to(typed[which % len(typed)])

    def _listed(self, which: int) -> None:
        self.session.lists(self.session.records[which % 2 :])

    def _masked(self, which: int) -> None:
        masked: list[dict[str, Any]] = json.loads(json.dumps(self.session.records))
        for record in masked:
            record["content"] = record["content"] if which % 2 else ""
            for call in record.get("toolCalls", ()):
                call["result"] = [answer(call["id"], "ls", {"output": ""})]
        self.session.lists([record for record in masked if record["id"]])

    def _compact(self, which: int) -> None:
        self.session.records = [
            one for one in self.session.records if one["type"] != "user" or one["content"]
        ]
        self.is_compacted = True
        self.session.compacts(self._word(), kept=which % 4 + 1)

    def _title(self, which: int) -> None:
        self.session.change(summary=f"title {which}")

    def _repeat(self, which: int) -> None:
        line = self.session.lines[which % len(self.session.lines)]
        if b"$rewindTo" not in line and b'"id":""' not in line:
            self.session.lines.append(line)

    def _nameless(self, which: int) -> None:
        self.session.record("user", self._word(), id="")
        self.session.records.pop()

    def _bare(self, which: int) -> None:
        self.session.record("gemini", [{"text": self._word()}, {"text": self._word(), "thought": True}])

    def _late(self, which: int) -> None:
        if self.session.records and self.session.records[-1]["type"] == "gemini":
            self.session.records[-1]["tokens"] = {"input": which, "output": 1, "cached": 0}
            self.session.write(self.session.records[-1])

    def _timeless(self, which: int) -> None:
        self.session.write({"id": f"timeless {len(self.words)}", "type": "user", "content": self._word()})


@given(STEPS)
def test_every_word_is_said_exactly_once(steps: list[Step]) -> None:
    tangled = Tangled(steps)
    counts = words_in(read(GeminiCli(), FILE, tangled.session.data))
    assert counts == dict.fromkeys(tangled.words, 1)


@given(STEPS)
def test_every_turn_is_in_reach(steps: list[Step]) -> None:
    tangled = Tangled(steps)
    must_be_in_reach(read(GeminiCli(), FILE, tangled.session.data), heads=1 + tangled.chances)


@given(STEPS, st.lists(st.integers(0, 90), min_size=1, max_size=3))
def test_a_file_read_in_goes_gives_what_it_gives_at_once(steps: list[Step], cuts: list[int]) -> None:
    must_grow_to_the_same(GeminiCli(), FILE, Tangled(steps).session.lines, cuts)


@given(STEPS, st.data())
def test_a_torn_last_line_is_read_when_it_is_whole(steps: list[Step], data: st.DataObject) -> None:
    must_read_a_torn_line_when_it_is_whole(GeminiCli(), FILE, Tangled(steps).session.lines, data)


@given(STEPS, st.lists(st.tuples(st.integers(0, 90), st.binary(max_size=12)), max_size=4))
def test_damage_between_lines_costs_no_word(steps: list[Step], damage: list[tuple[int, bytes]]) -> None:
    tangled = Tangled(steps)
    found = words_in(read(GeminiCli(), FILE, with_junk(tangled.session.lines, damage)))
    assert tangled.words <= found.keys()


@given(STEPS, st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=12)), min_size=1, max_size=3))
def test_damage_in_a_document_costs_one_message_a_place(
    steps: list[Step], damage: list[tuple[int, bytes]]
) -> None:
    session = Tangled(steps).session
    lines = session.document()
    whole = read(GeminiCli(), FILE, b"\n".join(lines))
    found = read(GeminiCli(), FILE, b"\n".join(with_junk(lines, damage)))
    mine, theirs = ({message.id for message in one.thread.messages} for one in (whole, found))
    records = len(session.records)
    assert len(mine - theirs) <= 4 * len(damage) + (0 if records else 1)
    assert found.thread.tree.lost() == []


@given(STEPS, st.integers(1, 5))
def test_how_lines_are_handed_over_makes_no_difference(steps: list[Step], batch: int) -> None:
    lines = Tangled(steps).session.lines
    one = read(GeminiCli(), FILE, lines, batch=batch)
    other = read(GeminiCli(), FILE, lines, batch=1000)
    assert same_thread(one.thread, other.thread)


@given(STEPS, st.integers(0, 90))
def test_the_rest_of_a_file_is_joined_without_taking_anything_back(steps: list[Step], cut: int) -> None:
    for before, after in kept_in_place(GeminiCli(), FILE, Tangled(steps).session.lines, cut):
        assert before.content in after.content


@given(STEPS)
def test_a_copy_of_any_line_says_nothing_new(steps: list[Step]) -> None:
    session = Tangled(steps).session
    whole = read(GeminiCli(), FILE, session.data)
    changes = [as_text({"$set": {"messages": [one for one in session.records if one["id"]]}})]
    again = read(GeminiCli(), FILE, [*session.lines, *changes])
    assert again.thread.messages == whole.thread.messages
