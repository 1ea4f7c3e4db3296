"""Hooks that are taken out again leave the settings of the agent as they were, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raddle.config import Config, load_config
from raddle.wiring.hooks import carry_out, plan_install, plan_removal, states
from tests.builders_import import write

ARGV = ["/opt/raddle", "hooks", "run"]
FILES = {
    "claude-code": ".claude/settings.json",
    "gemini-cli": ".gemini/settings.json",
    "codex": ".codex/config.toml",
}
JSON_LAYOUTS = [
    b"",
    b"  \n",
    b"{}",
    b"{ \n }\n",
    b'{"a":1,"hooks":{"Stop":[]},"z":[1,2,3]}',
    b'{"hooks":{"Stop":[],"SessionEnd":[],"AfterAgent":[]}}',
    b'{"hooks":{"Stop":[{"hooks":[]}]}}',
    b'{\r\n  "a": 1,\r\n  "hooks": {}\r\n}\r\n',
    b'\xef\xbb\xbf{"a": 1}\n',
    b'{"hooks" :\n{ "Stop" : [ \n\n ] }\n}\n\n\n',
    b'{\n\t"a": 1,\n\t"model" : "x"\n}',
]
TOML_LAYOUTS = [
    b"",
    b"\n\n   \n",
    b'model = "x"\r\n[a]\r\nb = 1\r\n',
    b"[[x]]\na=1\n[[x]]\na=2",
    b"hooks = { Stop = [] }\n",
    b"hooks.Stop = []\n",
    b'[hooks]\nStop = [\n  { hooks = [ { type = "command", command = "me" }, ] },\n]\n',
    b'\xef\xbb\xbfmodel="x"\n',
]
LAYOUTS = [(agent, text) for agent in ("claude-code", "gemini-cli") for text in JSON_LAYOUTS] + [
    ("codex", text) for text in TOML_LAYOUTS
]


@pytest.fixture
def config(home: Path) -> Config:
    return load_config()


def put_in(config: Config, agent: str, program: str = "/opt/raddle", *, as_notify: bool = False) -> None:
    carry_out(plan_install(config, agent, [program, "hooks", "run", agent], as_notify=as_notify))


def take_out(config: Config, agent: str) -> None:
    carry_out(plan_removal(config, agent))


@pytest.mark.parametrize(("agent", "text"), LAYOUTS)
def test_a_file_that_nobody_touched_is_what_it_was(
    config: Config, home: Path, agent: str, text: bytes
) -> None:
    file = home / FILES[agent]
    write(file, text)
    put_in(config, agent)
    assert file.read_bytes() != text
    put_in(config, agent, "/moved/raddle")
    assert b"/opt/raddle" not in file.read_bytes()
    take_out(config, agent)
    assert file.read_bytes() == text


@pytest.mark.parametrize("text", TOML_LAYOUTS)
def test_the_same_of_codexs_notify_and_of_both_ways_at_once(config: Config, home: Path, text: bytes) -> None:
    file = home / FILES["codex"]
    write(file, text)
    put_in(config, "codex", as_notify=True)
    take_out(config, "codex")
    assert file.read_bytes() == text
    put_in(config, "codex", as_notify=True)
    put_in(config, "codex")
    take_out(config, "codex")
    assert file.read_bytes() == text


@pytest.mark.parametrize("agent", FILES)
def test_a_file_that_was_made_for_the_entry_goes_with_it(config: Config, home: Path, agent: str) -> None:
    file = home / FILES[agent]
    file.parent.mkdir()
    put_in(config, agent)
    plan = plan_removal(config, agent)
    assert "+++ /dev/null" in plan.diff
    carry_out(plan)
    assert list(file.parent.iterdir()) == []
    put_in(config, agent)
    put_in(config, agent, "/moved/raddle")
    take_out(config, agent)
    assert list(file.parent.iterdir()) == []


def test_what_the_person_wrote_meanwhile_stays_and_so_do_their_empty_lists(
    config: Config, home: Path
) -> None:
    file = home / FILES["claude-code"]
    write(file, b'{"hooks": {"Stop": []}}')
    put_in(config, "claude-code")
    plain = json.loads(file.read_bytes())
    file.write_text(json.dumps(plain | {"model": "opus"}))
    take_out(config, "claude-code")
    assert json.loads(file.read_bytes()) == {"hooks": {"Stop": []}, "model": "opus"}


def test_a_file_made_for_the_entry_stays_where_the_person_wrote_into_it(config: Config, home: Path) -> None:
    file = home / FILES["claude-code"]
    file.parent.mkdir()
    put_in(config, "claude-code")
    plain = json.loads(file.read_bytes())
    file.write_text(json.dumps(plain | {"model": "opus"}))
    take_out(config, "claude-code")
    assert json.loads(file.read_bytes()) == {"model": "opus"}
    file.write_text(json.dumps(plain))
    put_in(config, "claude-code", "/moved/raddle")
    take_out(config, "claude-code")
    assert json.loads(file.read_bytes()) == {}, "by now it is the person's"


def test_nothing_is_noted_of_settings_but_what_was_changed(config: Config, home: Path) -> None:
    write(home / FILES["claude-code"], b'{\n  "env": {"TOKEN": "walrus"},\n  "a": 1\n}\n')
    put_in(config, "claude-code")
    notes = config.state_dir / "hooks.json"
    assert b"walrus" not in notes.read_bytes()
    assert notes.stat().st_mode & 0o077 == 0


def test_notes_that_do_not_read_keep_nobody_from_taking_out(config: Config, home: Path) -> None:
    file = home / FILES["claude-code"]
    write(file, b'{"a": 1}')
    put_in(config, "claude-code")
    write(config.state_dir / "hooks.json", b"torn")
    take_out(config, "claude-code")
    assert json.loads(file.read_bytes()) == {"a": 1}


def test_settings_that_cannot_be_read_are_a_problem_of_that_agent_alone(config: Config, home: Path) -> None:
    for name in FILES.values():
        (home / name).parent.mkdir()
    (home / FILES["claude-code"]).symlink_to("settings.json")
    put_in(config, "codex")
    rows = {row.agent: row for row in states(config)}
    assert "circle" in rows["claude-code"].problem
    assert rows["codex"].is_installed
