"""What looks like a secret in a text that is about to be kept: named by its kind, and never shown.

The one list of patterns. Whoever warned from a second one would let through what this one knows.
"""

from __future__ import annotations

import re

_START = r"(?<![A-Za-z0-9_-])"
"""Not within a word: every part of a long text is looked at once."""
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")),
    ("an AWS access key", re.compile(_START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b")),
    ("a GitHub token", re.compile(_START + r"(?:gh[pousr]_[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9_]{40})")),
    ("a GitLab token", re.compile(_START + r"glpat-[A-Za-z0-9_-]{20}")),
    ("an API key", re.compile(_START + r"(?:sk|rk)[-_](?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20}")),
    ("a Google API key", re.compile(_START + r"AIza[A-Za-z0-9_-]{35}")),
    ("a Slack token", re.compile(_START + r"xox[abeoprs]-[A-Za-z0-9-]{10}")),
    ("a package registry's token", re.compile(_START + r"(?:npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{40})")),
    ("a JSON web token", re.compile(_START + r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8}", re.ASCII)),
    (
        "a password in a URL",
        re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s/:@\"']{0,64}:([^\s/:@\"'$<{*][^\s/:@\"']{2,127})@"),
    ),
)
_NAMED = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|(?:access|auth|refresh)[_-]?token)[a-z0-9_-]{0,24}"
    r"[\\\"']{0,3}[ \t]{0,3}([=:])[ \t]{0,3}[\\\"']{0,3}([^\s\\\"'`,;]{6,512})",
    re.IGNORECASE | re.ASCII,
)
"""`password=…`, `"api_key": "…"`, `SECRET_ACCESS_KEY: …`; in JSON inside JSON too."""
_STANDS_IN = re.compile(
    r"[$<{\[(*%&.=!]|x{3,}|your|change|example|dummy|redacted|hidden|placeholder|none\b|null\b|true\b|false\b"
    r"|os\.|env|process\.|getenv|self\.|config|settings|args\.|str\b|string|optional|required|secretstr"
    r"|[a-z_.]*(?:passw(?:or)?d|pwd|secret|token|key)[a-z_]*\W?\Z",
    re.IGNORECASE | re.ASCII,
)
"""How a value looks that is the name of one, or stands in for one."""


def seen_secrets(text: str) -> list[str]:
    """The kinds of secrets that `text` seems to hold, such as `a private key`, each once; none where it holds none."""
    kinds = [kind for kind, pattern in _KINDS if pattern.search(text)]
    if any(_is_secret(found) for found in _NAMED.finditer(text)):
        kinds.append("a password")
    return kinds


def _is_secret(found: re.Match[str]) -> bool:
    sign, value = found.groups()
    if _STANDS_IN.match(value) is not None or "(" in value:
        return False
    return sign == "=" or any(character.isdigit() for character in value)
