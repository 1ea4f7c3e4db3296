"""A very long session and one of very many distinct words: stored, found on the server, and the same on the next
machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.builders_claude_code import OTHER_SESSION, ClaudeSession
from tests.builders_daemon import called
from tests.builders_import import Machine
from tests.builders_served import a_token
from tests.builders_server import connected, prepare
from tests.command_line import Answer
from tests.postgres import NewDatabase
from tests.served_program import served_at

pytest_plugins = ["tests.postgres"]

NEEDLE = "zyzzyva"
"""A word that stands nowhere else, at the end of what is long."""
PATIENCE_SECONDS = 900.0
CHARACTERS = 8_000
"""What a message of the long session says."""


def _long_session(machine: Machine, megabytes: float) -> None:
    """Keep a session whose messages say so much, which is what its thread is made of."""
    random = Random(7)  # noqa: S311
    words = ["".join(random.choices("aeioustrnlm", k=random.randint(2, 9))) for _ in range(20_000)]
    talk = ClaudeSession()
    for _ in range(int(megabytes * 1e6 / (2 * CHARACTERS))):
        talk.user(_prose(words, random))
        talk.says(_prose(words, random))
    talk.user(f"the last word is {NEEDLE}")
    machine.keep(talk)


def _prose(words: list[str], random: Random) -> str:
    """Lines of these words, `CHARACTERS` of them."""
    lines = (" ".join(random.choices(words, k=12)) for _ in range(CHARACTERS // 60))
    return "\n".join(lines)[:CHARACTERS]


def _many_words(machine: Machine, megabytes: float) -> str:
    """Keep a session of one message of so many distinct words; the last of them."""
    count = int(megabytes * 125_000)
    talk = ClaudeSession(OTHER_SESSION)
    talk.user(" ".join(f"w{number:06x}" for number in range(count)))
    talk.says("so many")
    machine.keep(talk)
    return f"w{count - 1:06x}"


def _everything(machine: Machine) -> list[tuple[str, list[tuple[str, str]]]]:
    """What every thread says, the messages by their ids."""
    return [
        (thread.id, sorted((message.id, message.content) for message in thread.messages))
        for thread in machine.threads()
    ]


def live_on_two_machines(
    folder: Path, new_database: NewDatabase, *, megabytes: float, megabytes_of_words: float
) -> None:
    """One machine's two sessions on the server, in its answers, and on the other machine."""
    one, other = Machine(folder / "one"), Machine(folder / "other")
    _long_session(one, megabytes)
    last_word = _many_words(one, megabytes_of_words)
    conninfo = new_database(prepare)
    with connected(conninfo) as connection:
        token = a_token(connection)
    with served_at(conninfo, folder / "blobs") as address:
        env = {"RADDLE_SERVER": address, "RADDLE_TOKEN": token}
        took: dict[str, float] = {}

        def run(machine: Machine, *words: str) -> Answer:
            began = time.monotonic()
            answer = called(machine, *words, env=env, patience=PATIENCE_SECONDS)
            assert answer.code == 0, answer.err
            took[f"{machine.folder.name}: {' '.join(words)}"] = time.monotonic() - began
            return answer

        run(one, "import")
        run(one, "sync")
        for word in (NEEDLE, last_word):
            end = time.monotonic() + PATIENCE_SECONDS
            while not (found := run(one, "search", "--online", word, "--json").json)["total_threads"]:
                assert time.monotonic() < end, found
        run(other, "sync")
    sys.stdout.writelines(f"{what}: {seconds:.1f} s\n" for what, seconds in took.items())
    for word in (NEEDLE, last_word):
        assert len(other.finds(word)) == 1
    assert _everything(other) == _everything(one)


def test_a_long_session_and_many_words_are_on_both_machines(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    live_on_two_machines(tmp_path, new_database, megabytes=2, megabytes_of_words=0.2)


@pytest.mark.soak
def test_a_thread_of_200_megabytes_and_5_of_distinct_words_are_on_both_machines(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    live_on_two_machines(tmp_path, new_database, megabytes=215, megabytes_of_words=5)
    largest = max(path.stat().st_size for path in (tmp_path / "one" / "data" / "threads").glob("*.json"))
    assert largest > 200_000_000
