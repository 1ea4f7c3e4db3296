"""A store of the published peer and a clone of ours meet at one remote: both read what the other wrote, for days."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.actions.memory.entries import EntryFiles, EntryLog, NewEntry, list_entries
from raddle.actions.memory.memories import get_memory
from raddle.actions.memory.runs import list_runs, read_run
from raddle.actions.memory.verifying import mend, verify
from raddle.model.memory.merge import conflicts_in
from tests.memory_clones import BRANCH, Clone, git, make_hub
from tests.peer_program import peer_python

pytestmark = pytest.mark.soak

Peer = Callable[..., str]


@pytest.fixture
def peer(tmp_path: Path, home: Path, pytestconfig: pytest.Config) -> Peer:
    """Run the peer's own command on its store."""
    program = peer_python(pytestconfig).with_name("redthread")
    (home / ".gitconfig").write_text(
        f"[user]\n name = peer\n email = peer@example.org\n[init]\n defaultBranch = {BRANCH}\n"
    )
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"), "COLUMNS": "200"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments, "--store", str(tmp_path / "theirs")],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
        )
        return done.stdout

    return run


@pytest.fixture
def ours(tmp_path: Path, peer: Peer) -> Clone:
    """A clone of ours of a store that the peer made and filled."""
    hub = make_hub(tmp_path / "hub.git")
    peer("init", "my-project", "--phases", "build,test")
    git("remote", "add", "origin", str(hub), cwd=tmp_path / "theirs")
    run_id = peer("run", "start").strip()
    (tmp_path / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (tmp_path / "note.md").write_text("# Releasing\n\nTag, then run.\n")
    peer("log", run_id, "build", "decision", '{"text": "keep the parser"}')
    peer("artifact", "add", run_id, "build", str(tmp_path / "crlf.txt"), "config")
    peer("memory", "write", "team", "release", str(tmp_path / "note.md"), "--description", "how", "--no-push")
    peer("sync")
    clone = Clone(tmp_path / "ours", hub)
    assert clone.sync().state == "in_step"
    return clone


def test_a_store_of_the_peer_opens_verifies_and_syncs_here(ours: Clone) -> None:
    (run,) = list_runs(ours.files).runs
    (entry,) = list_entries(EntryFiles(ours.files), run.run_id, type="decision").entries
    assert entry.payload == {"text": "keep the parser"}
    assert get_memory(ours.files, "team/release").text is not None


def test_what_the_peer_did_to_an_artifact_with_windows_line_ends_is_found_and_mended(ours: Clone) -> None:
    """It has git change them, so that the next clone's bytes are not those of the pointer."""

    def nothing(*_: object) -> str:
        return ""

    found = verify(ours.files, trouble=nothing).findings
    assert [one.path.rpartition("/")[2] for one in found] == [".gitattributes", "crlf.txt"]
    mended = mend(ours.files, trouble=nothing, earlier=lambda _: (), keep=nothing)
    assert mended.is_whole
    assert verify(ours.files, trouble=nothing).findings == ()
    ours.sync()
    assert git("cat-file", "-s", f"{BRANCH}:{found[1].path}", cwd=ours.root).strip() == "10"


def test_what_is_written_here_is_read_there(ours: Clone, peer: Peer) -> None:
    (run,) = list_runs(ours.files).runs
    EntryLog(ours.files, ours.writer).add(
        run.run_id, "build", NewEntry(type="note", payload={"text": "from us"})
    )
    ours.write("memory/team/ours", "# Ours\n\nwritten here\n")
    assert ours.sync().is_pushed
    peer("sync")
    assert "from us" in peer("read", run.run_id)
    assert "written here" in peer("memory", "read", "team", "ours")


def test_a_key_that_both_edited_wedges_neither(ours: Clone, peer: Peer, tmp_path: Path) -> None:
    """The peer pushes first, we merge; its own rebase then has nothing left to clash with."""
    ours.write("memory/team/release", "ours\n")
    (tmp_path / "note.md").write_text("theirs\n")
    peer("memory", "write", "team", "release", str(tmp_path / "note.md"))
    ours.sync()
    (conflict,) = conflicts_in(dict.fromkeys(ours.files.paths()))
    texts = {ours.text("memory/team/release"), ours.text(conflict)}
    assert any("ours" in text for text in texts)
    assert any("theirs" in text for text in texts)
    peer("sync")
    theirs = tmp_path / "theirs"
    assert (theirs / conflict).read_text() == ours.text(conflict)
    assert (theirs / "memory/team/release").read_text() == ours.text("memory/team/release")


def test_runs_of_both_go_on_in_the_other(ours: Clone, peer: Peer) -> None:
    theirs = peer("run", "start").strip()
    peer("sync")
    ours.sync()
    assert read_run(ours.files, theirs).status
