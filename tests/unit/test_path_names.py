"""The names by which a rule of the config looks for a path, and the one by which it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.adapters.path_names import PathNames, glob_names, normalised, without_detours


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/a/x/../b", "/a/b"),
        ("/a//b/./c/", "/a/b/c"),
        ("//a/b", "/a/b"),
        ("/../..", "/"),
        ("a/../b", "a/../b"),
        ("C:\\a\\..\\b", "C:\\a\\..\\b"),
        ("", ""),
    ],
)
def test_an_absolute_path_loses_its_detours_and_any_other_stays(path: str, plain: str) -> None:
    assert normalised(path) == plain


def test_a_path_is_known_as_given_normalised_and_by_where_its_links_lead(tmp_path: Path) -> None:
    real = tmp_path.resolve()
    (real / "deep/secret").mkdir(parents=True)
    (real / "link").symlink_to("deep/secret")
    assert PathNames()(f"{real}/x/../link/a") == (
        f"{real}/x/../link/a",
        f"{real}/link/a",
        f"{real}/deep/secret/a",
    )
    assert f"{real}/deep" in PathNames()(f"{real}/link/..")
    assert PathNames()("relative/../x") == ("relative/../x",)


@pytest.mark.parametrize("path", ["/a\0b", "/a/\ud800", "/" + "x" * 5000])
def test_what_is_no_name_in_this_file_system_is_known_as_given(path: str) -> None:
    assert path in PathNames()(path)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert f"{tmp_path}/loop/x" in PathNames()(f"{tmp_path}/loop/x")


def test_a_glob_is_also_what_the_folders_before_its_wildcard_lead_to(tmp_path: Path) -> None:
    real = tmp_path.resolve()
    (real / "secret").mkdir()
    (real / "link").symlink_to("secret")
    assert f"{real}/secret/**" in glob_names([f"{real}/link/**"])
    assert f"{real}/secret" in glob_names([f"{real}/x/../link/"])
    assert glob_names(["*/old/*"]) == ("*/old/*",)


def test_a_path_is_kept_without_detours_but_never_as_another_folder(tmp_path: Path) -> None:
    real = tmp_path.resolve()
    (real / "deep/secret").mkdir(parents=True)
    (real / "link").symlink_to("deep/secret")
    assert without_detours(f"{real}/x/../link") == f"{real}/link"
    assert without_detours(f"{real}/link/../y") == f"{real}/deep/y"
