"""Real sessions, on machines that have them: each is given back to the byte, and with a turn more it is the same
thread with a turn more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from raddle.actions.threads import reply
from raddle.wiring.native_export import chunks_of, native_session
from tests.builders_import import Machine, write

pytestmark = pytest.mark.samples

_PLACES = {
    "claude-code": (".claude/projects/-p", ("*.jsonl",)),
    "codex": (".codex/sessions/2026/01/01", ("*.jsonl",)),
    "gemini": (".gemini/tmp/kiln/chats", ("*.jsonl", "*.json")),
}


def name_of(form: str, path: Path) -> PurePath:
    """Where the agent itself would keep such a file, below its folder."""
    name = path.name.removeprefix("machine2__")
    if form == "codex" and not name.startswith("rollout-"):
        name = f"rollout-{name}"
    if form == "gemini" and not name.startswith("session-"):
        name = f"session-{name}"
    if "subagents" in path.parts:
        return PurePath(*path.parts[path.parts.index("subagents") - 1 :])
    return PurePath(name)


def sessions(samples: Path, form: str) -> Iterator[tuple[Path, PurePath]]:
    folder, patterns = _PLACES[form]
    for path in sorted(path for pattern in patterns for path in (samples / form).rglob(pattern)):
        if (
            "subagents" not in path.parts
            and not path.name.endswith(".meta.json")
            and path.name != "projects.json"
        ):
            yield path, PurePath(folder) / name_of(form, path)


def brought_in(folder: Path, place: PurePath, data: bytes) -> Machine:
    machine = Machine(folder)
    write(machine.home / place, data)
    machine.bring_in()
    return machine


def exported(machine: Machine, form: str) -> tuple[bytes, int]:
    with machine.stores() as stores:
        session = native_session(stores, machine.thread(), form)
        return b"".join(chunks_of(stores, session.main)), session.added


@pytest.mark.parametrize("form", _PLACES)
def test_every_session_is_given_back_to_the_byte_and_goes_on(
    samples: Path, tmp_path: Path, form: str
) -> None:
    tried = 0
    for path, place in sessions(samples, form):
        data = path.read_bytes()
        machine = brought_in(tmp_path / f"{tried}", place, data)
        if not machine.threads():
            continue  # a file without a session: nothing to give back
        tried += 1
        assert exported(machine, form) == (data, 0), path
        with machine.stores() as stores:
            asked = reply(stores.threads, machine.thread().id, "one more — ‹青›")
            reply(stores.threads, machine.thread().id, "so it is", parent=asked.id, role="assistant")
        made, added = exported(machine, form)
        assert added == 2, path
        again = brought_in(tmp_path / f"{tried} again", place, made)
        assert again.thread().messages == machine.thread().messages, path
        assert exported(again, form) == (made, 0), path
    assert tried > 3
