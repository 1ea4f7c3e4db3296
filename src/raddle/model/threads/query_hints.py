"""What to say to somebody whose query means something else than it seems to: filters that were read as text.

Worked out of the query that was read, so that what is said is what was looked for. A second place would give
advice that the parser does not follow.
"""

from __future__ import annotations

import re

from raddle.model.threads.query import FILTERS, FLAGS, NAME_FILTERS, Query, ShaFilter, Word, parse

_LOOKS_LIKE_A_FILTER = re.compile(r"([A-Za-z]+):(?![/\\:])(.*)\Z", re.DOTALL)
"""An address, a drive and a C++ name do not."""
_LONGEST = 60


def hints(query: Query, *, has_hits: bool) -> list[str]:
    """One sentence for each part that was not read as it was probably meant, without a full stop.

    Always: a filter whose value is none. Only where nothing was found: what is no filter, and might be one
    misspelt. A query of which nothing is left says so.
    """
    if query.is_of_nothing:
        return [_of_nothing(query)]
    told: dict[str, None] = {}
    for one in query.filters:
        if isinstance(one, ShaFilter) and (unread := _not_hex(one.text)):
            told[f"{_quoted(unread)} in {_quoted(one.text)} is no commit, and was left out"] = None
    for term in query.terms:
        found = _LOOKS_LIKE_A_FILTER.match(term.text) if isinstance(term, Word) else None
        if found is None:
            continue
        key, value = found[1].lower(), found[2]
        if key in FILTERS and value:
            told[f"{_quoted(term.text)} was looked for as text: {_unread(key)}"] = None
        elif not has_hits and (why := _unknown(key, value)):
            told[f"{_quoted(term.text)} was looked for as text: {why}"] = None
    return list(told)


def _of_nothing(query: Query) -> str:
    what = " ".join(query.ignored)
    said = f"nothing is left to look for: {_quoted(what)} has no letter, digit or symbol"
    in_quotes = f'"{what}"'
    if '"' in what or not what.isprintable() or len(what) > _LONGEST or not parse(in_quotes, now=0).terms:
        return said
    return f"{said}; with quotation marks around it, {_quoted(in_quotes)}, it is looked for as it stands"


def _not_hex(text: str) -> str:
    values = text.partition(":")[2].strip('"').rstrip("*").split(",")
    return ",".join(
        each for each in values if each.strip() and not re.fullmatch("[0-9a-fA-F]+", each.strip())
    )


def _unread(key: str) -> str:
    if key in NAME_FILTERS:
        return f"{key}: needs a name with a letter or a digit"
    if key == "sha":
        return "sha: takes the first hex digits of a commit"
    if key in FLAGS:
        return f"there is only {' '.join(f'{key}:{flag}' for flag in FLAGS[key])}"
    return f"{key}: takes a time, such as 2026-11-30, 2026-11, 7d, 12h or yesterday"


def _unknown(key: str, value: str) -> str:
    """Why it was not read as a filter; empty where it does not look as if it were meant to be one."""
    if key in FILTERS:
        return f"{key}: needs its value right behind it, without a space"
    import difflib  # noqa: PLC0415  8 ms that only a query without an answer pays

    near = difflib.get_close_matches(key, FILTERS, n=1)
    if near:
        return f"{key}: is no filter; did you mean {_quoted(f'{near[0]}:{value}')}?"
    return f"{key}: is no filter; there are {' '.join(f'{name}:' for name in FILTERS)}" if value else ""


def _quoted(text: str) -> str:
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`"
