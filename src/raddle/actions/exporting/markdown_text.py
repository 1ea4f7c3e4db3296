"""Text that somebody else wrote, put into a Markdown document so that it stays in its place.

Owns the escapes. A turn may hold an unclosed fence, raw HTML or a heading that looks like the next turn's;
none of them may reach past the turn. Code goes between fences longer than any run of backticks in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"(?P<lead>[ \t]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)\Z")
_NESTED_FENCE = re.compile(r"[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*)+(?:`{3,}|~{3,})")
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|\Z)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\Z")
_DEEPEST_FENCE = 3
"""Spaces before a fence that opens a block wherever it stands; with more, what stands above decides."""
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)")
_TAG = re.compile(r"(?<!\\)((?:\\\\)*)<(?=[A-Za-z/!?])(?!https?://[^\s<>]*>|mailto:[^\s<>]*>)")
_INLINE = re.compile(r"[\\`*\[\]<>]|(?<!\w)_|_(?!\w)")


def contained(text: str) -> str:
    """`text` as Markdown that cannot reach past its end.

    Headings step down two levels, tags are shown instead of taken for HTML. Text whose fences do not close,
    or stand where only a whole parser could tell whether they do, is shown as it is, between fences of its
    own.
    """
    lines = _lines(text)
    told: list[str] = []
    in_paragraph = is_loose = False
    for line, is_code in _with_code(lines):
        if is_code is None:
            return fenced("\n".join(lines))
        told.append(line if is_code else _outside(line, in_paragraph=in_paragraph, is_loose=is_loose))
        in_paragraph = bool(line.strip()) and (not is_code or _width(line) > _DEEPEST_FENCE)
        is_loose = in_paragraph and (is_loose or "`" in _CODE_SPAN.sub("", line))
    return "\n".join(told)


def fenced(text: str, language: str = "") -> str:
    """`text` as a code block, whatever it holds."""
    body = "\n".join(_lines(text))
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def inline(text: str) -> str:
    """`text` as words of one line: nothing in it is taken for Markdown."""
    return _INLINE.sub(r"\\\g<0>", " ".join(text.replace("\0", "\ufffd").split()))


def code(text: str) -> str:
    """`text` as a code span."""
    line = " ".join(text.replace("\0", "\ufffd").split())
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def html(text: str) -> str:
    """`text` as words of one line of HTML."""
    line = " ".join(text.replace("\0", "\ufffd").split())
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lines(text: str) -> list[str]:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    return plain.strip("\n").split("\n")


def _with_code(lines: list[str]) -> Iterator[tuple[str, bool | None]]:
    """(line, is it inside a code block or its fence?); None as soon as that cannot be told for sure.

    A fence at the margin opens a block in every reading. An indented one does so in some: whether it is in
    a list, in a paragraph or in code depends on what stands above. It is sure only where the block is the
    same in all.
    """
    opened: re.Match[str] | None = None
    for line in lines:
        found = _FENCE.match(line)
        if opened is not None:
            is_close = _closes(opened, found)
            yield line, None if is_close is None or not _is_inside(line, opened["lead"]) else True
            opened = None if is_close else opened
        elif found is not None and not ("`" in found["mark"] and "`" in found["info"]):
            opened = found
            yield line, True if _is_inside(line, found["lead"]) else None
        else:
            yield line, None if _NESTED_FENCE.match(line) else False
    if opened is not None:
        yield "", None


def _is_inside(line: str, lead: str) -> bool:
    """Is a line part of the block in every reading? Indented by more than three, it may be a paragraph's."""
    if len(lead.expandtabs(4)) > _DEEPEST_FENCE and _TAG.search(line):
        return False
    return not line.strip() or line.startswith(lead)


def _closes(opened: re.Match[str], found: re.Match[str] | None) -> bool | None:
    """Does a fence close the block? None: in some readings only."""
    if found is None or found["info"].strip() or not found["mark"].startswith(opened["mark"]):
        return False
    if found["lead"] == opened["lead"]:
        return True
    if opened["lead"]:
        return None
    return len(found["lead"].expandtabs(4)) <= _DEEPEST_FENCE


def _width(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _outside(line: str, *, in_paragraph: bool, is_loose: bool) -> str:
    """A line that is no code: heading, underline and tags made harmless.

    `in_paragraph`: it goes on with the line above. `is_loose`: a code span may have begun above, so that
    nobody can tell where one ends here.
    """
    heading = _HEADING.match(line)
    if heading is not None:
        level = min(6, len(heading[2]) + 2)
        line = f"{heading[1]}{'#' * level}{line[heading.end() :]}"
    elif in_paragraph and _UNDERLINE.match(line):
        return "\\" + line.lstrip()
    told, at = [], 0
    for span in () if is_loose else _CODE_SPAN.finditer(line):
        told += [_TAG.sub(r"\1\\<", line[at : span.start()]), span[0]]
        at = span.end()
    return "".join([*told, _TAG.sub(r"\1\\<", line[at:])])
