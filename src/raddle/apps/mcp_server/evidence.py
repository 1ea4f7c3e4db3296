"""Threads and messages that an agent names as what something rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raddle.apps.mcp_server.session import Access
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.ids import parse_message_id, parse_thread_id

if TYPE_CHECKING:
    from raddle.model.memory.handoff import Evidence
    from raddle.wiring import Stores


def evidence_of(stores: Stores, text: str, access: Access | None = None) -> Evidence:
    """`thread` or `thread:message`, each by its whole id or the start of it. One that is not on this machine, or that
    may not be seen, which is the same, has to be given whole, and nothing is asked of it. NotFound, Ambiguous,
    InvalidInput."""
    from raddle.actions.threads import find_message  # noqa: PLC0415
    from raddle.apps.mcp_server.thread_shelf import local_shelf  # noqa: PLC0415
    from raddle.model.memory.handoff import Evidence  # noqa: PLC0415

    thread, _, message = (part.strip() for part in text.partition(":"))
    seen = access or Access()
    shelf = local_shelf(stores, all_repositories=seen.all_repositories, include_private=seen.include_private)
    try:
        loaded = shelf.load(thread)
    except NotFound as missing:
        try:
            thread_id = parse_thread_id(thread)
        except InvalidInput:
            raise missing from None
        return Evidence(thread_id=thread_id, message_id=parse_message_id(message) if message else None)
    return Evidence(thread_id=loaded.id, message_id=find_message(loaded, message).id if message else None)
