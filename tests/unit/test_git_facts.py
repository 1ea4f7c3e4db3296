"""One name for one repository, however its remote is spelled, and never a secret in it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raddle.model.threads.git_facts import slug, slug_of_remotes

SAME = "github.com/Owner/Name"


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/Owner/Name",
        "https://github.com/Owner/Name.git",
        "https://github.com/Owner/Name/",
        "https://github.com/Owner/Name.git/",
        "https://GitHub.COM/Owner/Name",
        "HTTPS://github.com/Owner/Name",
        "http://github.com/Owner/Name.git",
        "https://me@github.com/Owner/Name.git",
        "https://me:ghp_0123456789@github.com/Owner/Name.git",
        "https://x-access-token:p@ss:w0rd@github.com/Owner/Name",
        "https://github.com:443/Owner/Name",
        "https://github.com:/Owner/Name",
        "https://github.com/Owner/Name.git?access_token=secret",
        "https://github.com/Owner/Name#readme",
        "git://github.com/Owner/Name.git",
        "ssh://git@github.com/Owner/Name.git",
        "ssh://git@github.com:22/Owner/Name.git",
        "ssh://github.com/Owner/Name",
        "git+ssh://git@github.com/Owner/Name.git",
        "git+ssh://git@github.com:Owner/Name.git",
        "git@github.com:Owner/Name.git",
        "git@github.com:Owner/Name",
        "git@github.com:/Owner/Name.git",
        "github.com:Owner/Name.git",
        "git@GITHUB.com:Owner/Name/",
        "[git@github.com:2222]:Owner/Name.git",
        "[github.com:22]:Owner/Name.git",
        "  git@github.com:Owner/Name.git\n",
    ],
)
def test_every_way_to_spell_a_remote_is_one_repository(url: str) -> None:
    assert slug(url) == SAME


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("git@host:/srv/git/repo.git", "host/srv/git/repo"),
        ("host.example:repo", "host.example/repo"),
        ("user@host:~/repo.git", "host/~/repo"),
        ("https://git.sr.ht/~ada/notes", "git.sr.ht/~ada/notes"),
        ("https://gitlab.example/a/b/c/d.git", "gitlab.example/a/b/c/d"),
        ("https://dev.azure.com/org/My%20Project/_git/repo", "dev.azure.com/org/My%20Project/_git/repo"),
        ("ssh://[2001:DB8::1]:2222/owner/name.git", "[2001:db8::1]/owner/name"),
        ("https://[::1]/owner/name", "[::1]/owner/name"),
        ("git@[2001:db8::1]:owner/name.git", "[2001:db8::1]/owner/name"),
        ("[::1]:owner/name", "[::1]/owner/name"),
        ("[git@::1]:owner/name", "[::1]/owner/name"),
        ("https://github.com/a/b.git.git", "github.com/a/b.git"),
        ("ssh://host/srv/tree/.git", "host/srv/tree"),
        ("https://my_host/a", "my_host/a"),
        ("https://xn--bcher-kva.example/a/b", "xn--bcher-kva.example/a/b"),
        ("https://bücher.example/a/b", "bücher.example/a/b"),
        ("git@work:owner/name", "work/owner/name"),
    ],
)
def test_hosts_and_paths_of_other_kinds_keep_their_name(url: str, expected: str) -> None:
    assert slug(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "/srv/git/repo.git",
        "../repo",
        "./odd:name",
        "~/repo",
        "repo",
        "a/b:c",
        "file:///srv/git/repo.git",
        "file://host/srv/repo",
        "file:/srv/repo",
        "file:repo",
        "C:\\code\\repo",
        "C:/code/repo",
        "c:repo",
        "\\\\server\\share\\repo",
        "//server/share/repo",
        "https://host/a\\b",
        "https://github.com",
        "https://github.com/",
        "https://github.com/.git",
        "git@github.com:",
        "https:///owner/name",
        "https://me@/owner/name",
        "ftp://host/a/b",
        "rsync://host/a/b",
        "codecommit::us-east-1://repo",
        "codecommit::us-east-1:repo",
        "ext::sh -c evil",
        "https:github.com/a/b",
        "https://ho st/a",
        "https://host:port/a/b",
        "https://::1/a/b",
        "https://[::1/a/b",
        "https://host/a\x00b",
        "https://host/a\nb",
        "https://host/" + "a" * 5000,
        "user:pass@host:path",
    ],
)
def test_what_leads_to_no_repository_of_a_host_has_no_slug(url: str) -> None:
    assert slug(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2/x@host/owner/name",
        "https://user:12/hunter2@host/owner/name",
        "https://user:12/@host/owner/name",
        "https://hunter2/x@host/owner/name",
        "https://user:hunter2?x@host/owner/name",
        "https://user:12#hunter2@host/owner/name",
        "ssh://user:hunter2/x@host/owner/name",
        "user:hunter2@host:owner/name",
        "git@host:hunter2@other/name",
    ],
)
def test_a_password_that_breaks_the_url_is_not_taken_for_its_path(url: str) -> None:
    assert "hunter2" not in (slug(url) or "")
    assert "user" not in (slug(url) or "").split("/")[1:]


HOSTS = st.from_regex(r"[a-zA-Z][a-zA-Z0-9-]{1,10}(\.[a-zA-Z]{2,5}){1,2}", fullmatch=True)
PATHS = st.lists(st.from_regex(r"[A-Za-z0-9_.~-]{1,8}", fullmatch=True), min_size=1, max_size=4).map("/".join)
USERS = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
PASSWORDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=12)


def is_plain(path: str) -> bool:
    """Does no rule about endings touch it?"""
    return not path.endswith(".git")


@given(HOSTS, PATHS.filter(is_plain), USERS, st.integers(1, 65535))
def test_transport_user_and_port_never_matter(host: str, path: str, user: str, port: int) -> None:
    expected = f"{host.lower()}/{path}"
    spellings = [
        f"https://{host}/{path}.git",
        f"ssh://{user}@{host}:{port}/{path}",
        f"{user}@{host}:{path}.git/",
        f"git://{host}:{port}/{path}/",
        f"http://{user}:{user}@{host}/{path}",
    ]
    assert {slug(url) for url in spellings} == {expected}


@given(st.text(max_size=60) | st.from_regex(r"(https|ssh|git)://.{0,40}|[\w@.:\[\]]{1,12}:.{0,30}"))
@example("https://h/a /")
@example("a@b: /x/.git /")
@example("https://\u0130.x/a")
def test_a_slug_read_as_a_url_is_itself(text: str) -> None:
    name = slug(text)
    if name is not None and not name.endswith(".git"):
        assert slug(f"https://{name}") == name


@given(HOSTS, PATHS, USERS, PASSWORDS)
def test_a_slug_never_holds_a_password(host: str, path: str, user: str, password: str) -> None:
    secret = f"S3CRET{password}"
    for scheme in ("https", "http", "ssh", "git"):
        assert "S3CRET" not in (slug(f"{scheme}://{user}:{secret}@{host}/{path}") or "")
        assert "S3CRET" not in (slug(f"{scheme}://{secret}@{host}/{path}") or "")
    assert "S3CRET" not in (slug(f"{user}:{secret}@{host}:{path}") or "")


ORIGIN = ("remote.origin.url", "git@github.com:a/origin.git")
UPSTREAM = ("remote.upstream.url", "https://github.com/b/upstream")
MIRROR = ("remote.mirror.url", "https://example.org/c/mirror")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([MIRROR, UPSTREAM, ORIGIN], "github.com/a/origin"),
        ([MIRROR, UPSTREAM], "github.com/b/upstream"),
        ([MIRROR, ("remote.z.url", "https://example.org/z")], "example.org/c/mirror"),
        ([ORIGIN, ("remote.origin.url", "https://example.org/second")], "github.com/a/origin"),
        ([("remote.a.b.url", "https://example.org/dotted")], "example.org/dotted"),
        ([("remote.origin.url", "/srv/local"), UPSTREAM], None),
        ([], None),
    ],
)
def test_origin_goes_before_upstream_and_upstream_before_the_first(
    settings: list[tuple[str, str]], expected: str | None
) -> None:
    assert slug_of_remotes(settings) == expected


def test_a_short_form_is_read_as_git_rewrites_it() -> None:
    short = ("remote.origin.url", "gh:owner/name")
    rules = [
        ("url.https://example.org/.insteadof", "g"),
        ("url.git@github.com:.insteadof", "gh:"),
    ]
    assert slug_of_remotes([short, *rules]) == "github.com/owner/name"
    assert slug_of_remotes([short]) == "gh/owner/name"


def test_a_url_that_git_rewrites_to_a_mirror_keeps_its_own_name() -> None:
    rule = ("url.https://token@mirror.example/.insteadof", "https://github.com/")
    assert slug_of_remotes([UPSTREAM, rule]) == "github.com/b/upstream"
