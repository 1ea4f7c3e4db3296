"""Sessions that hold nothing yet but what `raddle resume --in` wrote into them: an import makes no thread of one.

Owns when that is so. Imported, each would be one more thread in every list, with every turn found twice.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

import msgspec

from raddle.actions.importing.run import Converted
from raddle.actions.importing.session import SessionRead, without_thread
from raddle.adapters.files import find_bytes
from raddle.adapters.paths import Paths
from raddle.model.errors import RaddleError
from raddle.model.threads.codec import decode_file
from raddle.model.threads.message import NOTICE, Message
from raddle.model.threads.rendering import NO_RESULT
from raddle.model.threads.thread import Thread


def says_something(message: Message) -> bool:
    """Is it more than what programs put around a conversation, and what raddle puts where a result is missing?"""
    return message.kind != NOTICE and not (message.role == "tool" and message.content == NO_RESULT)


def is_told_already(
    paths: Paths, load: Callable[[str], Thread], purged: AbstractSet[str], converted: Converted
) -> bool:
    """Does the thread from which a new session was written hold all that it says? Of one that was purged, nothing is
    to come back this way."""
    if not (converted.copied_from and converted.prepared and converted.plan.is_new):
        return False
    if converted.copied_from in purged:
        return True
    try:
        told = load(converted.copied_from).tree
    except RaddleError:  # it is not here, or cannot be read: then this is all there is
        return False
    return all(message.id in told for message in _prepared(paths, converted).tree if says_something(message))


def without_copy(paths: Paths, converted: Converted) -> Converted:
    """The same as a session that makes no thread. Once its agent goes on with it, it is read from its start."""
    attached = {file.sha256 for message in _prepared(paths, converted).tree for file in message.attachments}
    (paths.threads_dir / converted.prepared).unlink(missing_ok=True)
    nothing = without_thread(SessionRead(files=converted.files, dropped=converted.dropped))
    return msgspec.structs.replace(
        converted,
        thread_id="",
        files=nothing.files,
        dropped=(*nothing.dropped, *attached),
        prepared="",
        prepared_bytes=0,
        messages=0,
    )


def _prepared(paths: Paths, converted: Converted) -> Thread:
    return decode_file(find_bytes(paths.threads_dir / converted.prepared) or b"").thread()
