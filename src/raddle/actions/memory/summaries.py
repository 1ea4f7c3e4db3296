"""Summaries: the rolling digest of a phase, read and written as a whole."""

from __future__ import annotations

from raddle.actions.memory.payloads import check_size
from raddle.actions.memory.ports import StoreFiles
from raddle.actions.memory.runs import known_phase, read_run
from raddle.model.errors import InvalidInput
from raddle.model.memory.documents import text_of
from raddle.model.memory.repo_layout import summary_file


def get_summary(files: StoreFiles, run_id: str, phase: str) -> str | None:
    """The digest, just as it was set; None where there is none. NotFound, InvalidInput; BrokenFormat where it is no
    text."""
    data = files.read(_file(files, run_id, phase))
    return None if data is None else text_of(data, f"the summary of phase {phase}")


def set_summary(files: StoreFiles, run_id: str, phase: str, text: str) -> None:
    """Have `text` as the digest in place of the one there is, which git keeps; an empty text takes it away.

    NotFound for the run, InvalidInput for the phase, TooLarge.
    """
    try:
        data = check_size(text.encode(), "the summary")
    except UnicodeEncodeError as error:
        raise InvalidInput("the summary holds half a character", "give it as whole Unicode") from error
    files.change(_file(files, run_id, phase), lambda _: data or None)


def _file(files: StoreFiles, run_id: str, phase: str) -> str:
    run = read_run(files, run_id)
    return summary_file(run.run_id, known_phase(files, run, phase))
