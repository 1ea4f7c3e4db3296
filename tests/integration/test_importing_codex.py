"""Codex's sessions on a whole machine: where they move to, and how they lie there."""

from __future__ import annotations

from pathlib import Path

import zstandard

from tests.builders_codex import a_short_session
from tests.builders_import import Machine, add, counts, write


def kept(machine: Machine, folder: str = "sessions/2026/02/01") -> Path:
    """A session where Codex keeps it."""
    session = a_short_session()
    path = machine.home / ".codex" / folder / session.name
    write(path, session.data)
    return path


def test_a_rollout_that_codex_compressed_is_the_session_it_was(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = kept(machine)
    machine.bring_in()
    before = machine.thread().whole()
    compressed = path.with_name(f"{path.name}.zst")
    compressed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    path.unlink()
    assert counts(machine.bring_in(), "codex") == (0, 0, 1, 0)
    assert machine.thread().whole() == before
    assert machine.source_of(compressed) == [zstandard.ZstdDecompressor().decompress(compressed.read_bytes())]
    assert counts(machine.bring_in(), "codex") == (0, 0, 1, 0)


def test_a_compressed_rollout_is_read_where_none_was_read_before(tmp_path: Path) -> None:
    machine, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
    path = kept(machine)
    machine.bring_in()
    write(
        other.home / ".codex" / "archived_sessions" / f"{path.name}.zst",
        zstandard.ZstdCompressor().compress(path.read_bytes()),
    )
    other.bring_in()
    assert other.thread().whole() == machine.thread().whole()


def test_a_session_that_codex_archived_goes_on_being_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = kept(machine)
    machine.bring_in()
    archived = machine.home / ".codex" / "archived_sessions" / path.name
    archived.parent.mkdir(parents=True)
    path.rename(archived)
    more = a_short_session()
    more.user("and then?")
    add(archived, more.data[len(a_short_session().data) :])
    machine.bring_in()
    assert machine.texts().count("and then?") == 1
    assert len(machine.threads()) == 1
