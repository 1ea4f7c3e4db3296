"""A look at a whole memory: what is damaged is named, costs itself only, and comes back where it can."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.actions.memory.entries import EntryLog, NewEntry
from raddle.actions.memory.handoffs import publish_handoff
from raddle.actions.memory.runs import start_run
from raddle.actions.memory.verifying import Checked, mend, verify
from raddle.adapters.memory_repo.versions import contents_of
from raddle.model.errors import NewerFormat
from raddle.model.memory.artifact import Artifact, ArtifactIndex, encode_index
from raddle.model.memory.handoff import Handoff
from raddle.model.memory.repo_layout import (
    ATTRIBUTES_FILE,
    PROJECT_FILE,
    artifact_file,
    handoff_file,
    index_file,
    run_file,
)
from tests.memory_clones import Clone

CRLF = b"one\r\ntwo\r\n"


class Memory(Clone):
    """A whole memory with one of everything."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, None)
        self.begin("build", "test")
        self.run_id = start_run(self.files, self.writer).run_id
        log = EntryLog(self.files, self.writer)
        self.entry_ids = [
            log.add(self.run_id, "build", NewEntry(type="note", payload={"n": number})).entry_id
            for number in range(3)
        ]
        self.artifact = artifact_file(self.run_id, "build", "config", ".txt")
        self.files.add({self.artifact: CRLF})
        self.point(self.artifact)
        draft = Handoff(from_phase="build", run_id=self.run_id, headline="done", best_artifacts=("config",))
        publish_handoff(self.files, self.writer, draft)
        self.sync()

    def point(self, uri: str, backend: str = "inline") -> None:
        sha256 = hashlib.sha256(CRLF).hexdigest()
        pointer = Artifact(
            artifact_id="config",
            kind="config",
            sha256=sha256,
            size_bytes=len(CRLF),
            backend=backend,
            uri=uri,
            produced_by_phase="build",
        )
        index = ArtifactIndex(run_id=self.run_id, artifacts={"config": pointer})
        self.files.change(index_file(self.run_id), lambda _: encode_index(index))

    def entry(self, number: int) -> str:
        paths = self.files.paths(f"runs/{self.run_id}/phases/build/entries")
        return next(path for path in paths if self.entry_ids[number] in path)

    def put(self, path: str, data: bytes) -> None:
        """As a crash or another program leaves it."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def verified(self, trouble: str = "") -> Checked:
        return verify(self.files, trouble=lambda *_: trouble)

    def mended(self) -> tuple[Checked, dict[str, bytes]]:
        kept: dict[str, bytes] = {}

        def keep(path: str, data: bytes) -> str:
            kept[path] = data
            return "a safe place"

        checked = mend(
            self.files,
            trouble=lambda *_: "",
            earlier=lambda path: contents_of(self.root, path),
            keep=keep,
        )
        return checked, kept


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "store")


def test_a_whole_memory_has_no_finding(memory: Memory) -> None:
    checked = memory.verified()
    assert (checked.findings, checked.conflicts, checked.is_whole) == ((), (), True)


Damage = Callable[[Memory], tuple[str, str]]
"""Does some, and says which path and which word of the finding it comes to."""


def _empty_entry(memory: Memory) -> tuple[str, str]:
    memory.put(memory.entry(0), b"")
    return memory.entry(0), "empty"


def _half_an_entry(memory: Memory) -> tuple[str, str]:
    memory.put(memory.entry(1), (memory.root / memory.entry(1)).read_bytes()[:40])
    return memory.entry(1), "an entry"


def _a_run_of_nonsense(memory: Memory) -> tuple[str, str]:
    memory.put(run_file(memory.run_id), b"{[: nonsense")
    return run_file(memory.run_id), "run.yaml"


def _an_index_that_a_merge_of_lines_destroyed(memory: Memory) -> tuple[str, str]:
    path = index_file(memory.run_id)
    memory.put(path, b"<<<<<<< HEAD\n" + (memory.root / path).read_bytes())
    return path, "artifacts.index.json"


def _a_handoff_without_a_headline(memory: Memory) -> tuple[str, str]:
    path = handoff_file(memory.run_id, "build")
    memory.put(path, b"{}")
    return path, "handoff"


def _line_ends_changed(memory: Memory) -> tuple[str, str]:
    memory.put(memory.artifact, CRLF.replace(b"\r\n", b"\n"))
    return memory.artifact, "hash"


def _an_artifact_gone(memory: Memory) -> tuple[str, str]:
    (memory.root / memory.artifact).unlink()
    return memory.artifact, "missing"


def _line_ends_left_to_git(memory: Memory) -> tuple[str, str]:
    memory.put(ATTRIBUTES_FILE, b"* text=auto\n")
    return ATTRIBUTES_FILE, "bytes"


def _a_project_gone(memory: Memory) -> tuple[str, str]:
    (memory.root / PROJECT_FILE).unlink()
    return PROJECT_FILE, "missing"


_MENDED: tuple[Damage, ...] = (
    _empty_entry,
    _half_an_entry,
    _a_run_of_nonsense,
    _an_index_that_a_merge_of_lines_destroyed,
    _a_handoff_without_a_headline,
    _line_ends_changed,
    _an_artifact_gone,
    _line_ends_left_to_git,
    _a_project_gone,
)


@pytest.mark.parametrize("damage", _MENDED)
def test_damage_is_named_and_mended_and_nothing_is_thrown_away(memory: Memory, damage: Damage) -> None:
    before = memory.scan()
    path, word = damage(memory)
    held = memory.files.read(path)
    findings = memory.verified().findings
    assert [one.path for one in findings] == [path]
    assert word in findings[0].what
    checked, kept = memory.mended()
    assert checked.is_whole
    assert memory.verified().is_whole
    if path == ATTRIBUTES_FILE:
        assert memory.text(path) == "* -text\n* text=auto\n"
        return
    assert memory.scan() == before
    assert not held or kept == {path: held}


def test_an_empty_entry_that_was_never_committed_is_taken_out(memory: Memory) -> None:
    path = f"runs/{memory.run_id}/phases/build/entries/0009-01M8PZKM3QH82B3EHB38JW5D7M.json"
    memory.put(path, b"")
    checked, _ = memory.mended()
    assert [(one.path, one.done) for one in checked.findings] == [(path, "nothing was in it; it is removed")]
    assert memory.files.read(path) is None


def _an_unknown_artifact(memory: Memory) -> tuple[str, str]:
    path = handoff_file(memory.run_id, "build")
    memory.put(path, memory.text(path).replace('"config"', '"plot"').encode())
    return path, "'plot'"


def _an_entry_of_another_run(memory: Memory) -> tuple[str, str]:
    path = memory.entry(2)
    memory.put(path, memory.text(path).replace(memory.run_id, "01M8PZKM3KMAB0SYRHJ485PAMY").encode())
    return path, "elsewhere"


def _a_pointer_out_of_the_store(memory: Memory) -> tuple[str, str]:
    (memory.root / memory.artifact).unlink()
    memory.point("../../etc/passwd")
    return index_file(memory.run_id), "out of the store"


def _an_artifact_that_nothing_leads_to(memory: Memory) -> tuple[str, str]:
    path = artifact_file(memory.run_id, "build", "stray", ".txt")
    memory.put(path, b"x")
    return path, "no artifact leads to it"


def _a_phase_that_the_project_has_not(memory: Memory) -> tuple[str, str]:
    path = f"runs/{memory.run_id}/phases/deploy/summary.md"
    memory.put(path, b"x")
    return path, "phase 'deploy'"


def _a_name_that_windows_cannot_hold(memory: Memory) -> tuple[str, str]:
    memory.put("memory/team/aux.md", b"x")
    return "memory/team/aux.md", "name"


def _a_link(memory: Memory) -> tuple[str, str]:
    (memory.root / "memory/away").symlink_to("/etc")
    return "memory/away", "link"


def _a_stray_file(memory: Memory) -> tuple[str, str]:
    memory.put("notes.txt", b"x")
    return "notes.txt", "no part of a store"


@pytest.mark.parametrize(
    "damage",
    [
        _an_unknown_artifact,
        _an_entry_of_another_run,
        _a_pointer_out_of_the_store,
        _an_artifact_that_nothing_leads_to,
        _a_phase_that_the_project_has_not,
        _a_name_that_windows_cannot_hold,
        _a_link,
        _a_stray_file,
    ],
)
def test_what_a_person_has_to_look_at_is_named_and_left_alone(memory: Memory, damage: Damage) -> None:
    path, word = damage(memory)
    before = memory.scan()
    checked, kept = memory.mended()
    assert [one.path for one in checked.findings] == [path]
    assert word in checked.findings[0].what
    assert not checked.is_whole
    assert (memory.scan(), kept) == (before, {})


def test_a_blob_that_is_not_to_be_had_is_named(memory: Memory) -> None:
    (memory.root / memory.artifact).unlink()
    memory.point(f"rsync://local/{hashlib.sha256(CRLF).hexdigest()}", "rsync")
    assert memory.verified().is_whole
    (finding,) = memory.verified("is damaged").findings
    assert "config" in finding.what
    assert "is damaged" in finding.what


def test_a_store_from_the_future_is_not_looked_at(memory: Memory) -> None:
    memory.put(PROJECT_FILE, memory.text(PROJECT_FILE).replace("version: 1", "version: 2").encode())
    with pytest.raises(NewerFormat):
        memory.mended()
