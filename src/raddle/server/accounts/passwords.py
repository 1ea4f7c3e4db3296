"""Passwords: argon2id, and a comparison that takes as long for who is not here as for who is.

The only place that hashes one. A second one would have costs of its own, and its speed would tell who exists.
"""

from __future__ import annotations

import functools
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from raddle.model.errors import InvalidInput, TooManyRequests

SHORTEST, LONGEST = 8, 512
"""Characters of a password."""

# OWASP's first choice with one lane: 46 MiB once through takes some 40 ms.
_HASHER = PasswordHasher(time_cost=1, memory_cost=46 * 1024, parallelism=1, type=Type.ID)
_MOST_AT_ONCE = 4
_WAIT_SECONDS = 5.0
_PLACES = threading.BoundedSemaphore(_MOST_AT_ONCE)


def parse_new_password(password: str) -> str:
    """`password` if it may be one; InvalidInput, which never repeats it, if it is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(
            f"password: it has {SHORTEST} to {LONGEST} characters", "take a few words that you can remember"
        )
    if any("\ud800" <= character <= "\udfff" for character in password):
        raise InvalidInput("password: it holds what is no character")
    return password


def hash_password(password: str) -> str:
    """What is stored of a password; InvalidInput where it may not be one."""
    with _place():
        return _HASHER.hash(_bytes_of(parse_new_password(password)))


def is_password(stored: str | None, password: str) -> bool:
    """Is `password` the one that `stored` was made of? With no `stored` it takes as long to say no."""
    # Cut where nothing longer can be right, so that a long one costs no more than a short one.
    given = _bytes_of(password[:LONGEST])
    with _place():
        try:
            _HASHER.verify(_of_nobody() if stored is None else stored, given)
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None and len(password) <= LONGEST


def is_outdated(stored: str) -> bool:
    """Was it hashed with other costs than passwords are hashed with now?"""
    return _HASHER.check_needs_rehash(stored)


@functools.cache
def _of_nobody() -> str:
    return _HASHER.hash(b"nobody's")


def _bytes_of(password: str) -> bytes:
    # Two keyboards may write one letter in two ways.
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


@contextmanager
def _place() -> Iterator[None]:
    """Each takes much memory: a few are hashed at once, and who waits long is told to come back."""
    if not _PLACES.acquire(timeout=_WAIT_SECONDS):
        raise TooManyRequests("too many people sign in at once", _WAIT_SECONDS)
    try:
        yield
    finally:
        _PLACES.release()
