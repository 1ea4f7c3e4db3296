"""The importer of Gemini CLI: where its sessions lie and how their files belong together.

Owns the layout of `~/.gemini/tmp`: a folder for each project, named for the hash of its path or, later, for the
project; in `chats`, a file for each session and one for each time it was resumed, and a folder for each session
that started sub-agents. How a file is read: `gemini_cli_reader.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from raddle.actions.importing.gemini_cli_facts import PROJECT_ROOT, PROJECTS
from raddle.actions.importing.gemini_cli_reader import VERSION, GeminiCliReader, State
from raddle.actions.importing.gemini_cli_weaver import AGENT
from raddle.actions.importing.importer import Home, Links, Lookup, Place, SourceName
from raddle.actions.importing.states import decode_state

_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_SUB_AGENT = re.compile(rb'^(?:\{"sessionId"[^\n]{0,4096}?|[ \t]{1,4})"kind"\s*:\s*"subagent"', re.MULTILINE)

_FIRST_LINES = 64
"""Of a file that a rule asks for its workspace."""


class GeminiCli:
    """Gemini CLI's sessions."""

    agent = AGENT
    label = "Gemini CLI"
    home = Home(
        variables=(("GEMINI_CLI_HOME", ".gemini/tmp"),),
        folders=("~/.gemini/tmp",),
        patterns=("*/chats/**/*.json", "*/chats/**/*.jsonl"),
        suffix=".jsonl",
        other_suffixes=(".json",),
        companions=(PROJECT_ROOT, PROJECTS),
    )

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """Which session the file belongs to; None for a file that is no session of this program."""
        found = _SESSION_ID.search(head)
        in_content = found.group(1).decode(errors="replace") if found is not None else ""
        parent = parent_folder(source)
        is_named = source.folders[-1:] == ("chats",) and source.name.startswith("session-")
        if not (in_content and b'"projectHash"' in head) and not is_named and not parent:
            return None
        if parent:
            return Place(session=parent, is_part=True)
        stem = source.name.rpartition(".")[0]
        is_part = _SUB_AGENT.search(head) is not None
        return Place(session=in_content or stem, is_part=is_part)

    def open(
        self,
        source: SourceName,
        *,
        state: bytes = b"",
        links: Links | None = None,
        lookup: Lookup | None = None,
    ) -> GeminiCliReader:
        """A reader of the file, from its start or from where `state` was taken."""
        reader = GeminiCliReader(source, parent=parent_folder(source), links=links)
        if state:
            reader.recall(state)
        return reader

    def links(self, state: bytes) -> Links | None:
        """The links that a `state` remembers; None where it is not a state of this version."""
        found = decode_state(state, State, VERSION)
        return (
            None if found is None else Links(session_id=found.session or found.fallback).joined(found.links)
        )

    def workspace(self, source: SourceName, lines: Iterable[bytes]) -> str:
        """The workspace that a file is about, as its first lines and the files around it say."""
        reader = GeminiCliReader(source, parent=parent_folder(source), links=None)
        for line in islice(lines, _FIRST_LINES):
            reader.feed((line.rstrip(b"\n"),))
            if reader.names_folder:
                break
        return reader.workspace


def parent_folder(source: SourceName) -> str:
    """The session whose folder a sub-agent's file lies in; empty where it lies in none."""
    folders = source.folders
    return folders[-1] if folders[-2:-1] == ("chats",) else ""
