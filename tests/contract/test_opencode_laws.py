"""OpenCode's importer keeps the laws of every importer."""

from __future__ import annotations

from raddle.actions.importing.opencode import OpenCode
from raddle.model.clock import parse_time
from tests.builders_opencode import (
    SESSION,
    OpenCodeSession,
    a_session_with_everything,
    a_short_session,
    an_old_session,
)
from tests.contract.importer_laws import ImporterLaws, SessionFile
from tests.reading import named


def _forked() -> OpenCodeSession:
    """A session that began as a copy of an earlier one's messages, under new ids."""
    session = a_short_session().fork("ses_fork0000000000000000000001")
    asked = session.user("And now?")
    session.says(asked, "Now it is warm.")
    return session


def _undone() -> OpenCodeSession:
    """Typed again after a step back: what was taken back is gone from the list, and was read before."""
    session = a_short_session()
    *_, last = session.messages
    session.user("Heat it")
    session.says("msg_kiln0004", "Hot.", message="msg_kiln0005")
    asked = session.user("No, dry it", after=last)
    session.says(asked, "Dry.")
    return session


class TestOpenCode(ImporterLaws):
    importer = OpenCode()
    files = tuple(
        SessionFile(name=name, source=named(SESSION), lines=session.lines)
        for name, session in (
            ("short", a_short_session()),
            ("everything", a_session_with_everything()),
            ("forked", _forked()),
            ("undone", _undone()),
            ("old", an_old_session()),
        )
    )

    def as_written(self, ts: str) -> bytes:
        """In milliseconds since 1970."""
        at = parse_time(ts)
        assert at is not None
        return str(at // 1000).encode()
