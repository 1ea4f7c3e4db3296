"""Where things lie: names that can be made from an id, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.adapters.paths import Paths
from raddle.model.errors import InvalidInput

ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"


def paths_of(data: str = "/d") -> Paths:
    return Paths(data_dir=Path(data), config_dir=Path("/c"), state_dir=Path("/s"), cache_dir=Path("/k"))


def test_a_thread_has_its_journal_and_its_former_self_beside_it() -> None:
    paths = paths_of()
    assert paths.thread_file(ID) == Path(f"/d/threads/{ID}.json")
    assert paths.journal_file(ID) == Path(f"/d/threads/{ID}.journal")
    assert paths.previous_file(ID) == Path(f"/d/threads/{ID}.prev")
    assert paths.thread_file(ID.upper()) == paths.thread_file(ID)


def test_a_damaged_file_is_kept_beside_itself_and_is_no_thread_file_any_more() -> None:
    paths = paths_of()
    broken = paths.quarantine_file(paths.thread_file(ID), "1796")
    assert broken == Path(f"/d/threads/{ID}.json.broken-1796")
    assert paths.quarantine_reason(broken) == Path(f"/d/threads/{ID}.json.broken-1796.reason")
    assert broken.suffix != ".json"


@pytest.mark.parametrize(
    "hostile", ["../../etc/passwd", "", "T-", f"{ID}/../x", f"{ID}\n", f"{ID}\0", "/etc/passwd"]
)
def test_no_path_is_made_from_what_is_no_id(hostile: str) -> None:
    paths = paths_of()
    for make in (paths.thread_file, paths.journal_file, paths.previous_file, paths.blob_file):
        if hostile.strip() == ID:
            continue
        with pytest.raises(InvalidInput):
            make(hostile)


def test_a_blob_lies_under_its_hash() -> None:
    sha = "ab" * 32
    assert paths_of().blob_file(sha) == Path(f"/d/blobs/ab/{sha}")
    for wrong in (sha.upper(), sha[:-1], sha + "a", sha + "\n"):
        with pytest.raises(InvalidInput):
            paths_of().blob_file(wrong)


def test_two_data_folders_share_no_index_ledger_lock_or_note(tmp_path: Path) -> None:
    one, other = paths_of(str(tmp_path / "one")), paths_of(str(tmp_path / "other"))
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to("one")
    link = paths_of(str(tmp_path / "link"))
    by_mark = ["search_index", "daemon_state", "daemon_log", "own_server_note", "own_server_log"]
    inside = ["import_ledger", "dirty_list", "locks_dir", "daemon_lock_dir", "own_server_lock_dir"]
    for name in by_mark + inside:
        assert getattr(one, name) != getattr(other, name)
    for name in by_mark:
        assert getattr(one, name) == getattr(link, name)


def test_one_folder_for_data_and_state_mixes_no_locks() -> None:
    same = Paths(data_dir=Path("/a"), config_dir=Path("/a"), state_dir=Path("/a"), cache_dir=Path("/a"))
    assert same.locks_dir != same.device_locks_dir
