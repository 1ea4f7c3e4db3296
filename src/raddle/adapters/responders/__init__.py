"""Who answers, made out of settings: one module for each wire, imported when somebody is asked over it.

Each class here is a `Responder` of `actions/answering/ports.py`, or a `JobResponder`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from raddle.actions.answering.ports import Pause, Responder
from raddle.actions.answering.settings import Kind, ResponderSettings
from raddle.model.errors import InvalidInput


class _Maker(NamedTuple):
    module: str
    class_name: str


_MAKERS: dict[Kind, _Maker] = {
    "openai": _Maker("openai", "OpenAIResponder"),
    "anthropic": _Maker("anthropic", "AnthropicResponder"),
    "orchestrator": _Maker("orchestrator", "OrchestratorResponder"),
    "command": _Maker("command", "CommandResponder"),
}
"""Every class is called with (settings, *, key, pause, random, folder=None, socket_path=None)."""


def responder_of(
    settings: ResponderSettings,
    *,
    key: Callable[[], str | None],
    pause: Pause,
    random: Callable[[], float],
    folder: Path | None = None,
    socket_path: Path | None = None,
) -> Responder:
    """Who answers by these settings. Nobody is asked for anything yet.

    `key`: of the API, asked for when a request is made. `random`: numbers from 0 to 1, for waits. `folder`: where a
    program is run; None: here. `socket_path`: a server listens there, not at its address. InvalidInput: no such kind.
    """
    maker = _MAKERS.get(settings.kind)
    if maker is None:
        raise InvalidInput(
            f"{settings.name} is of a kind that is not known: {settings.kind!r}",
            f"it is one of {', '.join(_MAKERS)}",
        )
    made = getattr(import_module(f"{__name__}.{maker.module}"), maker.class_name)
    responder: Responder = made(
        settings, key=key, pause=pause, random=random, folder=folder, socket_path=socket_path
    )
    return responder
