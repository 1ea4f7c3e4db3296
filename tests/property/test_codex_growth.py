"""Any Codex session, however it went: read in goes or at once, nothing said is lost, doubled or out of reach."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.codex import Codex
from tests.builders_codex import CodexSession, call_id, kept
from tests.property.growth import must_be_in_reach, must_grow_to_the_same, words_in
from tests.reading import named, read

KINDS = (
    "turn types types notice says says thinks call call result result tokens tokens again rollback compact error "
    "repeat settings named ends mixed header"
).split()

Step = tuple[str, int]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 5)), min_size=1, max_size=40)
AGES = st.sampled_from(("new", "plain"))


class Told:
    """A session made of steps. `words`: tokens that must be found. `rollbacks`: forks there may be."""

    def __init__(self, steps: list[Step], age: str) -> None:
        self.session = CodexSession(age=age)
        self.words: set[str] = set()
        self.rollbacks = 0
        self.session.meta()
        for kind, which in steps:
            getattr(self, f"_{kind}")(which)

    def _word(self) -> str:
        word = f"w{len(self.words)}w"
        self.words.add(word)
        return word

    def _turn(self, which: int) -> None:
        self.session.begin_turn(model=f"gpt-{which}")

    def _ends(self, which: int) -> None:
        self.session.end_turn()

    def _types(self, which: int) -> None:
        self.session.types(self._word())

    def _notice(self, which: int) -> None:
        self.session.user(f"<environment_context>{self._word()}</environment_context>")

    def _mixed(self, which: int) -> None:
        self.session.user(f"<skill>{self._word()}</skill>", self._word())

    def _says(self, which: int) -> None:
        self.session.says(self._word())

    def _thinks(self, which: int) -> None:
        self.session.thinks(*(self._word() for _ in range(which % 3)))

    def _call(self, which: int) -> None:
        name = f"{len(self.session.lines)}" if which else "short"
        self.session.calls(call_id(name) if which else "call_1", word=self._word())

    def _result(self, which: int) -> None:
        self.session.result(call_id(f"{len(self.session.lines)}"), self._word() if which else "")

    def _tokens(self, which: int) -> None:
        self.session.tokens(output_tokens=which)

    def _again(self, which: int) -> None:
        counts = [line for line in self.session.lines if b'"token_count"' in line]
        self.session.lines += counts[-1:]

    def _rollback(self, which: int) -> None:
        self.rollbacks += 1
        self.session.event("thread_rolled_back", num_turns=which)

    def _compact(self, which: int) -> None:
        texts = [json.loads(line)["payload"] for line in self.session.lines if b'"input_text"' in line]
        self.session.compacts(self._word(), *texts[-which:], kept("older"))

    def _error(self, which: int) -> None:
        self.session.event("error", message=self._word())

    def _repeat(self, which: int) -> None:
        lines = self.session.lines
        if self.session.age == "new" and b'"response_item"' in lines[-1]:
            lines.append(lines[-1])

    def _settings(self, which: int) -> None:
        settings = {"model": f"qwen-{which}", "model_provider_id": "local"}
        self.session.event("thread_settings_applied", thread_settings=settings)

    def _named(self, which: int) -> None:
        self.session.event("thread_name_updated", thread_id=self.session.session, thread_name=f"name {which}")

    def _header(self, which: int) -> None:
        self.session.meta(cwd=f"/home/dev/{which}")


@given(STEPS, AGES)
def test_every_word_is_said_exactly_once(steps: list[Step], age: str) -> None:
    told = Told(steps, age)
    reading = read(Codex(), named(told.session.name), told.session.data)
    assert words_in(reading) == dict.fromkeys(told.words, 1)
    assert reading.problems == []


@given(STEPS, AGES)
def test_every_turn_is_in_reach(steps: list[Step], age: str) -> None:
    told = Told(steps, age)
    reading = read(Codex(), named(told.session.name), told.session.data)
    must_be_in_reach(reading, heads=1 + 2 * told.rollbacks)


@given(STEPS, AGES, st.lists(st.integers(0, 60), min_size=1, max_size=3))
def test_a_file_read_in_goes_gives_what_it_gives_at_once(
    steps: list[Step], age: str, cuts: list[int]
) -> None:
    session = Told(steps, age).session
    must_grow_to_the_same(Codex(), named(session.name), session.lines, cuts)


@given(STEPS, AGES, st.data())
def test_a_fork_shares_every_message_that_it_copied(steps: list[Step], age: str, data: st.DataObject) -> None:
    session = Told(steps, age).session
    start = session.now + 600_000_000
    fork = CodexSession("019c2000-0000-7000-8000-000000000001", age=age, start=start)
    fork.meta(forked_from_id=session.session)
    for line in session.lines:
        record = json.loads(line)
        fork.line(record["type"], record["payload"], seconds=0.001)
    fork.now += 60_000_000
    fork.begin_turn()
    fork.types("and now?")
    one = read(Codex(), named(session.name), session.data)
    other = read(Codex(), named(fork.name), fork.data)
    ids = {message.id for message in other.thread.messages}
    assert {message.id for message in one.thread.messages} == ids - {other.message("and now?").id}
