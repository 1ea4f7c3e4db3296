"""ChatGPT's importer keeps the laws of every importer."""

from __future__ import annotations

from raddle.actions.importing.chatgpt import ChatGPT
from raddle.model.clock import parse_time
from tests.builders_chatgpt import (
    SESSION,
    a_conversation_of_another_exporter,
    a_conversation_with_everything,
    a_conversation_without_times,
    a_short_conversation,
)
from tests.contract.importer_laws import ImporterLaws, SessionFile
from tests.reading import named


class TestChatGPT(ImporterLaws):
    importer = ChatGPT()
    files = (
        SessionFile(name="short", source=named(SESSION), lines=a_short_conversation().lines),
        SessionFile(name="everything", source=named(SESSION), lines=a_conversation_with_everything().lines),
        SessionFile(name="no times", source=named("x"), lines=a_conversation_without_times().lines),
        SessionFile(name="other ids", source=named("y"), lines=a_conversation_of_another_exporter().lines),
    )

    def as_written(self, ts: str) -> bytes:
        return str((parse_time(ts) or 0) // 1_000_000).encode()
