"""Artifacts of a run: small text in the memory, everything else beside it, and a pointer that never lies."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from pathlib import Path

import pytest

from raddle.actions.memory.artifacts import Added, find_artifact, get_artifact, list_artifacts
from raddle.model.errors import BrokenFormat, ConflictError, InvalidInput, NewerFormat, NotFound, RaddleError
from raddle.model.memory.artifact import INLINE_BELOW
from raddle.model.memory.entry import decode_entry
from raddle.model.memory.repo_layout import index_file
from tests.memory_artifacts import CRLF, HUGE, LARGE, Given, Shelves, a_run, add, everything
from tests.memory_clones import Clone, make_hub


@pytest.fixture
def ada(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "ada", make_hub(tmp_path / "hub.git"))
    clone.begin("build", "test")
    return clone


@pytest.fixture
def shelves(tmp_path: Path) -> Shelves:
    return Shelves(tmp_path / "blobs")


def got(clone: Clone, shelves: Shelves, run_id: str, artifact_id: str, *part: int) -> bytes:
    return b"".join(
        get_artifact(clone.files, shelves, find_artifact(clone.files, run_id, artifact_id), *part)
    )


def test_small_text_stands_in_the_memory_byte_for_byte(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    added = add(ada, shelves, run_id, "report", CRLF, name="report.md", kind=" report ")
    assert added.is_new
    assert added.artifact.uri == f"runs/{run_id}/phases/build/artifacts/report.md"
    assert (added.artifact.backend, added.artifact.kind, added.artifact.size_bytes) == (
        "inline",
        "report",
        len(CRLF),
    )
    assert (ada.root / added.artifact.uri).read_bytes() == CRLF
    assert got(ada, shelves, run_id, "report") == CRLF
    assert shelves.held() == []


def test_a_text_with_crlf_is_the_same_in_another_clone(ada: Clone, shelves: Shelves, tmp_path: Path) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "report", CRLF)
    ada.sync()
    bob = Clone(tmp_path / "bob", tmp_path / "hub.git")
    bob.sync()
    assert got(bob, shelves, run_id, "report") == CRLF


@pytest.mark.parametrize(
    ("data", "is_inline"),
    [
        (b"", True),
        (b"x" * INLINE_BELOW, True),
        (b"x" * (INLINE_BELOW + 1), False),
        (b"a\0b", False),
        (b"\xff\xfe", False),
        ("ü".encode() * 10, True),
    ],
    ids=["empty", "at the limit", "over it", "NUL", "no text", "UTF-8"],
)
def test_only_small_text_goes_into_the_memory(
    ada: Clone, shelves: Shelves, data: bytes, *, is_inline: bool
) -> None:
    run_id = a_run(ada)
    added = add(ada, shelves, run_id, "one", data)
    assert (added.artifact.backend == "inline") is is_inline
    assert got(ada, shelves, run_id, "one") == data


def test_where_the_limit_is_can_be_said(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    assert add(ada, shelves, run_id, "one", b"text", inline_below=3).artifact.backend == "rsync"
    assert (
        add(ada, shelves, run_id, "two", b"x" * (5 << 20), inline_below=1 << 40).artifact.backend == "rsync"
    )


def test_a_large_artifact_costs_the_hub_less_than_two_kilobytes(
    ada: Clone, shelves: Shelves, tmp_path: Path
) -> None:
    run_id = a_run(ada)
    ada.sync()
    before = _size_of(tmp_path / "hub.git")
    added = add(ada, shelves, run_id, "model", HUGE, name="model.ckpt", kind="checkpoint")
    assert added.artifact.uri == f"rsync://objects/{hashlib.sha256(HUGE).hexdigest()}"
    assert ada.sync().is_pushed
    assert _size_of(tmp_path / "hub.git") - before < 2_000
    assert got(ada, shelves, run_id, "model") == HUGE


def _size_of(hub: Path) -> int:
    return sum(path.stat().st_size for path in (hub / "objects").rglob("*") if path.is_file())


def test_an_entry_tells_of_a_new_artifact_and_of_no_old_one(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    for _ in range(2):
        add(ada, shelves, run_id, "one", b"text", kind="report")
    (path,) = ada.files.paths(f"runs/{run_id}/phases/build/entries")
    entry = decode_entry(ada.text(path).encode())
    sha256 = hashlib.sha256(b"text").hexdigest()
    assert (entry.type, entry.phase) == ("artifact_ref", "build")
    assert entry.payload == {"artifact_id": "one", "kind": "report", "sha256": sha256}


@pytest.mark.parametrize("old", [b"old\n", LARGE[:300_000]], ids=["inline", "blob"])
@pytest.mark.parametrize("new", [b"new\n", LARGE[:300_001]], ids=["inline", "blob"])
def test_the_same_id_with_other_bytes_is_refused_before_anything_is_touched(
    ada: Clone, shelves: Shelves, tmp_path: Path, old: bytes, new: bytes
) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "one", old)
    before = everything(tmp_path)
    with pytest.raises(ConflictError, match="'one' is there already, with other bytes"):
        add(ada, shelves, run_id, "one", new)
    assert everything(tmp_path) == before
    assert got(ada, shelves, run_id, "one") == old


@pytest.mark.parametrize("data", [b"text\n", LARGE[:300_000]], ids=["inline", "blob"])
def test_the_same_bytes_under_the_same_id_are_nothing_new(
    ada: Clone, shelves: Shelves, tmp_path: Path, data: bytes
) -> None:
    run_id = a_run(ada)
    first = add(ada, shelves, run_id, "one", data)
    before = everything(tmp_path)
    again = add(ada, shelves, run_id, "one", data, kind="another", phase="test")
    assert again == Added(first.artifact, is_new=False)
    assert everything(tmp_path) == before


def copies_of(added: Added, clone: Clone, folder: Path) -> list[Path]:
    """Every file that holds its bytes: in the memory, or in the folder of blobs."""
    places = (clone.root / added.artifact.uri, *(folder / "blobs").rglob("*"))
    return [path for path in places if path.is_file()]


@pytest.mark.parametrize("data", [b"text\n", LARGE[:300_000]], ids=["inline", "blob"])
def test_bytes_that_were_lost_are_back_when_they_are_given_again(
    ada: Clone, shelves: Shelves, tmp_path: Path, data: bytes
) -> None:
    run_id = a_run(ada)
    added = add(ada, shelves, run_id, "one", data)
    for path in copies_of(added, ada, tmp_path):
        path.unlink()
    with pytest.raises(NotFound):
        got(ada, shelves, run_id, "one")
    assert add(ada, shelves, run_id, "one", data) == Added(added.artifact, is_new=False, is_mended=True)
    assert got(ada, shelves, run_id, "one") == data


@pytest.mark.parametrize("data", [b"text\n", LARGE[:300_000]], ids=["inline", "blob"])
def test_bytes_that_are_damaged_are_whole_when_they_are_given_again(
    ada: Clone, shelves: Shelves, tmp_path: Path, data: bytes
) -> None:
    run_id = a_run(ada)
    added = add(ada, shelves, run_id, "one", data)
    for path in copies_of(added, ada, tmp_path):
        path.write_bytes(data[:-1] + b"?")
    with pytest.raises(BrokenFormat):
        got(ada, shelves, run_id, "one")
    assert add(ada, shelves, run_id, "one", data) == Added(added.artifact, is_new=False, is_mended=True)
    assert got(ada, shelves, run_id, "one") == data
    assert not add(ada, shelves, run_id, "one", data).is_mended


def test_a_damaged_copy_of_this_machines_own_does_not_hide_what_is_whole(
    ada: Clone, shelves: Shelves, tmp_path: Path
) -> None:
    run_id = a_run(ada)
    data = LARGE[:300_000]
    sha256 = add(ada, shelves, run_id, "one", data).artifact.sha256
    shelves.own().put(sha256, len(data), iter([data]))
    (own,) = (tmp_path / "blobs" / "own").rglob(sha256)
    own.write_bytes(data[:-1] + b"?")
    assert add(ada, shelves, run_id, "one", data).is_mended
    assert own.read_bytes() == data


BAD_IDS = [
    "",
    ".",
    "..",
    "../../x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    ".git",
    ".GIT",
    "git~1",
    ".gitattributes",
    "con",
    "nul.txt",
    "a:b",
    "a\n",
    "a\0b",
    "a ",
    "a.",
    "x" * 181,
]


@pytest.mark.parametrize("artifact_id", BAD_IDS)
def test_an_id_that_some_system_would_take_for_a_path_is_refused(
    ada: Clone, shelves: Shelves, tmp_path: Path, artifact_id: str
) -> None:
    run_id = a_run(ada)
    before = everything(tmp_path)
    for data in (b"text", LARGE[:300_000]):
        with pytest.raises(InvalidInput, match="artifact id"):
            add(ada, shelves, run_id, artifact_id, data)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("kind", ["", " ", "../../x", "..", "a\nb", "a\\b", "x" * 65, "\x1b[2J"])
def test_a_kind_is_a_word_or_two(ada: Clone, shelves: Shelves, kind: str) -> None:
    run_id = a_run(ada)
    with pytest.raises(InvalidInput, match="no kind of artifact"):
        add(ada, shelves, run_id, "one", b"text", kind=kind)
    assert ada.files.read(index_file(run_id)) is None


@pytest.mark.parametrize(
    ("first", "second"), [("model", "Model"), ("\u00e9", "E\u0301"), ("stra\u00dfe", "STRASSE")]
)
@pytest.mark.parametrize("data", [b"text", LARGE[:300_000]], ids=["inline", "blob"])
def test_two_ids_that_a_file_system_could_take_for_one_are_not_both_had(
    ada: Clone, shelves: Shelves, first: str, second: str, data: bytes
) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, first, data)
    with pytest.raises(InvalidInput, match="only in case or Unicode form"):
        add(ada, shelves, run_id, second, data)


def test_one_id_in_two_unicode_forms_is_one(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "e\u0301", b"text")
    assert not add(ada, shelves, run_id, "\u00e9", b"text").is_new


def test_two_ids_never_share_a_file(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "a", b"one", name="x.md")
    add(ada, shelves, run_id, "a.md", b"two", name="x.md")
    add(ada, shelves, run_id, "A.md.txt", b"three", name="x.txt")
    add(ada, shelves, run_id, "a.md-1", b"four", name="none")
    assert [got(ada, shelves, run_id, one) for one in ("a", "a.md", "A.md.txt", "a.md-1")] == [
        b"one",
        b"two",
        b"three",
        b"four",
    ]


def test_a_file_without_a_pointer_is_never_written_over(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    stray = f"runs/{run_id}/phases/build/artifacts/one.txt"
    ada.write(stray, "somebody's")
    added = add(ada, shelves, run_id, "one", b"ours")
    assert ada.text(stray) == "somebody's"
    assert added.artifact.uri != stray
    assert got(ada, shelves, run_id, "one") == b"ours"


@pytest.mark.parametrize(
    ("run", "phase"), [("01M8PZKM3KMAB0SYRHJ485PAMY", "build"), ("nonsense", "build"), ("", "present")]
)
def test_an_artifact_needs_a_run_and_a_phase_of_it(
    ada: Clone, shelves: Shelves, run: str, phase: str
) -> None:
    run_id = a_run(ada)
    with pytest.raises((InvalidInput, NotFound)):
        add(ada, shelves, run or run_id, "one", b"text", phase=phase)
    assert shelves.held() == []


def test_a_source_that_fails_leaves_no_pointer_and_no_half_blob(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    with pytest.raises(OSError, match="went away"):
        add(ada, shelves, run_id, "model", Given(LARGE, fails_after=1))
    assert ada.files.read(index_file(run_id)) is None
    assert shelves.held() == []
    assert add(ada, shelves, run_id, "model", LARGE).is_new


@pytest.mark.parametrize(
    "second", [LARGE[:-1], LARGE + b"x", LARGE[:-1] + b"\0"], ids=["cut", "grown", "other"]
)
def test_a_file_that_changes_while_it_is_read_is_not_kept(
    ada: Clone, shelves: Shelves, second: bytes
) -> None:
    run_id = a_run(ada)
    with pytest.raises(ConflictError, match="changed while it was read"):
        add(ada, shelves, run_id, "model", Given(LARGE, second))
    assert list_artifacts(ada.files, run_id).artifacts == ()
    assert shelves.held() == []


def test_of_many_who_take_one_id_at_once_one_has_it(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    kept: list[bytes] = []
    start = threading.Barrier(8)

    def take(number: int) -> None:
        data = b"text %d" % number if number % 2 else LARGE[: 300_000 + number]
        start.wait()
        with contextlib.suppress(ConflictError):
            if add(ada, shelves, run_id, "one", data).is_new:
                kept.append(data)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got(ada, shelves, run_id, "one")] == kept


def test_many_artifacts_added_at_once_are_all_in_the_index(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)

    def take(number: int) -> None:
        for part in range(5):
            add(ada, shelves, run_id, f"{number}-{part}", b"%d %d" % (number, part))

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list_artifacts(ada.files, run_id).artifacts) == 20


def test_pointers_that_we_cannot_read_survive_and_are_told(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "one", b"text")
    path = index_file(run_id)
    plain = json.loads(ada.text(path))
    newer = {"schema_version": 2, "artifact_id": "next", "where": {"deep": [1]}}
    plain["artifacts"] |= {"next": newer, "torn": 7}
    plain["artifacts"]["one"]["label"] = "theirs"
    ada.write(path, json.dumps(plain))
    add(ada, shelves, run_id, "two", b"more")
    again = json.loads(ada.text(path))["artifacts"]
    assert (again["next"], again["torn"], again["one"]["label"]) == (newer, 7, "theirs")
    assert list(list_artifacts(ada.files, run_id).unread) == ["next", "torn"]
    for artifact_id in ("next", "torn"):
        with pytest.raises(BrokenFormat):
            find_artifact(ada.files, run_id, artifact_id)
        with pytest.raises(ConflictError):
            add(ada, shelves, run_id, artifact_id, b"text")


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (b'{"schema_version": 2}', NewerFormat),
        (b"<<<<<<<", BrokenFormat),
        (b"", BrokenFormat),
        (b"[]", BrokenFormat),
    ],
)
def test_an_index_that_we_cannot_read_is_left_as_it_is(
    ada: Clone, shelves: Shelves, index: bytes, error: type[RaddleError]
) -> None:
    run_id = a_run(ada)
    ada.files.add({index_file(run_id): index})
    for data in (b"text", LARGE[:300_000]):
        with pytest.raises(error):
            add(ada, shelves, run_id, "one", data)
    assert ada.files.read(index_file(run_id)) == index
    assert shelves.held() == []


def _point_to(clone: Clone, run_id: str, **fields: object) -> None:
    """Have the pointer `one` say another thing, as a hostile clone would."""
    path = index_file(run_id)
    plain = json.loads(clone.text(path))
    plain["artifacts"]["one"] |= fields
    clone.write(path, json.dumps(plain))


@pytest.mark.parametrize(
    "uri",
    [
        "project.yaml",
        "../../etc/passwd",
        "/etc/passwd",
        "memory/a/b",
        "runs/x/run.yaml",
        ".git/config",
        "",
        "a\0b",
    ],
)
def test_a_pointer_that_leads_elsewhere_is_not_followed(ada: Clone, shelves: Shelves, uri: str) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "one", b"text")
    _point_to(ada, run_id, uri=uri)
    with pytest.raises(BrokenFormat, match="no place of one"):
        got(ada, shelves, run_id, "one")


def test_an_inline_artifact_behind_a_link_is_not_followed(
    ada: Clone, shelves: Shelves, tmp_path: Path
) -> None:
    run_id = a_run(ada)
    file = ada.root / add(ada, shelves, run_id, "one", b"text").artifact.uri
    (tmp_path / "secret").write_bytes(b"text")
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    with pytest.raises(NotFound):
        got(ada, shelves, run_id, "one")


@pytest.mark.parametrize(
    "uri",
    ["rsync://objects", "rsync://../x", "ssh://host/" + "0" * 64, "rsync://objects/" + "0" * 64, "lfs:abc"],
)
def test_a_pointer_to_other_bytes_or_to_nowhere_is_refused(ada: Clone, shelves: Shelves, uri: str) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "one", LARGE[:300_000])
    _point_to(ada, run_id, uri=uri)
    with pytest.raises(BrokenFormat, match="does not reach"):
        got(ada, shelves, run_id, "one")


def test_damaged_bytes_are_never_given_whole(ada: Clone, shelves: Shelves, tmp_path: Path) -> None:
    run_id = a_run(ada)
    inline = ada.root / add(ada, shelves, run_id, "one", b"text").artifact.uri
    inline.write_bytes(b"test")
    add(ada, shelves, run_id, "two", LARGE)
    (blob,) = (path for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    blob.write_bytes(LARGE[:-1] + b"\0")
    with pytest.raises(BrokenFormat, match="damaged"):
        got(ada, shelves, run_id, "one")
    seen = 0
    with pytest.raises(BrokenFormat, match="damaged where it lies"):
        for piece in get_artifact(ada.files, shelves, find_artifact(ada.files, run_id, "two")):
            seen += len(piece)
    assert seen < len(LARGE)


@pytest.mark.parametrize("data", [b"0123456789", LARGE[:300_000]], ids=["inline", "blob"])
@pytest.mark.parametrize(("start", "end"), [(0, 3), (4, 9), (9, 10), (2, 1 << 30), (0, 0), (7, 3)])
def test_a_part_is_a_slice(ada: Clone, shelves: Shelves, data: bytes, start: int, end: int) -> None:
    run_id = a_run(ada)
    add(ada, shelves, run_id, "one", data)
    assert got(ada, shelves, run_id, "one", start, end) == data[start:end]


def test_artifacts_are_listed_by_age_phase_and_kind(ada: Clone, shelves: Shelves) -> None:
    run_id = a_run(ada)
    for number, (phase, kind) in enumerate([("build", "file"), ("test", "figure"), ("build", "figure")]):
        add(ada, shelves, run_id, f"z{9 - number}", b"%d" % number, phase=phase, kind=kind)

    def ids(**filters: str) -> list[str]:
        return [one.artifact_id for one in list_artifacts(ada.files, run_id, **filters).artifacts]

    assert ids() == ["z9", "z8", "z7"]
    assert ids(phase="build") == ["z9", "z7"]
    assert ids(kind="figure") == ["z8", "z7"]
    assert ids(phase="test", kind="file") == []
    with pytest.raises(NotFound) as caught:
        find_artifact(ada.files, run_id, "other")
    assert caught.value.hint == "this run has: z7, z8, z9"
