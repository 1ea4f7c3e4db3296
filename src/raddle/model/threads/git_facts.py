"""Which repository, branch and commit a thread was written against, and a repository's one name.

The slug (`github.com/owner/name`) is what threads are found, shared and kept private by. Another spelling
of the rules would give one repository two names, and a name made carelessly would publish the password
that stands in a remote's URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct


class GitSnapshot(Struct, frozen=True, kw_only=True):
    """What git said at one moment; None where it did not say."""

    branch: str | None = None
    """None also where HEAD is detached."""
    head: str | None = None
    """The full sha of the commit; None also before the first one."""
    is_dirty: bool | None = None
    """Would `git status` say that something is not committed? Untracked files count."""
    remote: str | None = None
    """The slug of `origin`, else of `upstream`, else of the first remote."""
    root: str | None = None
    """Absolute path of the working tree; None for a bare repository."""


_LONGEST = 2048
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)\Z", re.DOTALL)
_WEB_SCHEMES = frozenset({"http", "https", "git"})
_SSH_SCHEMES = frozenset({"ssh", "git+ssh", "ssh+git"})
_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::(.*))?\Z", re.DOTALL)
_SCP = re.compile(r"(?:[^/:\[]*@)?(\[[^\[\]/]*\]|[^/:@\[\]]+):(.*)\Z", re.DOTALL)
_NOT_SCP_HOSTS = frozenset({"file", "http", "https", "ssh", "ftp", "ftps"})
"""`file:x`, and URLs that lost a slash."""
_HOST = re.compile(r"[\w.-]+\Z")
_IPV6 = re.compile(r"[0-9a-f]*:[0-9a-f:.]*\Z")
_UNFIT = re.compile(r"[\x00-\x1f\x7f]|[^\S ]")
"""Control characters, and white space other than a blank."""


def slug(url: str) -> str | None:
    """The normalised name of the repository that a remote's URL leads to: `host/path`; None where it is none.

    Reads `http`, `https`, `ssh`, `git` and `git+ssh` URLs and git's `user@host:path` form. User, password,
    port, query and fragment are dropped, the host is lower-cased, the path keeps its case but not its
    first or last slashes or one `.git`. A path of this machine (`/srv/x`, `C:/x`, `file:`) gives None, and so
    does an `@` behind the host: a password with a slash in it (`https://user:pass/word@host/x`) ends there.
    """
    text = url.strip()
    if len(text) > _LONGEST or _UNFIT.search(text):
        return None
    parts = _of_url(text) if "://" in text else _of_scp(text)
    if parts is None or "@" in parts[1] or "\\" in parts[1]:
        return None
    host, path = parts[0].lower(), _clean_path(parts[1])
    if not path or not _is_host(host):
        return None
    return f"{host}/{path}"


def _of_url(text: str) -> tuple[str, str] | None:
    """Host and path of a URL of a known scheme."""
    found = _URL.match(text)
    if found is None:
        return None
    scheme, authority, path = found[1].lower(), found[2], found[3]
    address = authority.rpartition("@")[2]
    if scheme in _WEB_SCHEMES:
        return _without_port(address, path, is_ssh=False)
    if scheme in _SSH_SCHEMES:
        return _without_port(address, path, is_ssh=True)
    return None


def _without_port(address: str, path: str, *, is_ssh: bool) -> tuple[str, str] | None:
    bracketed = _BRACKETED.match(address)
    if bracketed is not None:
        host, port = f"[{bracketed[1]}]", bracketed[2] or ""
    else:
        host, _, port = address.partition(":")
    if not port or (port.isascii() and port.isdigit()):
        return host, path
    # `ssh://git@host:owner/name` is not git's, but package files are full of it.
    return (host, f"{port}{path}") if is_ssh else None


def _of_scp(text: str) -> tuple[str, str] | None:
    """Host and path of `user@host:path`; None for a path of this machine, with a slash before any colon."""
    found = _SCP.match(text)
    if found is None:
        return None
    host, path = found[1], found[2]
    if host.startswith("["):
        host = _unbracketed(host[1:-1])
    is_drive = len(host) == 1
    if (
        is_drive or host.lower() in _NOT_SCP_HOSTS or path.startswith(":")
    ):  # `name::address` is a remote helper's
        return None
    return host, path


def _unbracketed(inside: str) -> str:
    """Git also reads `[user@host:port]:path`, and an IPv6 address keeps its brackets."""
    address = inside.rpartition("@")[2]
    if address.count(":") > 1:
        return f"[{address}]"
    return address.partition(":")[0]


def _clean_path(path: str) -> str:
    bare = re.split(r"[?#]", path, maxsplit=1)[0]
    return bare.strip("/ ").removesuffix(".git").strip("/ ")


def _is_host(host: str) -> bool:
    if host.startswith("["):
        return _IPV6.match(host[1:-1]) is not None
    return _HOST.match(host) is not None


def slug_of_remotes(settings: Iterable[tuple[str, str]]) -> str | None:
    """The slug of `origin`, else of `upstream`, else of the first remote, from a repository's settings.

    `settings` are (`remote.<name>.url`, url) and (`url.<base>.insteadof`, prefix) as git lists them. A short
    form (`work:owner/name`) is read as git rewrites it; a URL is taken as it stands, since what it is
    rewritten to (a mirror, an address with a token) is the way there and not the name.
    """
    urls: dict[str, str] = {}
    bases: list[tuple[str, str]] = []
    for key, value in settings:
        if key.startswith("remote.") and key.endswith(".url"):
            urls.setdefault(key[len("remote.") : -len(".url")], value)
        elif key.startswith("url.") and key.lower().endswith(".insteadof"):
            bases.append((value, key[len("url.") : -len(".insteadof")]))
    chosen = next((urls[name] for name in ("origin", "upstream", *urls) if name in urls), None)
    return slug(_rewritten(chosen, bases)) if chosen is not None else None


def _rewritten(url: str, bases: list[tuple[str, str]]) -> str:
    if "://" in url:
        return url
    prefix, base = max(
        ((prefix, base) for prefix, base in bases if prefix and url.startswith(prefix)),
        key=lambda pair: len(pair[0]),
        default=("", ""),
    )
    return base + url[len(prefix) :]
