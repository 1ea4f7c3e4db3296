"""However a session's file came in, in whatever pieces and how often, an export gives the bytes that it has."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from raddle.actions.importing.run_plan import Segment
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.wiring.native_export import chunks_of, native_session
from raddle.wiring.source_segments import bytes_of, has_gaps
from tests.builders_claude_code import a_session_with_everything
from tests.builders_codex import a_session_with_everything as codex_session
from tests.builders_gemini_cli import a_session_with_everything as gemini_session
from tests.builders_import import Machine, write

_CLAUDE, _CODEX, _GEMINI = a_session_with_everything(), codex_session(), gemini_session()
FILES = {
    "claude-code": (f".claude/projects/-p/{_CLAUDE.session}.jsonl", _CLAUDE.data),
    "codex": (f".codex/sessions/2026/02/01/{_CODEX.name}", _CODEX.data),
    "gemini": (".gemini/tmp/kiln/chats/session-2026-06-03T08-00-4d1f0c2e.jsonl", _GEMINI.data),
}


@given(form=st.sampled_from(sorted(FILES)), data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_split_into_imports_exports_the_same_bytes(form: str, data: st.DataObject) -> None:
    place, whole = FILES[form]
    cuts = data.draw(st.sets(st.integers(len(whole) // 3, len(whole)), max_size=4), label="cuts")
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        for cut in (*sorted(cuts), len(whole)):
            write(machine.home / place, whole[:cut])
            machine.bring_in()
        with machine.stores() as stores:
            (thread_id,) = stores.threads.ids()
            session = native_session(stores, stores.threads.load(thread_id), form)
            assert b"".join(chunks_of(stores, session.main)) == whole
            assert session.generations == (1,)


growths = st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=8)


@given(growths=growths, ends=st.sets(st.integers(0, 70)))
@example(growths=[(3, False), (3, False), (3, False), (4, True)], ends={2, 5, 8, 12})
@settings(max_examples=100, deadline=None)
def test_segments_laid_over_each_other_are_the_file(growths: list[tuple[int, bool]], ends: set[int]) -> None:
    """A file grows and is read: on from its last whole line, or from its start where the ledger was lost."""
    whole = bytes(10 if at in ends else 65 + at % 26 for at in range(sum(growth for growth, _ in growths)))
    with tempfile.TemporaryDirectory() as folder:
        blobs = BlobDirectory(Path(folder), syncs=False)
        kept: set[tuple[int, int, str]] = set()
        read_to = size = 0
        for growth, is_anew in growths:
            size += growth
            start = 0 if is_anew else read_to
            kept.add((start, size, blobs.put(whole[start:size], compress=True)))
            read_to = whole[:size].rfind(b"\n") + 1
        segments = [
            Segment(generation=0, start=start, end=end, sha256=sha256, thread_id="")
            for start, end, sha256 in sorted(kept)
        ]
        assert b"".join(bytes_of(blobs, segments)) == whole
        assert not has_gaps(segments)


def test_bytes_that_no_segment_holds_are_a_gap() -> None:
    def has_gap(*spans: tuple[int, int]) -> bool:
        return has_gaps(
            [Segment(generation=0, start=start, end=end, sha256="", thread_id="") for start, end in spans]
        )

    assert has_gap((1, 5))
    assert has_gap((0, 5), (6, 8))
    assert not has_gap((0, 9), (2, 3), (8, 10))
