"""Hostile names against the one place that spells paths: what comes out every system holds, or nothing does."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from raddle.model.errors import InvalidInput
from raddle.model.memory.names import folded, is_dangerous
from raddle.model.memory.repo_layout import (
    DEEPEST_KEY,
    LONGEST_KEY,
    artifact_file,
    check_new_key,
    conflict_path,
    entry_file,
    handoff_file,
    is_portable,
    is_safe,
    memory_file,
    moved_artifact_path,
    parse_conflict,
    place_of,
    run_file,
    summary_file,
)

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
PIECES = (
    *(
        ".git",
        ".GIT",
        "git~1",
        ".gitmodules",
        "..",
        ".",
        "/",
        "\\",
        ":",
        "::$INDEX_ALLOCATION",
        "con",
        "NUL",
        "com1",
        ".txt",
    ),
    *(
        " ",
        "\u200c",
        "\u202e",
        "\ufeff",
        "\uff0e",
        "\uff47",
        "\u0131",
        "\u0307",
        "e\u0301",
        "\u00e9",
        "ß",
        "\x00",
        "\n",
        "\x7f",
        "\ud800",
    ),
    *("a", "A", "~1", "*", "?", "<", "|", '"', "-", ".conflict-n-", RUN, "\u00b9", "🧶", "x" * 60),
)
hostile = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=6).map("".join) | st.text(max_size=20)
DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    "conin$",
    "conout$",
    *(f"{name}{digit}" for name in ("com", "lpt") for digit in "0123456789¹²³"),
}

SPELL: tuple[Callable[[str], str], ...] = (
    lambda text: memory_file("notes", text),
    lambda text: memory_file(text, "key"),
    lambda text: summary_file(RUN, text),
    lambda text: handoff_file(RUN, text),
    lambda text: artifact_file(RUN, "build", text, ".txt"),
    lambda text: artifact_file(RUN, "build", "model", text),
    lambda text: entry_file(RUN, text, 1, RUN),
    lambda text: entry_file(RUN, "build", 1, text),
    run_file,
)


def shown_on_one_line(refused: InvalidInput) -> None:
    assert refused.message.isprintable()


def every_system_holds(path: str) -> None:
    """The rules of git, Windows and macOS, written down a second time and in another way."""
    assert path == unicodedata.normalize("NFC", path)
    assert "\\" not in path
    for part in path.split("/"):
        assert part not in ("", ".", "..")
        assert len(part.encode()) <= 255
        assert not set(part) & set('<>:"|?*')
        assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in part)
        assert part == part.rstrip(". ")
        assert part.split(".")[0].rstrip().lower() not in DEVICES
        bare = "".join(
            c for c in unicodedata.normalize("NFKD", part).lower() if unicodedata.category(c) != "Cf"
        )
        assert not bare.startswith(".git") or bare[4:5] not in ("", " ", ":")
        assert not bare.startswith("git~")


@given(hostile)
@example(".git")
@example("a/.git/b")
@example(".g\u200cit")
@example("con.txt")
def test_a_path_that_is_spelled_is_one_that_every_system_holds(text: str) -> None:
    for number, spell in enumerate(SPELL):
        try:
            path = spell(text)
        except InvalidInput as refused:
            shown_on_one_line(refused)
            continue
        every_system_holds(path)
        assert is_safe(path)
        assert is_portable(path)
        assert place_of(path).kind not in ("other", "conflict") or number == 5
        assert path.startswith(("memory/", "runs/"))
        assert len(path.split("/")) <= DEEPEST_KEY + 2
        assert len(path.encode()) <= LONGEST_KEY + 200


@given(hostile, hostile)
def test_no_two_keys_that_are_written_are_one_to_a_file_system(one: str, other: str) -> None:
    try:
        first = check_new_key(one, [])
        second = check_new_key(other, [first])
    except InvalidInput:
        return
    if first != second:
        for form in ("NFC", "NFD", "NFKC"):
            if form != "NFKC":
                names = [unicodedata.normalize(form, key).casefold() for key in (first, second)]
                assert names[0] != names[1]
                assert not f"{names[0]}/".startswith(f"{names[1]}/")
                assert not f"{names[1]}/".startswith(f"{names[0]}/")


@given(hostile)
def test_a_path_from_a_tree_is_known_for_what_it_is(path: str) -> None:
    place = place_of(path)
    assert place.path == path
    if not is_safe(path):
        assert place.kind == "other"
    if is_portable(path) and path != ".gitattributes":
        every_system_holds(path)
    if place.kind == "memory" and is_portable(path):
        assert memory_file(place.namespace, place.key) == path


@given(hostile, hostile)
def test_a_conflict_of_a_safe_path_is_safe_and_leads_back(path: str, node: str) -> None:
    if not is_safe(path):
        return
    for beside in (conflict_path(path, node, RUN), moved_artifact_path(path, node, RUN)):
        assert is_safe(beside)
        assert beside.rpartition("/")[0] == path.rpartition("/")[0]
        found = parse_conflict(beside)
        assert found is not None
        if len(path.rpartition("/")[2].encode()) <= 180:
            assert found.of == path
            assert found.conflict_id == RUN


@given(hostile)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@given(st.lists(st.text("ab.-_~ GgIiTt\u200c\\:0", max_size=6), max_size=4).map("/".join))
def test_a_path_is_safe_when_each_of_its_names_is(path: str) -> None:
    assert is_safe(path) == (bool(path) and not any(map(is_dangerous, path.split("/"))))
