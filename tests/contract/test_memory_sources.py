"""The session files in memory, that unit tests read, keep to what those on a disk keep to."""

from __future__ import annotations

from raddle.actions.importing.claude_code import ClaudeCode
from tests.contract.source_laws import LONGEST, SourceLaws
from tests.fakes.memory_sources import MemoryDisk, MemorySource


class TestMemorySources(SourceLaws):
    def open(self, data: bytes) -> MemorySource:
        disk = MemoryDisk(ClaudeCode())
        disk.longest = LONGEST
        return MemorySource(disk, disk.put("s.jsonl", data))
