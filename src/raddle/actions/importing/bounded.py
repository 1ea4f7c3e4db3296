"""Dictionaries that hold so many entries and no more: what a reader remembers goes into a state, which is small.

Owns which entry is forgotten: the one that came first.
"""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep_first(kept: dict[K, V], key: K, value: V, most: int) -> None:
    """Remember what came first under `key`."""
    kept.setdefault(key, value)
    forget_oldest(kept, most)


def keep_last(kept: dict[K, V], key: K, value: V, most: int) -> None:
    """Remember what came last under `key`; it is as old as what came first."""
    kept[key] = value
    forget_oldest(kept, most)


def forget_oldest(kept: dict[K, V], most: int) -> None:
    """Forget the entry that came first, where there are more than `most`: to be called after each that is added."""
    if len(kept) > most:
        del kept[next(iter(kept))]
