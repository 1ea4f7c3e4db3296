"""Where everything lies: the one place that spells a path below raddle's own folders.

Were a name spelled twice, one command would write where another does not look. What belongs to one data
folder lies inside it, or carries its mark in the name, so that two data folders never share a ledger or
an index. Nothing is made here: `files.make_folder` does that when the first file is written.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from msgspec import Struct

from raddle.model.errors import InvalidInput
from raddle.model.ids import parse_thread_id

CONFIG_NAME = "config.toml"
LOG_NAME = "raddle.log"
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def mark_of(data_dir: Path) -> str:
    """Tells data folders apart in names, whatever links lead to them: 12 hex digits."""
    return hashlib.sha256(os.fsencode(os.path.realpath(data_dir))).hexdigest()[:12]


class Paths(Struct, frozen=True, kw_only=True):
    """The four folders of one raddle, all absolute, and what lies in them. Folders are 0700, files 0600."""

    data_dir: Path
    """The truth: threads, blobs, and what is known of where they came from."""
    config_dir: Path
    state_dir: Path
    """What is of this machine alone and cannot be rebuilt: the device's name, logs."""
    cache_dir: Path
    """What one command rebuilds."""

    @property
    def mark(self) -> str:
        """This data folder's, for names outside of it."""
        return mark_of(self.data_dir)

    @property
    def config_file(self) -> Path:
        """What the person sets."""
        return self.config_dir / CONFIG_NAME

    @property
    def threads_dir(self) -> Path:
        """The thread files with their journals."""
        return self.data_dir / "threads"

    @property
    def blobs_dir(self) -> Path:
        """Attachments and source segments."""
        return self.data_dir / "blobs"

    @property
    def memory_blobs_dir(self) -> Path:
        """The large artifacts of every project memory of this machine; `raddle store gc` judges what is in it."""
        return self.data_dir / "memory-blobs"

    @property
    def locks_dir(self) -> Path:
        """The lock files of this data folder."""
        return self.data_dir / "locks"

    @property
    def import_lock_dir(self) -> Path:
        """The lock of imports; not one of `locks_dir`, which a thread might share for as long as an import takes."""
        return self.data_dir / "import-lock"

    @property
    def import_ledger(self) -> Path:
        """Which file of which agent was read how far (SQLite)."""
        return self.data_dir / "import-ledger.sqlite3"

    def hub_bases(self, hub: str) -> Path:
        """What the hub of that name is known to hold (SQLite)."""
        mark = hashlib.sha256(hub.encode()).hexdigest()[:12]
        return self.data_dir / "hubs" / f"{mark}.sqlite3"

    @property
    def sync_lock_dir(self) -> Path:
        """The lock of syncs; not one of `locks_dir`, which a thread might share for as long as a sync takes."""
        return self.data_dir / "sync-lock"

    @property
    def daemon_lock_dir(self) -> Path:
        """The lock that the daemon of this data folder holds for as long as it is at work."""
        return self.data_dir / "daemon-lock"

    @property
    def daemon_state(self) -> Path:
        """What that daemon, or the last one, says of itself."""
        return self.state_dir / f"daemon-{self.mark}.json"

    @property
    def daemon_log(self) -> Path:
        """What it did."""
        return self.state_dir / f"daemon-{self.mark}.log"

    @property
    def own_server_lock_dir(self) -> Path:
        """The lock that the background server of this data folder holds for as long as it runs."""
        return self.data_dir / "server-lock"

    @property
    def own_server_note(self) -> Path:
        """Where that server listens, or the last one did."""
        return self.state_dir / f"server-{self.mark}.json"

    @property
    def own_server_log(self) -> Path:
        """What it says."""
        return self.state_dir / f"server-{self.mark}.log"

    @property
    def server_blobs_dir(self) -> Path:
        """The blobs that a server of this data folder keeps for its people; not those of `blobs_dir`."""
        return self.data_dir / "server" / "blobs"

    @property
    def launches_dir(self) -> Path:
        """What was asked on this machine and has not ended: a folder each."""
        return self.data_dir / "launches"

    @property
    def purge_marks(self) -> Path:
        """Which threads were purged here: a text file, one line an event."""
        return self.data_dir / "purged.txt"

    @property
    def active_branches(self) -> Path:
        """Which branch of a thread this device reads: never synced."""
        return self.data_dir / "active-branches.json"

    @property
    def dirty_list(self) -> Path:
        """The ids of threads that were written and are not yet in the search index."""
        return self.data_dir / "dirty"

    def placing_list(self, run: str) -> Path:
        """Those that one run of the import is putting in their places: read with `dirty_list`, should it die."""
        return self.dirty_list.with_suffix(f".placing-{run}")

    @property
    def device_marker(self) -> Path:
        """The id of the device that last wrote to this data folder."""
        return self.data_dir / ".device"

    @property
    def device_file(self) -> Path:
        """Which device this machine is, for each data folder it has."""
        return self.state_dir / "device.json"

    @property
    def device_locks_dir(self) -> Path:
        """The lock of the device file; not in `locks_dir`: a Mac has one folder for data and state."""
        return self.state_dir / "device-locks"

    @property
    def credentials_file(self) -> Path:
        """Which servers this device is signed in to, and the tokens that no keyring has."""
        return self.state_dir / "servers.json"

    @property
    def credentials_locks_dir(self) -> Path:
        """The lock of that file."""
        return self.state_dir / "server-locks"

    @property
    def log_file(self) -> Path:
        """What went wrong, without a word of any thread."""
        return self.state_dir / LOG_NAME

    @property
    def hook_notes(self) -> Path:
        """What other agents' settings were before an entry of ours came into them."""
        return self.state_dir / "hooks.json"

    @property
    def registration_notes(self) -> Path:
        """The same of settings in which `raddle mcp-serve` is registered."""
        return self.state_dir / "registrations.json"

    @property
    def search_index(self) -> Path:
        """The search index of this data folder (SQLite)."""
        return self.cache_dir / f"search-{self.mark}.sqlite3"

    def memory_index(self, store: Path) -> Path:
        """The index of the memory that the folder `store` holds (SQLite); of everybody who opens it, whatever their
        data folder."""
        return self.cache_dir / f"memory-{mark_of(store)}.sqlite3"

    @property
    def demo_dir(self) -> Path:
        """The home of `raddle up --demo`, with a raddle of its own."""
        return self.cache_dir / "demo"

    @property
    def sweep_mark(self) -> Path:
        """Its time is that of the last look for what killed processes left among the thread files."""
        return self.threads_dir / ".swept"

    def thread_file(self, thread_id: str) -> Path:
        """`threads/<id>.json`; InvalidInput where `thread_id` is no whole thread id."""
        return self.threads_dir / f"{parse_thread_id(thread_id)}.json"

    def journal_file(self, thread_id: str) -> Path:
        """The edits since the thread file was last written whole."""
        return self.thread_file(thread_id).with_suffix(".journal")

    def previous_file(self, thread_id: str) -> Path:
        """The thread file as it was before the last fold."""
        return self.thread_file(thread_id).with_suffix(".prev")

    def previous_journal(self, thread_id: str) -> Path:
        """The edits that were folded into the thread file when it was last written whole."""
        journal = self.journal_file(thread_id)
        return journal.with_name(f"{journal.name}.prev")

    def quarantine_file(self, damaged: Path, stamp: str) -> Path:
        """Where a damaged file goes, beside itself; `stamp` sets it off from earlier ones."""
        return damaged.with_name(f"{damaged.name}.broken-{stamp}")

    def quarantine_reason(self, quarantined: Path) -> Path:
        """The note that says why a file was quarantined."""
        return quarantined.with_name(f"{quarantined.name}.reason")

    def blob_file(self, sha256: str) -> Path:
        """`blobs/ab/abcd…`; InvalidInput where `sha256` is not 64 lower-case hex digits."""
        if _SHA256.match(sha256) is None:
            raise InvalidInput(f"{sha256[:80]!r} is not a SHA-256", "it is 64 hex digits, in lower case")
        return self.blobs_dir / sha256[:2] / sha256
