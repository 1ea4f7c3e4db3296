"""Codex's sessions as threads: where they lie, and which files belong together.

Owns the layout of Codex's own folder. How a file is read: `codex_reader.py`.
"""

from __future__ import annotations

from raddle.actions.importing.codex_facts import INDEX
from raddle.actions.importing.codex_lines import Payload
from raddle.actions.importing.codex_places import base_of, goes_on, header_in, parent_of, rollout_in
from raddle.actions.importing.codex_reader import CodexReader
from raddle.actions.importing.codex_state import VERSION, State, links_in
from raddle.actions.importing.codex_weaver import AGENT
from raddle.actions.importing.importer import Home, Links, Lookup, Place, SourceName
from raddle.actions.importing.states import decode_state


class Codex:
    """Codex's sessions."""

    agent = AGENT
    label = "Codex"
    home = Home(
        variables=(("CODEX_HOME", ""),),
        folders=("~/.codex",),
        patterns=tuple(
            f"{folder}/**/rollout-*.jsonl{suffix}"
            for folder in ("sessions", "archived_sessions")
            for suffix in ("", ".zst")
        ),
        suffix=".jsonl",
        companions=(INDEX,),
    )

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """Which session the file belongs to; None where it is not Codex's."""
        rollout, header = rollout_in(source.name), header_in(head)
        if header is None:
            if not rollout:
                return None
            header = Payload()
        session = header.id or header.session_id or rollout or source.name.rpartition(".")[0]
        parent = parent_of(header)
        is_part = bool(parent) or goes_on(header, rollout)
        return Place(session=parent or session, is_part=is_part, base="" if is_part else base_of(header))

    def open(
        self,
        source: SourceName,
        *,
        state: bytes = b"",
        links: Links | None = None,
        lookup: Lookup | None = None,
    ) -> CodexReader:
        """A reader of the file, from its start or from where `state` was taken."""
        reader = CodexReader(source, links=links, lookup=lookup)
        if state:
            reader.recall(state)
        return reader

    def links(self, state: bytes) -> Links | None:
        """The links that a `state` remembers; None where it is not a state of this version."""
        found = decode_state(state, State, VERSION)
        return None if found is None else links_in(found)
