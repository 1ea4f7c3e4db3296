"""Who may read a thread, case by case; the server's predicate is held to the same table."""

from __future__ import annotations

import itertools

import pytest

from raddle.model.errors import InvalidInput
from raddle.model.threads.visibility import (
    ORGANIZATION,
    PRIVATE,
    PUBLIC,
    Viewer,
    may_read,
    narrowest,
    parse_visibility,
)

STRANGER = Viewer()
SIGNED_IN = Viewer(is_signed_in=True)
OWNER = Viewer(is_signed_in=True, is_owner=True)
MEMBER = Viewer(is_signed_in=True, is_member=True)
SUPPORT = Viewer(is_signed_in=True, is_support=True)
EVERYBODY = (STRANGER, SIGNED_IN, OWNER, MEMBER, SUPPORT)
EVERY_VIEWER = [
    Viewer(is_signed_in=signed_in, is_owner=owner, is_member=member, is_support=support)
    for signed_in, owner, member, support in itertools.product((False, True), repeat=4)
]


def readers(
    visibility: str, *, private: bool = False, support: bool = False, deleted: bool = False
) -> set[Viewer]:
    """Who of EVERYBODY may read such a thread."""
    return {
        viewer
        for viewer in EVERYBODY
        if may_read(
            visibility,
            is_private=private,
            is_shared_with_support=support,
            is_deleted=deleted,
            viewer=viewer,
        )
    }


@pytest.mark.parametrize(
    ("visibility", "support", "expected"),
    [
        (PRIVATE, False, {OWNER}),
        (PRIVATE, True, {OWNER, SUPPORT}),
        (ORGANIZATION, False, {OWNER, MEMBER}),
        (ORGANIZATION, True, {OWNER, MEMBER, SUPPORT}),
        (PUBLIC, False, set(EVERYBODY)),
        (PUBLIC, True, set(EVERYBODY)),
    ],
)
def test_a_thread_is_read_by_whom_its_visibility_names(
    visibility: str, support: bool, expected: set[Viewer]
) -> None:
    assert readers(visibility, support=support) == expected


@pytest.mark.parametrize("visibility", [PRIVATE, ORGANIZATION, PUBLIC])
@pytest.mark.parametrize("support", [False, True])
def test_a_private_thread_and_a_deleted_one_are_their_owners_alone(visibility: str, support: bool) -> None:
    assert readers(visibility, private=True, support=support) == {OWNER}
    assert readers(visibility, deleted=True, support=support) == {OWNER}


def test_who_is_not_signed_in_is_nobodys_owner_member_or_support() -> None:
    claims = Viewer(is_owner=True, is_member=True, is_support=True)
    for visibility in (PRIVATE, ORGANIZATION):
        assert not may_read(
            visibility, is_private=False, is_shared_with_support=True, is_deleted=False, viewer=claims
        )


def test_a_visibility_that_a_newer_raddle_wrote_counts_as_private() -> None:
    assert readers("team") == {OWNER}
    assert readers("") == {OWNER}


def test_a_wider_visibility_takes_a_thread_from_nobody() -> None:
    for viewer in EVERY_VIEWER:
        answers = [
            may_read(
                visibility, is_private=False, is_shared_with_support=False, is_deleted=False, viewer=viewer
            )
            for visibility in (PRIVATE, ORGANIZATION, PUBLIC)
        ]
        assert answers == sorted(answers), viewer


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("organization", ORGANIZATION),
        ("organisation", ORGANIZATION),
        ("Organisation", ORGANIZATION),
        ("ORGANIZATION", ORGANIZATION),
        (" private ", PRIVATE),
        ("Private", PRIVATE),
        ("PUBLIC", PUBLIC),
    ],
)
def test_a_visibility_is_read_in_either_spelling_and_any_case(text: str, name: str) -> None:
    assert parse_visibility(text) == name
    assert readers(text) == readers(name)


@pytest.mark.parametrize(
    "text", ["", "org", "publik", "organizations", "organisationorganisation", "x" * 999]
)
def test_what_is_no_visibility_is_refused_with_the_ones_there_are(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_visibility(text)
    assert "private, organization, public" in caught.value.hint
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([PUBLIC, ORGANIZATION], ORGANIZATION),
        ([PUBLIC, PRIVATE, ORGANIZATION], PRIVATE),
        (["Public"], PUBLIC),
        (["organisation", "PUBLIC"], ORGANIZATION),
        ([PUBLIC, 7], PRIVATE),
        ([PUBLIC, "team"], PRIVATE),
        ([], ORGANIZATION),
    ],
)
def test_of_several_visibilities_the_narrowest_counts(values: list[object], expected: str) -> None:
    assert narrowest(values) == expected
