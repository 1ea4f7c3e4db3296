"""Who can answer, as `[responders.NAME]` of config.toml says: one value for every kind, and what each kind needs.

Owns the names and the defaults of those keys. What a key of an API is, is never here: only where it is looked for.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["openai", "anthropic", "orchestrator", "command"]

KINDS: tuple[Kind, ...] = ("openai", "anthropic", "orchestrator", "command")
TIMEOUT_SECONDS = 600.0


class ResponderSettings(Struct, frozen=True, kw_only=True):
    """One responder.

    `url`: the API's base, `/v1` included where it has one. `key_env`: the variable that holds the key; empty: the
    kind's own (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `NSED_API_KEY`). `budget_tokens`: of the path that is sent;
    None: all of it. `timeout_seconds`: without a sign of life. `program`: a `command`'s argv; `format`: what it gets.
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
