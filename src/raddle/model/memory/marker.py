"""The marker: the file in a code repository that says where its memory is, and which addresses it may name.

It is committed, so it is as trustworthy as whoever could push: no address of it may run a program or look like an
option to git, and no path of it is taken without a look at where it leads. `.raddle.yaml`, `.redthread.yaml`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Literal

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat, InvalidInput
from raddle.model.memory.documents import SCHEMA_VERSION, plain_of, read_fields, read_yaml, text_of
from raddle.model.memory.names import is_dangerous, shown
from raddle.model.memory.yaml_text import format_yaml, rewrite_yaml

LONGEST_URL = 2_000
LONGEST_BRANCH = 200

_TRANSPORT = re.compile(r"[A-Za-z0-9+.-]*::")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_AUTHORITY = re.compile(
    r"(?:(?P<user>[^@/:\[\]]+)(?P<password>:[^@/]*)?@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^-@:/\[\]?#%\s][^@:/\[\]?#%\s]*)(?::(?P<port>[0-9]{1,5}))?\Z"
)
_SCP_LIKE = re.compile(
    r"(?:(?P<user>[^@:/]+)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^@:/\[\]]{2,}):(?P<path>.*)\Z", re.DOTALL
)
_CONTROL_ESCAPE = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")
_BAD_IN_A_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|\Z)|(?:^|/)\.|[./]\Z")


class StorePlace(Struct, frozen=True, kw_only=True):
    """`worktree`: a branch of the code repository, checked out at `path`; `repo`: a repository of its own, at `url`."""

    mode: Literal["worktree", "repo"]
    path: str
    branch: str | None = None
    url: str | None = None
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


class Marker(Struct, frozen=True, kw_only=True):
    """Where the memory of a code repository is."""

    schema_version: int = SCHEMA_VERSION
    store: StorePlace
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


def decode_marker(data: bytes, what: str = "the marker") -> Marker:
    """The marker in `data`, its branch, path and URL such as may be used; BrokenFormat, OlderFormat or NewerFormat
    where it cannot be read, InvalidInput where it asks for what is never done."""
    marker = read_fields(
        read_yaml(data, what),
        Marker,
        what,
        {"store": lambda plain: read_fields(plain, StorePlace, f"{what}: store")},
    )
    store = marker.store
    misfits = {"branch", "url"} & store.unknown.keys()
    if misfits or (store.mode == "worktree" and not store.branch):
        raise BrokenFormat(f"{what}: {misfits.pop() if misfits else 'branch'} of the store is no text")
    return checked_marker(marker)


def encode_marker(marker: Marker, old: bytes | None = None) -> bytes:
    """`marker` as YAML; what `old` says beside it (comments, order) stays where it can."""
    plain = plain_of(checked_marker(marker))
    text = (
        format_yaml(plain) if old is None else rewrite_yaml(text_of(old, "the marker"), plain, "the marker")
    )
    return text.encode()


def checked_marker(marker: Marker) -> Marker:
    """`marker` where everything it names may be used; else InvalidInput."""
    _check_store_path(marker.store.path)
    if marker.store.branch:
        check_branch(marker.store.branch)
    if marker.store.url:
        check_url(marker.store.url)
    return marker


def path_below_host(path: str) -> str | None:
    """Where a marker's `path` leads below the code repository, without `.`; None where it leads elsewhere.

    What leads elsewhere is taken from a person, never from a committed file alone.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith(("/", "~")) or ".." in parts or not parts:
        return None
    return "/".join(parts)


def check_branch(name: str) -> str:
    """`name` where git takes it for a branch and nothing else; InvalidInput where not."""
    bad = not name or name.startswith("-") or name in ("@", "HEAD") or _BAD_IN_A_REF.search(name) is not None
    if (
        bad
        or name.startswith(("refs/", "/"))
        or len(name.encode(errors="replace")) > LONGEST_BRANCH
        or _has_unseen(name)
    ):
        raise InvalidInput(f"{shown(name)} cannot be a branch", "choose a name such as raddle-store")
    return name


def check_url(url: str) -> str:
    """`url` where git can be given it: https, ssh, git (`user@host:path` too) or a plain path, without a password.

    InvalidInput for everything else: `ext::` and its like run programs, and a leading `-` is an option.
    """
    if not url or len(url) > LONGEST_URL or _has_unseen(url) or "\\" in url or _CONTROL_ESCAPE.search(url):
        raise _refused(url, "it is empty, too long, or holds characters that no address has")
    if url.startswith("-") or _TRANSPORT.match(url):
        raise _refused(url, "git would take it for an option or a program")
    scheme = _SCHEME.match(url)
    if scheme is not None:
        if scheme[1] not in ("https", "ssh", "git"):
            raise _refused(url, f"{scheme[1]}:// is not taken")
        authority, _, path = url[scheme.end() :].partition("/")
        _check_authority(url, authority, path)
    elif ":" in url.partition("/")[0]:
        _check_scp_like(url)
    return url


def _check_authority(url: str, authority: str, path: str) -> None:
    found = _AUTHORITY.match(authority)
    if found is None or not path or path.startswith("-") or (found["user"] or "").startswith("-"):
        raise _refused(url, "it names no host, or nothing on it")
    if found["password"] is not None:
        raise InvalidInput("the address holds a password", "leave it out; git asks your own credential store")


def _check_scp_like(url: str) -> None:
    found = _SCP_LIKE.match(url)
    if (
        found is None
        or not found["path"]
        or any((found[part] or "").startswith("-") for part in ("user", "host", "path"))
    ):
        raise _refused(url, "it names no host, or nothing on it")


def _check_store_path(path: str) -> None:
    # A path may lead out with `..` (who uses it asks `path_below_host`); what may not be in it is judged part by part.
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if (
        not path
        or "\\" in path
        or len(path) > LONGEST_URL
        or _has_unseen(path)
        or any(map(is_dangerous, parts))
    ):
        raise InvalidInput(
            f"{shown(path)} cannot be a store's folder", "name a folder such as ./raddle-store"
        )
    if path.startswith("-"):
        raise InvalidInput(f"{shown(path)} looks like an option", f"write {shown('./' + path)}")


def _has_unseen(text: str) -> bool:
    """Does it hold a control character, or another that cannot be seen? A plain space may stand in a path."""
    return any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in text)


def _refused(url: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{_without_password(url)} is not an address of a store: {why}",
        "use https://…, ssh://…, user@host:path or a path",
    )


def _without_password(url: str) -> str:
    return shown(re.sub(r"//([^/@:]*):[^/@]*@", r"//\1:…@", url))
