"""Where large artifacts go: what project.yaml may say, who has agreed to it, and how bytes come back from there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.memory.artifacts import find_artifact, get_artifact
from raddle.adapters.blobs import files_of_artifacts
from raddle.model.errors import (
    BrokenFormat,
    ConflictError,
    InvalidInput,
    NetworkError,
    NotFound,
    NotSignedIn,
    StorageError,
    UserError,
)
from raddle.model.memory.project import Project, encode_project
from raddle.wiring import Stores, open_stores
from raddle.wiring.memory import ProjectMemory
from raddle.wiring.memory_artifacts import artifact_source, fetch_artifact
from raddle.wiring.memory_blobs import BlobPlace, MemoryBlobs, parse_blob_url
from tests.memory_artifacts import LARGE, a_run, add
from tests.memory_clones import Clone

SHA256 = hashlib.sha256(LARGE).hexdigest()
SECRET = "hunter2"


@pytest.fixture
def stores() -> Iterator[Stores]:
    with open_stores() as opened:
        yield opened


class Memory:
    """A memory of which `project.yaml` can be made to say anything."""

    def __init__(self, stores: Stores, root: Path) -> None:
        self.clone = Clone(root, None)
        self.clone.begin()
        self.run_id = a_run(self.clone)
        self._stores = stores

    def says(self, *, publish: bool | None = None, **blobs: str) -> None:
        project = Project(project_id="loom", phases=("build", "test"), publish=publish, blobs=blobs)
        self.clone.files.change("project.yaml", lambda _: encode_project(project))

    def blobs(self, **options: Any) -> MemoryBlobs:
        return MemoryBlobs(self.opened, **options)

    @property
    def opened(self) -> ProjectMemory:
        return ProjectMemory(self._stores, self.clone.root)

    def add(self, data: bytes = LARGE, artifact_id: str = "model", **options: Any) -> str:
        """The name of the store of blobs that has it now."""
        added = add(self.clone, self.blobs(**options), self.run_id, artifact_id, data)
        return added.artifact.uri.split("/")[2]

    def get(self, artifact_id: str = "model") -> bytes:
        found = find_artifact(self.clone.files, self.run_id, artifact_id)
        return b"".join(get_artifact(self.clone.files, self.blobs(), found))

    def fetch(self, path: Path, **options: Any) -> tuple[Path, int]:
        found = find_artifact(self.clone.files, self.run_id, "model")
        return fetch_artifact(self.opened, self.blobs(), found, path, **options)


@pytest.fixture
def memory(stores: Stores, tmp_path: Path) -> Memory:
    return Memory(stores, tmp_path / "store")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("/srv/blobs", BlobPlace("folder", "/srv/blobs")),
        ("/srv/blobs/", BlobPlace("folder", "/srv/blobs")),
        ("file:///srv/a%20b", BlobPlace("folder", "/srv/a b")),
        ("file://localhost/srv", BlobPlace("folder", "/srv")),
        ("s3://bucket/prefix", BlobPlace("bucket", "s3://bucket/prefix")),
        ("gs://bucket", BlobPlace("bucket", "gs://bucket")),
        ("az://container/prefix", BlobPlace("bucket", "az://container/prefix")),
        ("raddle://raddle.example.org", BlobPlace("server", "https://raddle.example.org")),
        ("https://Raddle.example.org/", BlobPlace("server", "https://raddle.example.org")),
        ("raddle://localhost:7371", BlobPlace("server", "http://localhost:7371")),
    ],
)
def test_a_url_comes_to_a_folder_a_bucket_or_a_server(url: str, place: BlobPlace) -> None:
    assert parse_blob_url(url) == place


def test_a_tilde_is_the_home_of_who_asks(home: Path) -> None:
    assert parse_blob_url("~/blobs") == BlobPlace("folder", f"{home}/blobs")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "blobs",
        "./blobs",
        "../blobs",
        "/srv/../etc",
        "/",
        "file:///srv/%2e%2e/etc",
        "file://other/srv",
        "file:srv",
        "~root/blobs",
        "user@host:/srv/blobs",
        "rsync://host/module",
        "ssh://host/srv",
        "ext::sh -c id",
        "--option",
        "S3://bucket",
        "s3://",
        "s3://bucket/a b",
        "s3://bucket/x?sig=1",
        "https://",
        "https://host/?q",
        "/srv/\x1b[2J",
        "/srv\n/etc",
        "x" * 2_000,
    ],
)
def test_what_raddle_does_not_reach_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_blob_url(url)
    assert "\x1b" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        f"s3://key:{SECRET}@bucket/x",
        f"https://ada:{SECRET}@host",
        f"raddle://{SECRET}@host",
        f"ssh://a:{SECRET}@b",
    ],
)
def test_a_url_with_a_password_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInput, match="password") as caught:
        parse_blob_url(url)
    assert SECRET not in caught.value.message + caught.value.hint


def test_without_a_word_in_the_project_bytes_go_into_a_folder_of_this_machine(
    memory: Memory, stores: Stores
) -> None:
    assert memory.add() == "local"
    file = stores.paths.memory_blobs_dir / SHA256[:2] / SHA256
    assert file.read_bytes() == LARGE
    assert file.stat().st_mode & 0o777 == 0o600
    assert memory.get() == LARGE


def test_the_first_store_of_blobs_takes_what_is_new_unless_another_is_named(
    memory: Memory, tmp_path: Path
) -> None:
    memory.says(objects=str(tmp_path / "one"), second=f"file://{tmp_path}/two")
    assert memory.add(agrees=True) == "objects"
    assert memory.add(LARGE[1:], "other", name="second", agrees=True) == "second"
    assert memory.add(LARGE[2:], "third", name="local") == "local"
    assert (tmp_path / "one" / SHA256[:2] / SHA256).read_bytes() == LARGE
    assert len([path for path in (tmp_path / "two").rglob("*") if path.is_file()]) == 1
    assert [memory.get(one) for one in ("model", "other", "third")] == [LARGE, LARGE[1:], LARGE[2:]]


@pytest.mark.parametrize("name", ["nobody", "../../x", "a/b", ""])
def test_a_store_of_blobs_that_the_project_does_not_name_takes_nothing(memory: Memory, name: str) -> None:
    if name:
        with pytest.raises((NotFound, InvalidInput)):
            memory.add(name=name)
    else:
        assert memory.add(name=name) == "local"


def test_nobody_writes_where_project_yaml_says_before_a_person_agreed(memory: Memory, tmp_path: Path) -> None:
    place = tmp_path / "planted"
    memory.says(objects=str(place))
    with pytest.raises(UserError, match="nobody on this machine has agreed") as caught:
        memory.add()
    assert (str(place) in caught.value.message, "--trust-blobs" in caught.value.hint) == (True, True)
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(UserError):
        memory.add(ask=ask)
    assert str(place) in asked[0]
    assert not place.exists()
    assert memory.clone.files.read(f"runs/{memory.run_id}/artifacts.index.json") is None


def test_a_person_agrees_once_for_a_url_and_anew_for_another(memory: Memory, tmp_path: Path) -> None:
    memory.says(objects=str(tmp_path / "one"))
    memory.add(ask=lambda _: True)
    memory.add(LARGE[1:], "again")
    memory.says(objects=str(tmp_path / "two"))
    with pytest.raises(UserError, match="nobody"):
        memory.add(LARGE[2:], "third")
    memory.says(renamed=f"file://{tmp_path}/one")
    assert memory.add(LARGE[3:], "fourth") == "renamed"


def test_an_agreement_is_of_this_memory_alone_and_never_committed(
    memory: Memory, stores: Stores, tmp_path: Path
) -> None:
    memory.says(objects=str(tmp_path / "blobs"))
    memory.add(agrees=True)
    assert [path for path in memory.clone.files.paths() if "agree" in path] == []
    other = Memory(stores, tmp_path / "other")
    other.says(objects=str(tmp_path / "blobs"))
    with pytest.raises(UserError, match="nobody"):
        other.add()


def test_a_shared_folder_that_is_gone_is_not_made_anew_as_if_it_were_mounted(
    memory: Memory, tmp_path: Path
) -> None:
    memory.says(objects=str(tmp_path / "blobs"))
    memory.add(agrees=True)
    (tmp_path / "blobs").rename(tmp_path / "unmounted")
    with pytest.raises(NotFound, match="no folder") as caught:
        memory.add(LARGE + b"!", "another", agrees=True)
    assert "mount it" in caught.value.hint
    assert not (tmp_path / "blobs").exists()


def test_a_shared_folder_whose_place_is_not_there_is_never_made(memory: Memory, tmp_path: Path) -> None:
    memory.says(objects=str(tmp_path / "not-mounted" / "blobs"))
    with pytest.raises(NotFound, match="no folder"):
        memory.add(agrees=True)
    (tmp_path / "not-mounted").mkdir()
    with pytest.raises(UserError, match="nobody"):
        memory.add()
    memory.add(agrees=True)
    assert memory.get() == LARGE


def test_bytes_are_read_without_an_agreement(memory: Memory, stores: Stores, tmp_path: Path) -> None:
    memory.says(objects=str(tmp_path / "blobs"))
    memory.add(agrees=True)
    (memory.opened.own_folder / "agreed-blobs").unlink()
    assert memory.get() == LARGE


@pytest.mark.parametrize("below", ["", "blobs", "runs", ".git/x"])
def test_a_folder_of_the_memory_itself_is_no_store_of_blobs(
    memory: Memory, tmp_path: Path, below: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(memory.clone.root)
    for place in (memory.clone.root / below, link / below):
        memory.says(objects=str(place))
        with pytest.raises(InvalidInput, match="lies in the memory itself"):
            memory.add(agrees=True)


@pytest.mark.parametrize("url", ["s3://bucket/x", "raddle://raddle.example.org"])
def test_of_a_memory_that_stays_here_no_byte_leaves_this_machine(memory: Memory, url: str) -> None:
    memory.says(publish=False, objects=url)
    with pytest.raises(UserError, match="publish: false"):
        memory.add(agrees=True)
    assert memory.add(name="local") == "local"


def test_a_server_that_nobody_signed_in_to_is_sent_no_token(
    memory: Memory, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_TOKEN", SECRET)
    monkeypatch.setenv("RADDLE_SERVER", "https://ours.example.org")
    memory.says(objects="raddle://theirs.example.org")
    with open_stores() as configured:
        blobs = MemoryBlobs(ProjectMemory(configured, memory.clone.root), agrees=True)
        with pytest.raises(NotSignedIn, match=r"theirs\.example\.org"):
            add(memory.clone, blobs, memory.run_id, "model", LARGE)


def test_offline_no_network_is_asked(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADDLE_OFFLINE", "1")
    memory.says(objects="s3://bucket/x")
    with open_stores() as configured:
        blobs = MemoryBlobs(ProjectMemory(configured, memory.clone.root), agrees=True)
        with pytest.raises(UserError, match="RADDLE_OFFLINE"):
            add(memory.clone, blobs, memory.run_id, "model", LARGE)


def test_what_is_nowhere_to_be_had_says_so(memory: Memory, stores: Stores, tmp_path: Path) -> None:
    memory.says(objects=str(tmp_path / "blobs"))
    memory.add(agrees=True)
    memory.says()
    with pytest.raises(NotFound, match="no store of blobs 'objects'"):
        memory.get()
    memory.says(objects=str(tmp_path / "empty"))
    with pytest.raises(NotFound, match="no blob"):
        memory.get()
    assert not (tmp_path / "empty").exists()
    memory.says(objects="rsync://host/module")
    with pytest.raises(InvalidInput):
        memory.get()


def test_where_bytes_are_is_told_without_a_network(memory: Memory, tmp_path: Path) -> None:
    memory.says(objects=str(tmp_path / "blobs"), far="s3://bucket/x", strange="rsync://host/x")
    memory.add(agrees=True)
    blobs = memory.blobs()
    absent = "0" * 64
    assert blobs.is_here("objects", SHA256) is True
    assert blobs.is_here("objects", absent) is False
    assert blobs.is_here("local", absent) is False
    assert blobs.is_here("unknown", absent) is False
    assert (blobs.is_here("far", absent), blobs.is_here("strange", absent)) == (None, None)


def test_a_pipe_and_stdin_are_read_once_and_kept_whole(
    memory: Memory, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_bytes, args=(LARGE,))
    writing.start()
    with artifact_source(memory.opened, str(pipe)) as source:
        assert b"".join(source.pieces()) == b"".join(source.pieces()) == LARGE
    writing.join()

    class Stdin:
        buffer = io.BytesIO(b"typed")

    monkeypatch.setattr("sys.stdin", Stdin)
    with artifact_source(memory.opened, "-") as source:
        assert (source.name, b"".join(source.pieces()), b"".join(source.pieces())) == ("", b"typed", b"typed")
    assert [path for path in stores.paths.memory_blobs_dir.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("name", "error"), [("none", NotFound), (".", InvalidInput), ("a\0b", InvalidInput)])
def test_what_is_no_file_becomes_no_artifact(
    memory: Memory, tmp_path: Path, name: str, error: type[Exception]
) -> None:
    with pytest.raises(error), artifact_source(memory.opened, str(tmp_path / name)):
        raise AssertionError("it was taken")


def test_an_artifact_is_written_to_a_file_or_into_a_folder(memory: Memory, tmp_path: Path) -> None:
    memory.add()
    assert memory.fetch(tmp_path / "copy.bin") == (tmp_path / "copy.bin", 0)
    assert (tmp_path / "copy.bin").read_bytes() == LARGE
    assert memory.fetch(tmp_path / "copy.bin") == (tmp_path / "copy.bin", len(LARGE))
    assert memory.fetch(tmp_path) == (tmp_path / "model", 0)
    assert memory.fetch(tmp_path / "part", part=(5, 9)) == (tmp_path / "part", 0)
    assert (tmp_path / "part").read_bytes() == LARGE[5:9]
    assert [path.name for path in tmp_path.rglob("*.part")] == []
    for part in (None, (5, 9)):
        with pytest.raises(StorageError, match="it is not there"):
            memory.fetch(tmp_path / "no folder" / "copy", part=part)


@pytest.mark.parametrize("below", ["x", ".", "runs/x", "new/x", ".git/x"])
def test_nothing_is_fetched_into_the_memory(memory: Memory, tmp_path: Path, below: str) -> None:
    memory.add()
    before = memory.clone.files.paths()
    link = tmp_path / "link"
    link.symlink_to(memory.clone.root)
    for place in (memory.clone.root / below, link / below):
        with pytest.raises(InvalidInput, match="lies in the memory itself"):
            memory.fetch(place)
    file_link = tmp_path / "file"
    file_link.symlink_to(memory.clone.root / "linked")
    with pytest.raises(InvalidInput, match="lies in the memory itself"):
        memory.fetch(file_link)
    assert memory.clone.files.paths() == before


def _broken(data: bytes, at: int, start: int) -> Iterator[bytes]:
    """The bytes from `start` on, until the line breaks `at` a place."""
    for place in range(start, len(data), 1 << 20):
        if place >= at:
            raise NetworkError("the line broke")
        yield data[place : place + (1 << 20)]


def test_a_broken_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    target, starts = tmp_path / "model", []

    def pieces_from(start: int) -> Iterator[bytes]:
        starts.append(start)
        return _broken(LARGE, (1 << 20) * len(starts), start)

    for _ in range(2):
        with pytest.raises(NetworkError):
            files_of_artifacts.fetch(target, SHA256, len(LARGE), pieces_from)
        assert not target.exists()
    assert files_of_artifacts.fetch(target, SHA256, len(LARGE), pieces_from) == 2 << 20
    assert starts == [0, 1 << 20, 2 << 20]
    assert target.read_bytes() == LARGE
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("left", [b"", b"x" * 100, LARGE[: 1 << 20], LARGE, LARGE + b"x"])
def test_whatever_an_earlier_try_left_the_whole_is_right_or_not_there(tmp_path: Path, left: bytes) -> None:
    target = tmp_path / "model"
    part = tmp_path / f".model.{SHA256[:12]}.part"

    def pieces_from(start: int) -> Iterator[bytes]:
        return _broken(LARGE, 1 << 30, start)

    part.write_bytes(left)
    if left == b"x" * 100:
        with pytest.raises(BrokenFormat, match="not what it should be"):
            files_of_artifacts.fetch(target, SHA256, len(LARGE), pieces_from)
        assert list(tmp_path.iterdir()) == []
    files_of_artifacts.fetch(target, SHA256, len(LARGE), pieces_from)
    assert target.read_bytes() == LARGE


def test_damaged_bytes_never_come_to_stand_under_the_name(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.write_bytes(b"what was there")
    damaged = LARGE[:-1] + b"\0"
    with pytest.raises(BrokenFormat, match="damaged where they lie"):
        files_of_artifacts.fetch(target, SHA256, len(LARGE), lambda start: _broken(damaged, 1 << 30, start))
    assert target.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [target]


def test_two_who_fetch_to_one_file_do_not_mix_their_bytes(tmp_path: Path) -> None:
    def pieces_from(start: int) -> Iterator[bytes]:
        with pytest.raises(ConflictError, match="another process is fetching"):
            files_of_artifacts.fetch(tmp_path / "model", SHA256, len(LARGE), pieces_from)
        return _broken(LARGE, 1 << 30, start)

    files_of_artifacts.fetch(tmp_path / "model", SHA256, len(LARGE), pieces_from)
    assert (tmp_path / "model").read_bytes() == LARGE
