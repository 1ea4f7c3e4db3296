"""The importer of OpenCode: where its sessions lie.

Owns the names of its stores: the database that it writes now, and the folder of JSON files that it wrote before and
that some of its sessions never left. Both are collections; an adapter makes the lines of a session of either. How
these are read: `opencode_reader.py`.
"""

from __future__ import annotations

import re

from raddle.actions.importing.importer import Home, Links, Lookup, Place, SourceName
from raddle.actions.importing.opencode_reader import VERSION, OpenCodeReader, State
from raddle.actions.importing.opencode_weaver import AGENT
from raddle.actions.importing.states import decode_state

_HEADER = re.compile(rb'\{"opencode":"session","id":"([^"\\]{1,200})"')


class OpenCode:
    """OpenCode's sessions."""

    agent = AGENT
    label = "OpenCode"
    home = Home(
        variables=(("XDG_DATA_HOME", "opencode"),),
        folders=("~/.local/share/opencode",),
        patterns=(),
        collections=("opencode.db", "storage"),
        collection_variables=("OPENCODE_DB",),
    )

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """Which session a file of lines is of, such as one that was kept; None for any other."""
        found = _HEADER.match(head.removeprefix(b"\xef\xbb\xbf"))
        return None if found is None else Place(session=found.group(1).decode(errors="replace"))

    def open(
        self,
        source: SourceName,
        *,
        state: bytes = b"",
        links: Links | None = None,
        lookup: Lookup | None = None,
    ) -> OpenCodeReader:
        """A reader of a session, from its start or from where `state` was taken."""
        reader = OpenCodeReader(lookup)
        if state:
            reader.recall(state)
        return reader

    def links(self, state: bytes) -> Links | None:
        """The links that a `state` remembers; None where it is not a state of this version."""
        found = decode_state(state, State, VERSION)
        return None if found is None else Links(session_id=found.tree.root)
