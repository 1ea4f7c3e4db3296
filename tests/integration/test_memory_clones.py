"""Many clones of a memory write at once, offline and on: every entry is there, every clash is kept, all are equal."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import msgspec
import pytest

from raddle.model.memory.artifact import Artifact, ArtifactIndex, decode_index, encode_index
from raddle.model.memory.entry import ContextEntry, encode_entry
from raddle.model.memory.merge import conflicts_in
from raddle.model.memory.repo_layout import (
    artifact_file,
    entry_file,
    index_file,
    memory_file,
    run_file,
    summary_file,
)
from raddle.model.memory.run import Run, decode_run, encode_run
from raddle.model.memory.ulids import new_ulid
from tests.memory_clones import BRANCH, Clone, git, make_hub, settle

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
KEYS = ("plan", "notes/parser", "notes/lexer", "release")


class Story:
    """What the clones wrote, told by nothing but the writes."""

    def __init__(self, folder: Path, clones: int, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.hub = make_hub(folder / "hub.git")
        self.clones = [Clone(folder / f"node-{number}", self.hub) for number in range(clones)]
        self.entries: set[str] = set()
        self.tokens: dict[str, set[str]] = {}
        self.artifacts: set[str] = set()
        self.written = 0
        self.clones[0].begin("build", "test")
        self.clones[0].write(run_file(RUN), encode_run(Run(run_id=RUN, phases={"build": "pending"})).decode())
        settle(self.clones)

    def step(self) -> None:
        """One clone writes something, and syncs now and then."""
        clone = self.random.choice(self.clones)
        self.random.choice((self.add_entry, self.add_entry, self.add_line, self.add_artifact, self.set_run))(
            clone
        )
        self.written += 1
        if self.random.random() < 0.25:
            clone.sync()

    def add_entry(self, clone: Clone) -> None:
        """An entry of the run."""
        entry_id = new_ulid(clone.writer.new_id)
        entry = ContextEntry(
            entry_id=entry_id, run_id=RUN, phase="build", type="note", provenance=clone.writer.provenance()
        )
        path = entry_file(RUN, "build", self.random.randrange(9), entry_id)
        clone.files.add({path: encode_entry(entry)})
        self.entries.add(path)

    def add_line(self, clone: Clone) -> None:
        """A line in a memory or a summary, at its beginning or its end, as somebody who read the rest writes it."""
        path = (
            summary_file(RUN, "build")
            if self.random.random() < 0.2
            else memory_file("team", self.random.choice(KEYS))
        )
        token = f"token-{self.written}-{clone.writer.node_id}"
        at_end = self.random.random() < 0.5

        def change(old: bytes | None) -> bytes:
            text = (old or b"").decode()
            return (f"{text}{token}\n" if at_end else f"{token}\n{text}").encode()

        clone.files.change(path, change)
        self.tokens.setdefault(path, set()).add(token)

    def add_artifact(self, clone: Clone) -> None:
        """Small bytes under one of two ids, so that clones come upon the same."""
        data = f"bytes {self.written} of {clone.writer.node_id}".encode()
        artifact_id = self.random.choice(("config", "plot"))
        sha256 = hashlib.sha256(data).hexdigest()
        path = artifact_file(RUN, "build", artifact_id, ".txt")
        with clone.files.locked():
            index = clone.files.read(index_file(RUN))
            known = decode_index(index) if index else ArtifactIndex(run_id=RUN)
            if artifact_id in known.artifacts:
                return
            artifact = Artifact(
                artifact_id=artifact_id,
                kind="config",
                sha256=sha256,
                size_bytes=len(data),
                backend="inline",
                uri=path,
                produced_by_phase="build",
                created_ts=f"2026-11-30T12:00:00.{self.written:06d}Z",
            )
            clone.files.change(path, lambda _: data)
            grown = msgspec.structs.replace(known, artifacts={**known.artifacts, artifact_id: artifact})
            clone.files.change(index_file(RUN), lambda _: encode_index(grown))
        self.artifacts.add(sha256)

    def set_run(self, clone: Clone) -> None:
        """A status of the run or of a phase, onwards."""
        status = self.random.choice(("active", "done"))

        def change(old: bytes | None) -> bytes:
            assert old is not None
            run = decode_run(old)
            phases = {**run.phases, self.random.choice(("build", "test")): status}
            return encode_run(msgspec.structs.replace(run, phases=phases), old)

        clone.files.change(run_file(RUN), change)

    def force_push(self) -> None:
        """Somebody takes the hub's branch back by some commits."""
        commits = git("rev-list", BRANCH, cwd=self.hub).split()
        git("update-ref", f"refs/heads/{BRANCH}", commits[min(3, len(commits) - 1)], cwd=self.hub)

    def cut(self) -> Path:
        """The network is gone."""
        return self.hub.rename(self.hub.with_name("away.git"))

    def mend(self) -> None:
        """And back."""
        self.hub.with_name("away.git").rename(self.hub)

    def check(self) -> None:
        """Nothing is lost, nothing differs, nobody is needed."""
        settle(self.clones)
        first = self.clones[0]
        scans = [clone.scan() for clone in self.clones]
        assert all(scan.files == scans[0].files and not scan.blocked for scan in scans)
        paths = set(first.files.paths())
        assert self.entries <= paths
        conflicts = conflicts_in(dict.fromkeys(paths))
        for path, tokens in self.tokens.items():
            versions = [path, *(other for other in conflicts if other.startswith(f"{path}.conflict-"))]
            held = "".join(first.text(version) for version in versions)
            assert {token for token in tokens if token not in held} == set()
        self.check_artifacts()
        assert not any("<<<<<<<" in first.text(path) for path in paths)
        assert git("rev-list", "--merges", BRANCH, cwd=self.hub) == ""
        assert git("fsck", "--no-dangling", cwd=self.hub) == ""
        assert all(git("status", "--porcelain", cwd=clone.root) == "" for clone in self.clones)

    def check_artifacts(self) -> None:
        """Every content that was added is found by a pointer whose file holds just that."""
        first = self.clones[0]
        data = first.files.read(index_file(RUN))
        pointers = decode_index(data).artifacts.values() if data else ()
        assert {pointer.sha256 for pointer in pointers} == self.artifacts
        for pointer in pointers:
            content = first.files.read(pointer.uri)
            assert content is not None
            assert hashlib.sha256(content).hexdigest() == pointer.sha256


def _live(story: Story, writes: int) -> None:
    """Writes with a force push in the middle and two times without a network."""
    cuts = {writes // 5: 6, writes // 2: 9}
    left = 0
    for number in range(writes):
        if number in cuts:
            story.cut()
            left = cuts[number]
        story.step()
        if left:
            left -= 1
            if not left:
                story.mend()
        if number == 4 * writes // 5:
            story.force_push()
    story.check()


def test_three_clones_with_a_force_push_and_two_cuts_come_to_the_same_and_lose_nothing(
    tmp_path: Path,
) -> None:
    _live(Story(tmp_path, 3, seed=1), 40)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_six_clones_with_fifty_writes_each_need_nobody(tmp_path: Path, seed: int) -> None:
    _live(Story(tmp_path, 6, seed), 300)
