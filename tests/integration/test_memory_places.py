"""Which memory is meant: found by walking up, named by a person, and never chosen by a stranger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raddle.adapters.memory_repo.markers import FoundMarker, read_marker
from raddle.config import load_config
from raddle.model.errors import BrokenFormat, InvalidInput, NewerFormat, NotFound
from raddle.model.memory.repo_layout import MARKER_FILE, PEER_MARKER_FILE, PROJECT_FILE
from raddle.wiring.memory import read_project
from raddle.wiring.memory_places import (
    find_store,
    is_cut_short,
    is_store,
    known_stores,
    marked_place,
    note_store,
)
from tests.memory_hosts import lay, make_code


def make_store(root: Path) -> Path:
    """A folder that looks like a store."""
    lay(root, {PROJECT_FILE: "project_id: loom\nphases: [build]\n", "runs/.gitkeep": ""})
    return root


def mark(host: Path, path: str, name: str = MARKER_FILE, *, mode: str = "repo") -> Path:
    """A folder of code whose marker names a store."""
    lay(host, {name: f"schema_version: 1\nstore: {{mode: {mode}, path: '{path}', branch: b}}\n"})
    return host


def found(workspace: Path, given: str | None = None, **flags: str) -> tuple[Path, Path | None]:
    """Where the store is, and whose marker names it."""
    place = find_store(load_config(None, workspace=str(workspace), **flags), given)
    return place.root, place.host


def test_the_nearest_store_or_marker_above_is_meant(tmp_path: Path) -> None:
    host = mark(tmp_path / "code", "./m")
    make_store(host / "m")
    (host / "src" / "deep").mkdir(parents=True)
    assert found(host / "src" / "deep") == (host / "m", host)
    assert found(host / "m" / "runs") == (host / "m", host)
    inner = mark(host / "src", "./mine")
    make_store(inner / "mine")
    assert found(host / "src" / "deep") == (inner / "mine", inner)


def test_what_a_person_names_goes_before_it(tmp_path: Path) -> None:
    host = mark(tmp_path / "code", "./m")
    make_store(host / "m")
    assert found(host, str(tmp_path / "other")) == (tmp_path / "other", None)
    assert found(host, store=str(tmp_path / "other")) == (tmp_path / "other", None)
    assert found(host, str(tmp_path / "a"), store=str(tmp_path / "b")) == (tmp_path / "a", None)


def test_a_link_of_the_persons_own_is_followed(tmp_path: Path) -> None:
    make_store(tmp_path / "m")
    (tmp_path / "link").symlink_to(tmp_path / "m")
    assert found(tmp_path, str(tmp_path / "link")) == (tmp_path / "m", None)


def test_ours_is_read_before_the_peers(tmp_path: Path) -> None:
    host = mark(mark(tmp_path / "code", "./theirs", PEER_MARKER_FILE), "./ours")
    make_store(host / "theirs")
    make_store(host / "ours")
    assert found(host)[0] == host / "ours"
    (host / MARKER_FILE).unlink()
    assert found(host)[0] == host / "theirs"


def test_without_any_a_person_is_told_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as refused:
        found(tmp_path)
    assert "raddle store init" in refused.value.hint
    assert "raddle store attach" in refused.value.hint


def test_a_store_that_is_not_here_yet_is_attached_first(tmp_path: Path) -> None:
    host = mark(tmp_path / "code", "./m")
    with pytest.raises(NotFound) as refused:
        found(host)
    assert "raddle store attach" in refused.value.hint


def test_a_marker_from_the_future_is_not_guessed_at(tmp_path: Path) -> None:
    host = mark(make_store(tmp_path / "code" / "m").parent, "./m")
    (host / MARKER_FILE).write_text("schema_version: 2\nstore: {place: ./m}\n")
    with pytest.raises(NewerFormat):
        found(host)


@pytest.mark.parametrize("path", ["../m", "/m", "~/m", "a/../../m", "."])
def test_a_place_outside_of_the_code_is_a_persons_to_name(tmp_path: Path, path: str) -> None:
    host = mark(tmp_path / "code", path)
    make_store(tmp_path / "m")
    with pytest.raises(InvalidInput, match="outside") as refused:
        found(host)
    assert "raddle store attach --store" in refused.value.hint


def test_once_a_person_named_it_for_this_code_it_is_found(tmp_path: Path) -> None:
    host, other = mark(tmp_path / "code", "../m"), mark(tmp_path / "other", "../m")
    make_store(tmp_path / "m")
    note_store(load_config().paths, tmp_path / "m", host)
    assert found(host) == (tmp_path / "m", host)
    with pytest.raises(InvalidInput, match="outside"):
        found(other)


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    make_store(tmp_path / "m")
    host = mark(tmp_path / "code", "./m")
    (host / "m").symlink_to(tmp_path / "m")
    with pytest.raises(InvalidInput, match="link"):
        found(host)


def test_a_marker_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key: hunter2\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / MARKER_FILE).symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidInput, match="is a link") as refused:
        found(tmp_path / "code")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.write_bytes(b"#" * 70_000)])
def test_a_marker_that_is_no_small_file_is_not_waited_for(tmp_path: Path, make: object) -> None:
    (tmp_path / "code").mkdir()
    make(tmp_path / "code" / MARKER_FILE)  # type: ignore[operator]
    with pytest.raises(BrokenFormat):
        found(tmp_path / "code")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's file")
def test_a_strangers_marker_above_the_workspace_is_not_followed(tmp_path: Path) -> None:
    host = mark(tmp_path / "shared", "./m")
    make_store(host / "m")
    (host / "mine").mkdir()
    os.chown(host / MARKER_FILE, 12345, 12345)
    with pytest.raises(InvalidInput, match="another user"):
        found(host / "mine")
    (host / MARKER_FILE).unlink()
    make_store(host)
    os.chown(host / PROJECT_FILE, 12345, 12345)
    with pytest.raises(InvalidInput, match="another user"):
        found(host / "mine")


def test_a_workspace_that_is_gone_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        found(tmp_path / "gone")


def test_a_project_file_alone_is_no_store(tmp_path: Path) -> None:
    (tmp_path / PROJECT_FILE).write_text("name: somebody else's\n")
    assert not is_store(tmp_path)
    (tmp_path / "memory").mkdir()
    assert is_store(tmp_path)


@pytest.mark.parametrize("place", ["code", "sub"])
def test_code_with_a_project_file_of_its_own_is_no_store(tmp_path: Path, place: str) -> None:
    code = make_code(tmp_path / "code")
    files = {PROJECT_FILE: "project_id: site\n", ".gitattributes": "* -text\n"}
    lay(code / "sub" if place == "sub" else code, files)
    assert not is_store(code)
    assert not is_store(code / "sub")
    with pytest.raises(NotFound):
        found(code / "sub" if place == "sub" else code)
    (code / PROJECT_FILE).unlink(missing_ok=True)
    assert not is_cut_short(code)


def test_a_store_is_known_by_its_attributes_where_its_folders_are_gone(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {PROJECT_FILE: "project_id: loom\nphases: [build]\n", ".gitattributes": "* -text\n*.md diff\n"},
    )
    assert found(tmp_path) == (tmp_path, None)
    lay(tmp_path, {PROJECT_FILE: "schema_version: 2\n"})
    assert is_store(tmp_path)


class TestTheListOfStores:
    def test_they_are_told_of_as_long_as_they_are_there(self, tmp_path: Path) -> None:
        paths = load_config().paths
        first, second = make_store(tmp_path / "a"), make_store(tmp_path / "b")
        for root in (first, second, first):
            note_store(paths, root)
        assert known_stores(paths) == [second, first]
        (first / PROJECT_FILE).unlink()
        assert known_stores(paths) == [second]
        make_store(first)
        assert known_stores(paths) == [second, first]

    def test_each_data_folder_has_its_own(self, tmp_path: Path) -> None:
        note_store(load_config().paths, make_store(tmp_path / "a"))
        assert known_stores(load_config(data_dir=str(tmp_path / "data")).paths) == []

    def test_a_name_that_is_no_text_is_kept(self, tmp_path: Path) -> None:
        root = make_store(tmp_path / os.fsdecode(b"caf\xe9"))
        note_store(load_config().paths, root)
        assert known_stores(load_config().paths) == [root]

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"stores": 3}', '{"stores": [{}]}', '{"stores": ["x"]}']
    )
    def test_a_damaged_list_is_an_empty_one(self, tmp_path: Path, text: str) -> None:
        paths = load_config().paths
        note_store(paths, make_store(tmp_path / "a"))
        (listed,) = paths.state_dir.glob("stores-*.json")
        listed.write_text(text)
        assert known_stores(paths) == []
        note_store(paths, tmp_path / "a")
        assert known_stores(paths) == [tmp_path / "a"]

    def test_a_host_is_kept_when_the_store_is_noted_again_without_it(self, tmp_path: Path) -> None:
        paths = load_config().paths
        host = mark(tmp_path / "code", "../m")
        note_store(paths, make_store(tmp_path / "m"), host)
        note_store(paths, tmp_path / "m")
        assert marked_place(_marker(host), paths) == tmp_path / "m"


def _marker(host: Path) -> FoundMarker:
    marker = read_marker(host)
    assert marker is not None
    return marker


def test_a_project_file_that_cannot_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    root = make_store(tmp_path / "store")
    (root / PROJECT_FILE).write_text("{{{{")
    with pytest.raises(BrokenFormat) as broken:
        read_project(root)
    assert "verify --fix" in broken.value.hint
