"""Which threads belong to a place: by the repository that they name, else by the folder that they were written in."""

from __future__ import annotations

import pytest

from raddle.model.threads.reach import Reach

REPOSITORY = Reach(remote="example.org/dev/kiln", folders=("/src/kiln", "/home/ada/kiln"), is_deep=True)
FOLDER = Reach(folders=("/src/kiln",))


@pytest.mark.parametrize(
    ("remote", "workspace", "is_repositorys", "is_folders"),
    [
        ("example.org/dev/kiln", "/elsewhere", True, False),
        ("example.org/dev/KILN", "/src/kiln", False, False),
        ("example.org/dev/loom", "/src/kiln", False, False),
        (None, "/src/kiln", True, True),
        ("", "/src/kiln/", True, True),
        (None, "/home/ada/kiln/src/deep", True, False),
        (None, "/src/kiln-2", False, False),
        (None, "/src", False, False),
        (None, None, False, False),
        (None, "", False, False),
    ],
)
def test_a_thread_belongs_to_its_repository_or_to_its_folder(
    remote: str | None, workspace: str | None, is_repositorys: bool, is_folders: bool
) -> None:
    assert REPOSITORY.holds(remote, workspace) is is_repositorys
    assert FOLDER.holds(remote, workspace) is is_folders


def test_the_root_of_the_file_system_is_a_folder_too() -> None:
    assert Reach(folders=("/",)).holds(None, "/")
    assert not Reach(folders=("/",)).holds(None, "/src")
    assert Reach(folders=("/",), is_deep=True).holds(None, "/src")
    assert not Reach().holds(None, None)
