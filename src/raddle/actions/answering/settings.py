"""Who can answer, as `[responders.NAME]` of config.toml says: one value for every kind, and what each kind needs.

Owns the names and the defaults of those keys. What a key of an API is, is never here: only where it is looked for.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from raddle.model.errors import InvalidInput

Kind = Literal["openai", "anthropic", "orchestrator", "command"]

KINDS: tuple[Kind, ...] = ("openai", "anthropic", "orchestrator", "command")
TIMEOUT_SECONDS = 600.0


class ResponderSettings(Struct, frozen=True, kw_only=True):
    """One responder.

    `url`: the API's base, `/v1` included where it has one. `key_env`: the variable that holds the key; empty: the
    kind's own (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `NSED_API_KEY`); `none`: it gets no key.
    `budget_tokens`: of the path that is sent; None: all of it. `timeout_seconds`: without a sign of life.
    `program`: a `command`'s argv; `format`: what it gets.
    """

    name: str
    kind: Kind
    url: str = ""
    model: str = ""
    key_env: str = ""
    system: str = ""
    """Said to the model before everything else."""
    max_tokens: int | None = None
    budget_tokens: int | None = None
    timeout_seconds: float = TIMEOUT_SECONDS
    retries: int = 4
    """How often it is tried again."""
    effort: str = ""
    program: tuple[str, ...] = ()
    format: Literal["text", "json"] = "text"
    rounds: int = 2
    agents: tuple[str, ...] = ()
    policy: str = ""
    scope: str = ""

    @property
    def takes_key(self) -> bool:
        """May a key go to it?"""
        return self.kind != "command" and self.key_env != NO_KEY


NO_KEY = "none"
"""What `key_env` says where no key goes out, whatever the environment and the keyring hold."""
KEY_VARIABLES: dict[str, str] = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "orchestrator": "NSED_API_KEY",
}
"""Where a kind's key is looked for, unless settings name another variable."""
URLS: dict[str, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
}
"""Where a kind is, unless settings say so."""
_HINT = "docs/how-to/talk-to-a-model.md shows the tables of every kind"


def key_hint_of(settings: ResponderSettings) -> str:
    """How a person gives it a key."""
    if not settings.takes_key:
        return f'`key_env = "{NO_KEY}"` in [responders.{settings.name}] keeps every key from it'
    variable = settings.key_env or KEY_VARIABLES[settings.kind]
    return f"set {variable}, or `raddle responders key {settings.name}`"


def settings_of(name: str, table: Any, where: str) -> ResponderSettings:
    """A table of config.toml. InvalidInput names the key, at `where`, and what it may be."""
    if not isinstance(table, dict):
        raise InvalidInput(f"{where} must be a table", f"write it as [{where.rpartition(': ')[2]}]")
    known = set(ResponderSettings.__struct_fields__) - {"name"}
    for key in table:
        if key in {"key", "api_key", "token"}:
            raise InvalidInput(
                f"{where}.{key}: a key of an API does not belong into a file",
                "set the variable that key_env names, or keep it in the keyring: `raddle responders key NAME`",
            )
        if key not in known:
            import difflib  # only for somebody who mistyped  # noqa: PLC0415

            near = difflib.get_close_matches(key, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise InvalidInput(f"{where}.{key} is not a setting{meant}", _HINT)
    try:
        settings = msgspec.convert({**table, "name": name}, ResponderSettings)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{where}: {error}", _HINT) from error
    return _whole(settings, where)


def _whole(settings: ResponderSettings, where: str) -> ResponderSettings:
    if settings.retries < 0 or settings.timeout_seconds <= 0 or (settings.budget_tokens or 1) < 1:
        raise InvalidInput(
            f"{where}: retries, timeout_seconds and budget_tokens count from 0, 1 and 1 on", _HINT
        )
    if settings.kind == "command":
        if not settings.program:
            raise InvalidInput(f"{where}.program is missing", 'program = ["name", "argument"]')
        return settings
    url = settings.url or URLS.get(settings.kind, "")
    if any(sign in url for sign in "@?#"):  # a key or a password stands there, so the url is not shown
        raise InvalidInput(
            f"{where}.url must be an address alone, without @, ? and #: what is secret does not belong into a file",
            "set the variable that key_env names, or keep it in the keyring: `raddle responders key NAME`",
        )
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{where}.url must be where it answers, as https://…, not {url!r}", _HINT)
    key_env = settings.key_env or KEY_VARIABLES[settings.kind]
    return msgspec.structs.replace(settings, url=url.rstrip("/"), key_env=key_env)
