"""Docs and code in step: the map names every room, terms are the code's own, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.sources import class_names, folders, text_files
from tests.seal import CHECKOUT

NOT_CLASSES: dict[str, str] = {
    "Draft": "a text inside a register, by device and reply target",
    "Fold": "something the store does",
    "Fork": "a message with several children: read off the tree",
    "Generation": "a number in the ledger",
    "Join": "a function, on threads and on registers",
    "Notice": "a kind of message",
    "Phase": "a name, and a status inside a run",
    "Pieces": "tokens, as text",
    "Purge": "something an editor does; what stays is a message",
    "Quarantine": "something the store does; what stays is a file",
    "Revision": "a number in a message",
    "Sidechain": "a mark on a message",
    "Stamp": "a register's write without its value, only ever in a file",
    "Summary": "a text, in a file of its own",
    "Visibility": "one of three texts",
}
"""Glossary term -> why the code has no class of that name."""

ADR_SECTIONS = ("Context", "Options", "Decision", "Consequences", "What would change our mind")


def headings(path: str, level: str = "##") -> list[str]:
    """The texts of the headings of one level, in order."""
    return re.findall(rf"^{level} (.+?)\s*$", text_files()[path], re.MULTILINE)


def test_the_map_names_every_folder() -> None:
    text = text_files()["docs/architecture.md"]
    assert [folder for folder in folders() if not re.search(rf"`{folder}/?`", text)] == []


def test_every_term_of_the_glossary_is_a_class_of_that_name() -> None:
    terms = {term: _as_class(term) for term in headings("docs/glossary.md")}
    known = class_names()
    assert [term for term, name in terms.items() if name not in known and term not in NOT_CLASSES] == []


def test_an_exception_of_the_glossary_is_needed_and_reasoned() -> None:
    terms = set(headings("docs/glossary.md"))
    assert NOT_CLASSES.keys() - terms == set(), "no such term"
    assert [term for term in NOT_CLASSES if _as_class(term) in class_names()] == [], (
        "it is a class now: strike it"
    )
    assert [term for term, reason in NOT_CLASSES.items() if not reason.strip()] == []


def _as_class(term: str) -> str:
    """`Import ledger` -> `ImportLedger`."""
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[\s-]+", term))


def test_the_glossary_is_in_alphabetical_order() -> None:
    terms = headings("docs/glossary.md")
    assert terms == sorted(terms, key=str.lower)


def test_no_two_decisions_share_a_number_and_each_answers_every_question() -> None:
    records = [path for path in text_files() if re.fullmatch(r"docs/adr/\d{4}-.+\.md", path)]
    numbers = [PurePosixPath(path).name[:4] for path in records]
    assert sorted(set(numbers)) == numbers
    assert [path for path in records if headings(path) != list(ADR_SECTIONS)] == []


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    assert headings("CHANGELOG.md")[0] == "[Unreleased]"


def test_links_lead_to_files_that_are_there() -> None:
    dead = [
        f"{path}: {link}"
        for path, text in text_files().items()
        if path.endswith(".md")
        for link in _links(text)
        if not (CHECKOUT / path).parent.joinpath(link).exists()
    ]
    assert dead == []


def _links(text: str) -> Iterator[str]:
    """Targets of links to files of this checkout, without their fragment; code blocks are left out."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target and not target.startswith("#"):
            yield target.split("#")[0]
