"""A program that answers, run for real: what it gets, what it sees, and how its end is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from raddle.actions.answering.ports import Answered, Piece
from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.responders.command import CommandResponder
from raddle.model.errors import Rejected, Unanswered
from tests.contract.responder_laws import a_question, answer_of, asked, text_of


def program(code: str, *, folder: Path | None = None, **settings: object) -> CommandResponder:
    given = {"name": "mine", "kind": "command", "program": (sys.executable, "-c", code)} | settings
    return CommandResponder(ResponderSettings(**given), folder=folder)  # type: ignore[arg-type]


def test_the_question_is_its_input_and_its_output_the_answer() -> None:
    echo = program("import sys; print('You said: ' + sys.stdin.read())")
    assert answer_of(asked(echo, a_question("Is it ü?"))).text == "You said: Is it ü?"


def test_as_json_it_gets_all_that_is_known() -> None:
    echo = program("import sys; print(sys.stdin.read())", format="json", model="m")
    answered = answer_of(asked(echo, a_question("Why?")))
    assert json.loads(answered.text) == {
        "query": "Why?",
        "messages": [{"role": "user", "content": "Why?"}],
        "model": "m",
        "thread_id": a_question().thread_id,
    }
    assert (answered.provider, answered.model) == ("mine", "m")


def test_it_runs_where_it_is_told_to(tmp_path: Path) -> None:
    assert answer_of(asked(program("import os; print(os.getcwd())", folder=tmp_path))).text == str(tmp_path)
    with pytest.raises(Rejected, match="no folder"):
        asked(program("print(1)", folder=tmp_path / "gone"))


def test_it_sees_what_other_programs_see_but_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADDLE_TOKEN", "hunter2")
    monkeypatch.setenv("RADDLE_DATABASE_URL", "postgresql://ada:hunter2@db")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("OLLAMA_HOST", "there")
    text = answer_of(asked(program("import os; print(dict(os.environ))"))).text
    assert "hunter2" not in text
    assert "'LC_ALL': 'de_DE.UTF-8'" in text
    assert "'OLLAMA_HOST': 'there'" in text


def test_words_come_while_it_still_works() -> None:
    events = program("import signal; print('First', flush=True); signal.pause()").ask(a_question())
    assert next(events) == Piece(text="First")
    events.close()  # type: ignore[attr-defined]


def test_letters_cut_by_a_pipe_stay_whole_and_line_ends_at_the_end_are_no_words() -> None:
    code = (
        "import os, time\n"
        "for byte in '線\\n\\nü'.encode() + b'\\r\\n\\n':\n"
        "    os.write(1, bytes([byte])); time.sleep(0.01)"
    )
    events = asked(program(code))
    assert answer_of(events).text == text_of(events) == "線\n\nü"


def test_how_it_failed_is_told_by_the_last_line_of_its_errors() -> None:
    errors = "'first\\n\\x1b[31mno key sk-12345678 set\\n'"
    code = f"import sys; print('half'); print({errors}, file=sys.stderr); sys.exit(3)"
    with pytest.raises(Unanswered) as caught:
        asked(program(code))
    assert caught.value.message.endswith("ended with exit code 3: [31mno key *** set")
    with pytest.raises(Unanswered, match="ended with signal 9"):
        asked(program("import os; os.kill(os.getpid(), 9)"))


def test_an_empty_answer_is_told_with_what_it_complained_of() -> None:
    with pytest.raises(Unanswered, match="answered without a word: no such model"):
        asked(program("import sys; print('no such model', file=sys.stderr)"))


def test_errors_without_end_do_not_hurt() -> None:
    code = "import sys; sys.stderr.write('x' * 9_000_000 + '\\nlast'); print('Yes')"
    assert answer_of(asked(program(code))).text == "Yes"


@pytest.mark.parametrize("argv", [("no-such-program",), ("./here",), ("/",), ()])
def test_what_cannot_be_run_is_told_before_anything(argv: tuple[str, ...]) -> None:
    with pytest.raises(Rejected) as caught:
        asked(program("", program=argv))
    assert caught.value.hint


def test_no_word_is_a_word_for_a_shell(tmp_path: Path) -> None:
    words = ("$(touch evil)", "; touch evil", "*")
    code = "import sys; print(sys.argv[1:])"
    argv = (sys.executable, "-c", code, *words)
    assert answer_of(asked(program(code, program=argv, folder=tmp_path))).text == str(list(words))
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_reads_nothing_answers_all_the_same() -> None:
    events = asked(program("print('Yes')"), a_question("x" * 3_000_000))
    assert events[-1] == Answered(text="Yes", provider="mine")
