"""Codex's `config.toml`, changed where it has to be: comments, order and everything else of it stay.

Each function may give a text that says something else than it should (tables may lie in parts all over a file), so
whoever asks decodes the outcome and compares. Imports `tomlkit`, which nothing but a change of such a file needs.
"""

from __future__ import annotations

import re
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from raddle.model.errors import BrokenFormat


def decoded(text: str) -> Any:
    """What the text says; BrokenFormat where it is no TOML."""
    return _parsed(text).unwrap()


def _parsed(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise BrokenFormat(f"it is not valid TOML: {error}", "mend it by hand, then try again") from error


def with_notify(text: str, argv: list[str]) -> str:
    """The text with `notify = argv` before its first table."""
    document = _parsed(text)
    document["notify"] = argv
    return tomlkit.dumps(document)


def without_notify(text: str) -> str:
    """The text without `notify`."""
    document = _parsed(text)
    del document["notify"]
    return tomlkit.dumps(document)


def with_group_beside(text: str, event: str, handler: dict[str, Any]) -> str:
    """The text with a group of this one handler beside the groups that the event has."""
    document = _parsed(text)
    hooks: Any = document["hooks"]
    groups = hooks[event]
    is_spread = isinstance(groups, AoT)
    group: Any = tomlkit.table() if is_spread else tomlkit.inline_table()
    one: Any = tomlkit.table() if is_spread else tomlkit.inline_table()
    one.update(handler)
    if is_spread:
        group["hooks"] = tomlkit.aot()
        group["hooks"].append(one)
    else:
        group["hooks"] = [one]
    groups.append(group)
    return tomlkit.dumps(document)


def with_group_at_end(text: str, event: str, handler: dict[str, Any]) -> str:
    """The text with a group of this one handler as its last lines."""
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline if text.endswith("\n") else newline * 2
    lines = [f"[[hooks.{event}]]", f"[[hooks.{event}.hooks]]"]
    lines += [f"{key} = {tomlkit.item(value).as_string()}" for key, value in handler.items()]
    return (text + gap if text.strip() else "") + newline.join(lines) + newline


def with_other_command(text: str, event: str, at: tuple[int, int], command: str) -> str:
    """The text with another command in that handler (group, place)."""
    document = _parsed(text)
    hooks: Any = document["hooks"]
    hooks[event][at[0]]["hooks"][at[1]]["command"] = command
    return tomlkit.dumps(document)


def without_lines(text: str, event: str, command: str) -> str:
    """The text without the lines that `with_group_at_end` added, where they still stand so."""
    group = re.compile(
        rf"(?:\r?\n)?^\[\[hooks\.{event}\]\]\r?\n\[\[hooks\.{event}\.hooks\]\]\r?\n(?:[a-z_]+ = [^\n]*(?:\n|\Z))+",
        re.MULTILINE,
    )
    wanted = f"command = {tomlkit.item(command).as_string()}"
    return group.sub(lambda found: "" if wanted in found[0].splitlines() else found[0], text)


def without_handler(text: str, event: str, at: tuple[int, int]) -> str:
    """The text without that handler; a group, event or table that it leaves empty goes too."""
    document = _parsed(text)
    hooks: Any = document["hooks"]
    group = hooks[event][at[0]]
    if len(group["hooks"]) > 1:
        del group["hooks"][at[1]]
    elif len(hooks[event]) > 1:
        del hooks[event][at[0]]
    elif len(hooks) > 1:
        del hooks[event]
    else:
        del document["hooks"]
    return tomlkit.dumps(document)


def with_table_at_end(text: str, name: tuple[str, str], values: dict[str, Any]) -> str:
    """The text with the table `[name]` of these values as its last lines."""
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline if text.endswith("\n") else newline * 2
    lines = [f"[{name[0]}.{name[1]}]"]
    lines += [f"{key} = {tomlkit.item(value).as_string()}" for key, value in values.items()]
    return (text + gap if text.strip() else "") + newline.join(lines) + newline


def with_table_inside(text: str, name: tuple[str, str], values: dict[str, Any]) -> str:
    """The text with that table inside the one that holds it, where that is written on one line."""
    document = _parsed(text)
    around: Any = document[name[0]]
    one = tomlkit.inline_table()
    one.update(values)
    around[name[1]] = one
    return tomlkit.dumps(document)


def with_values(text: str, name: tuple[str, str], values: dict[str, Any]) -> str:
    """The text with these values in that table, which has them already."""
    document = _parsed(text)
    table: Any = document[name[0]]
    for key, value in values.items():
        table[name[1]][key] = value
    return tomlkit.dumps(document)


def without_table_lines(text: str, name: tuple[str, str]) -> str:
    """The text without the lines that `with_table_at_end` added, where they still stand so."""
    lines = rf"(?:\r?\n)?^\[{name[0]}\.{name[1]}\]\r?\n(?:[a-z_]+ = [^\n]*(?:\n|\Z))+"
    return re.sub(lines, "", text, count=1, flags=re.MULTILINE)


def without_table(text: str, name: tuple[str, str], *, is_around_kept: bool = False) -> str:
    """The text without that table; the one that holds it goes too where nothing is left in it, if it is not kept."""
    document = _parsed(text)
    around: Any = document[name[0]]
    if len(around) > 1 or is_around_kept:
        del around[name[1]]
    else:
        del document[name[0]]
    return tomlkit.dumps(document)
