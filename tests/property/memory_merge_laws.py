"""What must hold of any merge of two copies of a store, told by the files alone: nothing here knows how it is done."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from raddle.model.clock import parse_time
from raddle.model.errors import FormatError
from raddle.model.memory.artifact import decode_index
from raddle.model.memory.handoff import decode_handoff
from raddle.model.memory.memory_text import parse_memory
from raddle.model.memory.merge import MergedTree, merge_contents
from raddle.model.memory.merge_sides import Sides
from raddle.model.memory.merge_trees import plan_merge
from raddle.model.memory.project import decode_project
from raddle.model.memory.repo_layout import (
    ATTRIBUTES,
    ATTRIBUTES_FILE,
    PROJECT_FILE,
    handoff_file,
    index_file,
    run_file,
)
from raddle.model.memory.run import PHASE_STATUSES, RUN_STATUSES, decode_run
from tests.property.memory_stories import RUN_ID, Files, Story, blob_id


class LawBroken(AssertionError):
    """A merge did what no merge may do."""


def demand(holds: object, what: str) -> None:
    if not holds:
        raise LawBroken(what)


def merged(base: Files, local: Files, remote: Files, sides: Sides) -> tuple[Files, MergedTree]:
    """The merge as whoever has all contents at hand does it."""
    trees = [{path: blob_id(data) for path, data in files.items()} for files in (base, local, remote)]
    contents = {blob_id(data): data for files in (base, local, remote) for data in files.values()}
    plan = plan_merge(*trees)
    demand(set(plan.wanted) <= contents.keys(), "asks for contents that nobody has")
    tree = merge_contents(plan, {wanted: contents[wanted] for wanted in plan.wanted}, sides)
    demand(not tree.entries.keys() & tree.written.keys(), "one path, two contents")
    return {path: contents[entry] for path, entry in tree.entries.items()} | tree.written, tree


def check(story: Story) -> None:
    """Every law on one story."""
    base, local, remote, sides = story
    files, tree = merged(base, local, remote, sides)
    check_symmetry(story, files, tree)
    check_standing_still(story)
    check_one_sided(story, files, tree)
    check_both_kept(story, files, tree)
    check_run(story, files)
    check_project(story, files)
    check_artifacts(story, files, tree)
    check_memories(story, files)
    check_later(story, files)
    check_names(story, files)
    check_notes(files, tree)


def check_symmetry(story: Story, files: Files, tree: MergedTree) -> None:
    swapped = Sides(local=story.sides.remote, remote=story.sides.local)
    other_files, other_tree = merged(story.base, story.remote, story.local, swapped)
    demand(files == other_files, "the other node comes to something else")
    demand(tree.notes == other_tree.notes, "the other node tells something else")


def check_standing_still(story: Story) -> None:
    for side in (story.local, story.remote):
        for pair in ((side, side), (side, story.base), (story.base, side)):
            files, tree = merged(story.base, *pair, story.sides)
            demand(files == side, "who merges what nobody else changed has what was there")
            demand(all(note.kind == "withheld" for note in tree.notes), "and nothing to tell")


def check_one_sided(story: Story, files: Files, tree: MergedTree) -> None:
    """A file that one side left as it was is the other side's, or has another name."""
    moved = {note.path for note in tree.notes if note.kind == "moved"}
    for path in story.base.keys() | story.local.keys() | story.remote.keys():
        before, here, there = story.base.get(path), story.local.get(path), story.remote.get(path)
        is_one_sided = before in (here, there) or here == there
        if path in moved or not is_one_sided:
            continue
        stands = there if here == before else here
        demand(files.get(path) == stands, f"{path}: one side changed it, and that is not what stands")


def check_both_kept(story: Story, files: Files, tree: MergedTree) -> None:
    """A change outweighs a removal; and what no rule merges is there twice."""
    for path in story.local.keys() ^ story.remote.keys():
        survivor = story.local.get(path, story.remote.get(path))
        was_changed = survivor != story.base.get(path)
        if was_changed:
            demand(survivor in files.values(), f"{path}: a removal took what the other side had written")
    for path in story.local.keys() & story.remote.keys():
        here, there = story.local[path], story.remote[path]
        if here != there and story.base.get(path) not in (here, there) and _is_unmergeable(path, here, there):
            demand({here, there} <= set(files.values()), f"{path}: one of two versions is gone")


def _is_unmergeable(path: str, here: bytes, there: bytes) -> bool:
    if path == run_file(RUN_ID):
        return not (_reads(decode_run, here) and _reads(decode_run, there))
    return path.endswith("handoff.json") or b"\xff" in here + there


def check_run(story: Story, files: Files) -> None:
    path = run_file(RUN_ID)
    versions = [version[path] for version in (story.base, story.local, story.remote)]
    if not all(_reads(decode_run, data) for data in versions):
        if story.base[path] not in (story.local[path], story.remote[path]):
            demand(
                _reads(decode_run, files[path]) or b"schema_version: 9" in files[path], "a broken run stands"
            )
            future = [data for data in versions[1:] if b"schema_version: 9" in data]
            demand(not future or files[path] in future, "an older format stands before a newer one")
        return
    base, local, remote = map(decode_run, versions)
    both = decode_run(files[path])
    demand(both.status == _moved_on(RUN_STATUSES, base.status, local.status, remote.status), "status")
    for phase in local.phases.keys() | remote.phases.keys():
        told = [run.phases[phase] for run in (local, remote) if phase in run.phases]
        expected = _moved_on(PHASE_STATUSES, base.phases.get(phase), told[0], told[-1])
        demand(both.phases.get(phase) == expected, "a phase's state")
    stints = [
        {(stint.node_id, stint.joined): stint for stint in run.nodes} for run in (base, local, remote, both)
    ]
    demand(stints[3].keys() == stints[1].keys() | stints[2].keys(), "a stint is gone")
    for key, stint in stints[3].items():
        left = {side[key].left or "" for side in stints[1:3] if key in side}
        demand((stint.left or "") == max(left), "a node left and is still there")
    _check_clashing_values(
        files,
        path,
        [(run.parent_run_id, run.unknown) for run in (base, local, remote)],
        (both.parent_run_id, both.unknown),
    )


def check_project(story: Story, files: Files) -> None:
    base, local, remote = (decode_project(version[PROJECT_FILE]) for version in story[:3])
    both = decode_project(files[PROJECT_FILE])
    demand(set(both.phases) == set(local.phases) | set(remote.phases), "a phase is gone")
    for side in (local, remote):
        demand(
            [phase for phase in both.phases if phase in side.phases] == list(side.phases), "the phases' order"
        )
    changed = [side.publish for side in (local, remote) if side.publish != base.publish]
    allowed = changed or [base.publish]
    demand(both.publish in allowed, "publish is what nobody said")
    demand(False not in changed or both.publish is False, "one said that it stays here, and it goes out")
    demand(not (None in changed and both.publish is True), "one was not sure, and it goes out")
    _check_clashing_values(
        files,
        PROJECT_FILE,
        [(project.name, project.unknown, project.blobs) for project in (base, local, remote)],
        (both.name, both.unknown, both.blobs),
    )


def _check_clashing_values(files: Files, path: str, sides: list[Any], both: Any) -> None:
    """What a side changed stands in the merged file, or its whole file stands beside it."""
    beside = " ".join(data.decode() for other, data in files.items() if other.startswith(f"{path}.conflict-"))
    base, *versions = (dict(_flat(side)) for side in sides)
    standing = dict(_flat(both))
    demand(
        set(standing) == set(versions[0]) | set(versions[1]), f"{path}: a field is gone, or came from nowhere"
    )
    for version in versions:
        for name, value in version.items():
            if value != base.get(name):
                demand(standing[name] == value or str(value) in beside, f"{path}: a value of {name} is gone")
    for name, value in standing.items():
        changed = {repr(version.get(name)) for version in versions if version.get(name) != base.get(name)}
        demand(not changed or repr(value) in changed, f"{path}: {name} is what it was before")


def _flat(values: Any) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(values):
        if isinstance(value, Mapping):
            yield from ((f"{number}/{name}", part) for name, part in value.items())
        elif value is not None:
            yield str(number), value


def check_artifacts(story: Story, files: Files, tree: MergedTree) -> None:
    """Every content that a side points to is pointed to, and the bytes at the end of each pointer are those."""
    path = index_file(RUN_ID)
    both = decode_index(files[path])
    hashes = {artifact.sha256 for artifact in both.artifacts.values()}
    for version in (story.local, story.remote):
        side = decode_index(version[path])
        for artifact_id, artifact in side.artifacts.items():
            demand(artifact.sha256 in hashes, "a content that nobody points to any more")
            is_told = any(note.kind == "renamed_artifact" and note.path == artifact_id for note in tree.notes)
            stands = artifact_id in both.artifacts and both.artifacts[artifact_id].sha256 == artifact.sha256
            is_unread = artifact_id in both.unread
            demand(stands or is_told or is_unread, "an artifact has another content, and nobody says so")
        beside = " ".join(
            data.decode() for other, data in files.items() if other.startswith(f"{path}.conflict-")
        )
        for artifact_id, pointer in side.unread.items():
            is_kept = both.unread.get(artifact_id) == pointer or pointer["of"] in beside
            demand(is_kept, "a pointer of the future is gone")
    check_artifacts_lead_to_their_bytes(files)
    for artifact_id in both.artifacts:
        told = [
            (side.artifacts[artifact_id].created_ts, side.artifacts[artifact_id].sha256)
            for side in (decode_index(story.local[path]), decode_index(story.remote[path]))
            if artifact_id in side.artifacts
        ]
        if told:
            demand(
                both.artifacts[artifact_id].sha256 == min(told)[1],
                "the later artifact has the earlier one's id",
            )


def check_artifacts_lead_to_their_bytes(files: Files) -> None:
    """Each pointer of every index has a file that holds just what it says."""
    for path, data in files.items():
        if path.endswith("/artifacts.index.json"):
            for artifact_id, artifact in decode_index(data).artifacts.items():
                demand(artifact.artifact_id == artifact_id, "a pointer under another's id")
                demand(artifact.path in files, "a pointer to nothing")
                content = files[artifact.path or ""]
                demand(hashlib.sha256(content).hexdigest() == artifact.sha256, "a pointer to another's bytes")


def check_memories(story: Story, files: Files) -> None:
    """Each line that a side wrote is somewhere, no text holds a marker, and what both took out is gone."""
    everything = [data for path, data in files.items() if path.startswith(("memory/", "runs/"))]
    for version in (story.local, story.remote):
        for path, data in version.items():
            if not _is_text(path) or data == story.base.get(path):
                continue
            places = [files[other] for other in files if _is_of(other, path)]
            for line in set(data.splitlines()) - set(story.base.get(path, b"").splitlines()):
                if not line.startswith((b"updated:", b"author:", b"tags:", b"- ", b"---")):
                    demand(any(line in place for place in places or everything), f"{path}: {line!r} is gone")
    for path, data in files.items():
        demand(b"<<<<<<<" not in data and b">>>>>>>" not in data, "a marker")
        if _is_text(path) and path in story.local.keys() & story.remote.keys() & story.base.keys():
            _check_front_matter(story, path, data)
            _check_no_needless_conflict(story, path, files)


def _check_front_matter(story: Story, path: str, data: bytes) -> None:
    versions = [version[path] for version in story[:3]]
    if any(b"\xff" in version for version in (*versions, data)) or data in versions:
        return
    base, local, remote, both = (parse_memory(version.decode()).front_matter for version in (*versions, data))
    taken_off = {tag for tag in base.tags if tag not in local.tags or tag not in remote.tags}
    expected = set(local.tags) | set(remote.tags)
    demand(set(both.tags) == expected - taken_off, f"{path}: tags")
    demand(both.updated == max(local.updated, remote.updated), f"{path}: when it was written last")


def _check_no_needless_conflict(story: Story, path: str, files: Files) -> None:
    """Who wrote last, when and under which tags is never a clash."""
    versions = [version[path] for version in story[:3]]
    is_beside = any(other.startswith(f"{path}.conflict-") and other not in story.base for other in files)
    if not is_beside or any(b"\xff" in version for version in versions):
        return
    base, local, remote = (parse_memory(version.decode()) for version in versions)
    for field in (
        [memory.body for memory in (base, local, remote)],
        [memory.front_matter.description for memory in (base, local, remote)],
    ):
        if field[1] != field[2] and field[0] not in field[1:]:
            return
    raise LawBroken(f"{path}: a conflict over nothing")


def _is_text(path: str) -> bool:
    return path.startswith("memory/") or path.endswith("summary.md")


def _is_of(other: str, path: str) -> bool:
    """Is `other` the path, in whatever spelling, or a version kept beside it?"""
    return _folded(other).startswith(_folded(path))


def check_later(story: Story, files: Files) -> None:
    """Of two handoffs the one published later stands; attributes that keep bytes stand before others."""
    path = handoff_file(RUN_ID, "build")
    here, there = story.local.get(path), story.remote.get(path)
    if here and there and here != there and story.base.get(path) not in (here, there):
        times = [
            (parse_time(decode_handoff(data).published_ts) or side.at, side.node_id, data)
            for data, side in ((here, story.sides.local), (there, story.sides.remote))
        ]
        demand(files[path] == max(times)[2], "the earlier handoff stands")
    if ATTRIBUTES in (story.local[ATTRIBUTES_FILE], story.remote[ATTRIBUTES_FILE]):
        demand(files[ATTRIBUTES_FILE] == ATTRIBUTES, "git may change bytes again")
    summary = next(path for path in story.base if path.endswith("summary.md"))
    beside = [other for other in files if other.startswith(summary + ".conflict-")]
    if beside and not any(other in story.base for other in beside):
        later = story.local if story.sides.local.at > story.sides.remote.at else story.remote
        demand(files[summary] == later[summary], "the earlier summary stands")


def check_names(story: Story, files: Files) -> None:
    """No two memories that one file system cannot hold both, and none that is also a folder."""
    seen: dict[str, str] = {}
    for path in sorted(path for path in files if path.startswith("memory/")):
        demand(seen.setdefault(_folded(path), path) == path, f"{path} and its twin")
    for path in seen:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            demand("/".join(parts[:depth]) not in seen, f"{path} stands in a file")
    artifacts: dict[str, bytes] = {}
    for path, data in files.items():
        if "/artifacts/" in path:
            demand(
                artifacts.setdefault(_folded(path), data) == data, f"{path} and its twin hold different bytes"
            )
    spellings: dict[str, str] = {}
    for path in seen.values():
        for depth in range(1, len(path.split("/"))):
            folder = "/".join(path.split("/")[:depth])
            demand(spellings.setdefault(_folded(folder), folder) == folder, f"{folder} in two spellings")


def check_notes(files: Files, tree: MergedTree) -> None:
    """What is told is so, and every version kept beside another is told."""
    for note in tree.notes:
        if note.kind in ("conflict", "moved"):
            demand(note.other in files, f"{note.other} is told of and not there")
        if note.kind == "withheld":
            demand(".GIT" in note.path, f"{note.path} is kept from the disk")
    withheld = {note.path for note in tree.notes if note.kind == "withheld"}
    demand({path for path in files if ".GIT" in path} == withheld, "what is dangerous goes to the disk")


def _moved_on(order: tuple[str, ...], base: str | None, local: str, remote: str) -> str:
    if base in (local, remote):
        return remote if local == base else local
    return max(local, remote, key=order.index)


def _reads(decode: Callable[[bytes], object], data: bytes) -> bool:
    try:
        decode(data)
    except FormatError:
        return False
    return True


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())
