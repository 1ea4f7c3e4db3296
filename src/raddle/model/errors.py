"""Every error raddle raises on purpose, in one tree.

    RaddleError               code (stable text), message, hint
    |-- UserError             cannot be done as asked
    |   |-- NotFound          nothing by that name or id
    |   |-- Ambiguous         a prefix that names several
    |   |-- InvalidInput      the words do not fit
    |   |   `-- TooLarge      more than is taken at once
    |   |-- NotSignedIn       nobody, or nobody any more, by that token
    |   |-- Forbidden         seen, but not theirs to do
    |   `-- Purged            was here and is erased for good
    |-- ConflictError         someone else changed it first
    |-- FormatError           stored bytes we cannot read
    |   |-- BrokenFormat      damaged, or not ours at all
    |   |-- OlderFormat       of a format that is no longer read
    |   `-- NewerFormat       written by a newer raddle
    |-- StorageError          disk, git or database
    |-- NetworkError          a server that cannot be reached, or does not do its part
    |-- TooManyRequests       asked too often; `retry_after` seconds
    |-- Rejected              who was asked refused before anything was begun
    `-- Unanswered            who was asked began, and gave no answer
        `-- Unconfirmed       nor did it say whether it began

An error takes values and words itself, so that one thing is called the same everywhere: `message` says
what is wrong, `hint` says what to do. Exit codes and HTTP statuses live in the apps; the model knows none.
"""

from __future__ import annotations

from collections.abc import Sequence


class RaddleError(Exception):
    """What went wrong (`message`), what to do (`hint`), and a `code` that programs can rely on."""

    code = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(hint)  # for who sees a traceback: a program that uses the library


class UserError(RaddleError):
    """Cannot be done as asked."""

    code = "refused"


class NotFound(UserError):
    """Nothing by that name or id."""

    code = "not_found"

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        super().__init__(f"no {kind} {name!r}", hint)
        self.kind = kind
        self.name = name


class Ambiguous(UserError):
    """A prefix that names several things; the hint lists the candidates."""

    code = "ambiguous"

    def __init__(self, kind: str, prefix: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:8]) + (", …" if len(candidates) > 8 else "")
        super().__init__(f"{prefix!r} names {len(candidates)} {kind}s", f"say more of it: {shown}")
        self.candidates = tuple(candidates)


class InvalidInput(UserError):
    """The words do not fit."""

    code = "invalid_input"


class TooLarge(InvalidInput):
    """More than is taken at once."""

    code = "too_large"


class NotSignedIn(UserError):
    """No token, or one that means nobody (any more)."""

    code = "not_signed_in"


class Forbidden(UserError):
    """It may be seen, and this may not be done with it."""

    code = "forbidden"


class Purged(UserError):
    """It was here, and its words are erased for good."""

    code = "purged"


class ConflictError(RaddleError):
    """Someone else changed it first."""

    code = "conflict"


class FormatError(RaddleError):
    """Stored bytes that cannot be read."""

    code = "unreadable"


class BrokenFormat(FormatError):
    """Damaged bytes, or bytes that were never ours."""

    code = "broken_format"


class OlderFormat(FormatError):
    """Written in a format that is no longer read."""

    code = "older_format"


class NewerFormat(FormatError):
    """Written by a newer raddle."""

    code = "newer_format"

    def __init__(self, what: str, found: object, known: object) -> None:
        super().__init__(
            f"{what} has format {found}; this raddle reads up to {known}", "upgrade raddle, then try again"
        )


class StorageError(RaddleError):
    """Disk, git or database would not do it."""

    code = "storage"


class NetworkError(RaddleError):
    """A server that cannot be reached, or does not do its part."""

    code = "network"


class TooManyRequests(RaddleError):
    """Asked too often. `retry_after`: seconds until it is worth asking again."""

    code = "too_many_requests"

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, f"try again in {max(1, round(retry_after))} s")
        self.retry_after = retry_after


class Rejected(RaddleError):
    """Who was asked for an answer refused before anything was begun, and nothing runs there."""

    code = "rejected"


class Unanswered(RaddleError):
    """Who was asked for an answer began, and it ended without one: cut off, failed, empty, or out of time."""

    code = "unanswered"


class Unconfirmed(Unanswered):
    """It is not known whether who was asked has taken it."""

    code = "unconfirmed"
