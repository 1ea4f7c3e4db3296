"""The marker: committed by anybody, so nothing in it runs, and nothing in it leads where nobody looked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import BrokenFormat, FormatError, InvalidInput
from raddle.model.memory.marker import (
    Marker,
    StorePlace,
    check_branch,
    check_url,
    decode_marker,
    encode_marker,
    path_below_host,
)
from tests.unit.memory_files import MARKER

NO_BRANCHES = (
    *(
        "",
        "-x",
        "HEAD",
        "@",
        "a..b",
        "a b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        ".a",
    ),
    *("a/.b", "a.lock", "a.lock/b", "a.", "a@{1}", "refs/heads/x", "a\x00", "a\x7f", "a\u200b", "x" * 201),
)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/team/memory.git",
        "https://ada@example.org:8443/memory.git",
        "ssh://git@example.org:22/team/memory.git",
        "ssh://git@[::1]/memory.git",
        "git://example.org/memory.git",
        "git@example.org:team/memory.git",
        "example.org:memory.git",
        "/srv/git/memory.git",
        "../memory.git",
        "./a b/memory.git",
        "./a:b",
    ],
)
def test_plain_addresses_are_taken(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ext::sh -c 'touch /tmp/x'",
        "fd::17",
        "::x",
        "http+unix::x",
        "-oProxyCommand=x",
        "--upload-pack=x",
        "ssh://-oProxyCommand=x/y",
        "ssh://-x@host/y",
        "ssh://host/-x",
        "-x@host:y",
        "host:-x",
        "user@-host:y",
        "http://example.org/x",
        "file:///etc",
        "ftp://example.org/x",
        "HTTPS+ext://x/y",
        "https://example.org",
        "https:///x",
        "https://ada:secret@example.org/x",
        "https://example.org/x%0ahost=evil",
        "https://a b/x",
        "https://example.org\n/x",
        "C:\\store",
        "c:store",
        "\\\\host\\share",
        "https://exa\u200bmple.org/x",
        "x" * 2_001,
    ],
)
def test_addresses_that_could_do_something_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_url(url)
    assert "secret" not in refused.value.message
    assert refused.value.message.isprintable()
    with pytest.raises((InvalidInput, FormatError)):
        decode_marker(encode_unchecked(url=url or "-"))


def encode_unchecked(path: str = "./st", branch: str = "b", url: str | None = None) -> bytes:
    lines = ["schema_version: 1", "store:", "  mode: worktree"]
    fields = {"path": path, "branch": branch, "url": url}
    quoted = {
        name: "'" + value.replace("'", "''") + "'" for name, value in fields.items() if value is not None
    }
    return "\n".join([*lines, *(f"  {name}: {value}" for name, value in quoted.items())]).encode()


@given(st.text("abc:@/-.[]%~\\ \x00\n", max_size=20))
def test_no_address_that_is_taken_is_an_option_or_a_program(url: str) -> None:
    try:
        check_url(url)
    except InvalidInput:
        return
    head = url.partition("/")[0]
    assert not url.startswith("-")
    assert not head.replace("[", "").startswith("-")
    assert "::" not in head or "[" in head
    assert not any(character in url for character in "\x00\n\\")


@pytest.mark.parametrize("name", ["raddle-store", "a/b", "x.y", "ünï", "v1"])
def test_a_branch_is_taken(name: str) -> None:
    assert check_branch(name) == name


@pytest.mark.parametrize("name", NO_BRANCHES)
def test_what_git_would_read_as_something_else_is_no_branch(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_branch(name)


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("./redthread-store", "redthread-store"),
        ("a/./b/", "a/b"),
        ("../outside", None),
        ("a/../../outside", None),
        ("/srv/store", None),
        ("~/store", None),
        (".", None),
    ],
)
def test_a_path_leads_below_the_repository_or_is_asked_about(path: str, below: str | None) -> None:
    assert path_below_host(path) == below
    assert decode_marker(encode_unchecked(path=path)).store.path == path


@pytest.mark.parametrize("path", ["", ".git", ".git/hooks", "a/.GIT/b", "a\\b", "-x", "a\u202eb", "a/git~1"])
def test_a_path_into_gits_own_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        decode_marker(encode_unchecked(path=path))


def test_the_peers_marker_is_read_and_written() -> None:
    marker = decode_marker(MARKER.encode())
    assert marker == Marker(store=StorePlace(mode="worktree", path="./st", branch="redthread-store"))
    assert encode_marker(marker).decode() == MARKER
    commented = MARKER.replace("store:", "# where it is\nstore:").encode()
    assert encode_marker(decode_marker(commented), commented) == commented


@pytest.mark.parametrize(
    "text",
    [
        "schema_version: 1",
        "store: x",
        "store: {mode: other, path: x}",
        "store: {mode: worktree, path: x}",
        "store: {mode: repo, path: x, url: [1]}",
    ],
)
def test_a_marker_that_says_too_little_is_broken(text: str) -> None:
    with pytest.raises(BrokenFormat):
        decode_marker(text.encode())


def test_no_marker_is_written_with_an_address_that_would_be_refused() -> None:
    with pytest.raises(InvalidInput):
        encode_marker(Marker(store=StorePlace(mode="repo", path="./st", url="ext::x")))
