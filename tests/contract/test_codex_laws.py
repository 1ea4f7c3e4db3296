"""Codex's importer keeps the laws of every importer."""

from __future__ import annotations

from raddle.actions.importing.codex import Codex
from tests.builders_codex import (
    a_bare_session,
    a_fork,
    a_reverted_session,
    a_session_with_a_sub_agent,
    a_session_with_everything,
    a_short_session,
)
from tests.contract.importer_laws import ImporterLaws, SessionFile
from tests.reading import named

_SHORT, _PLAIN, _BARE = a_short_session(), a_short_session("plain"), a_bare_session()
_ALL, _ALL_PLAIN = a_session_with_everything(), a_session_with_everything("plain")


class TestCodex(ImporterLaws):
    importer = Codex()
    files = (
        SessionFile(name="short", source=named(_SHORT.name), lines=_SHORT.lines),
        SessionFile(name="short, 2025", source=named(_PLAIN.name), lines=_PLAIN.lines),
        SessionFile(name="bare items", source=named(_BARE.name), lines=_BARE.lines),
        SessionFile(name="everything", source=named(_ALL.name), lines=_ALL.lines),
        SessionFile(name="everything, 2025", source=named(_ALL_PLAIN.name), lines=_ALL_PLAIN.lines),
        SessionFile(name="fork", source=named(a_fork()[1].name), lines=a_fork()[1].lines),
        SessionFile(name="fork, 2025", source=named("x.jsonl"), lines=a_fork("plain")[1].lines),
        SessionFile(
            name="a sub-agent's file",
            source=named(a_session_with_a_sub_agent()[1].name, "sessions", "2026", "02", "01"),
            lines=a_session_with_a_sub_agent()[1].lines,
        ),
        SessionFile(
            name="what follows a revert", source=named("y.jsonl"), lines=a_reverted_session()[1].lines
        ),
    )
