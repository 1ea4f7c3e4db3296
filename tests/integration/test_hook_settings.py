"""Raddle's entries in the settings of other agents: put in beside whatever is there, and taken out again."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from raddle.adapters.agent_settings.hook_settings import (
    AGENTS,
    HookedAgent,
    entries,
    folder_of,
    install,
    notes_on,
    remove,
)
from raddle.adapters.agent_settings.settings_file import Change, write_change
from raddle.model.errors import BrokenFormat, ConflictError, InvalidInput, NotFound

CLAUDE, CODEX, GEMINI = AGENTS

SETTINGS = """{
  "model": "opus",
  "permissions": {"allow": ["Bash(ls:*)", "Read"]},
  "hooks": {
    "Stop": [
      {"matcher": "", "hooks": [{"type": "command", "command": "say 'done"}]}
    ]
  }
}
"""
CONFIG = """# my own
model = "o3" # the best

[tui]
theme = "dark"

[hooks.state."/x/hooks.json:stop:0:0"]
trusted_hash = "sha256:abc"
"""


def argv_of(agent: HookedAgent, where: str = "/opt/my tools/raddle") -> list[str]:
    return [where, "hooks", "run", agent.agent]


def put_in(agent: HookedAgent, folder: Path, **options: Any) -> list[Change]:
    changes = install(agent, folder, argv_of(agent), **options)
    for change in changes:
        write_change(change)
    return changes


def take_out(agent: HookedAgent, folder: Path) -> list[Change]:
    changes = remove(agent, folder)
    for change in changes:
        write_change(change)
    return changes


def plain_of(path: Path) -> Any:
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.agent)
def test_an_agent_without_settings_gets_some_and_twice_is_once(agent: HookedAgent, tmp_path: Path) -> None:
    assert len(put_in(agent, tmp_path)) == 1
    assert [entry.event for entry in entries(agent, tmp_path)] == list(agent.events)
    assert {entry.command for entry in entries(agent, tmp_path)} == {
        f"'/opt/my tools/raddle' hooks run {agent.agent}"
    }
    assert put_in(agent, tmp_path) == []
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(take_out(agent, tmp_path)) == 1
    assert entries(agent, tmp_path) == []
    assert take_out(agent, tmp_path) == []
    assert plain_of(file) == {}


def test_claude_codes_own_settings_stay_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(SETTINGS)
    file.chmod(0o644)
    put_in(CLAUDE, tmp_path)
    plain = plain_of(file)
    assert [len(plain["hooks"][event]) for event in ("Stop", "SessionEnd")] == [2, 1]
    handler = plain["hooks"]["Stop"][1]["hooks"][0]
    assert handler == {
        "type": "command",
        "command": "'/opt/my tools/raddle' hooks run claude-code",
        "timeout": 30,
    }
    assert '"permissions": {"allow": ["Bash(ls:*)", "Read"]},' in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    take_out(CLAUDE, tmp_path)
    assert file.read_text() == SETTINGS


def test_an_entry_of_ours_among_others_of_its_group_goes_alone(tmp_path: Path) -> None:
    theirs = {"type": "command", "command": "say done"}
    ours = {"type": "command", "command": "/old/raddle hooks run claude-code"}
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [ours, theirs]}]}}))
    take_out(CLAUDE, tmp_path)
    assert plain_of(file) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.agent)
def test_where_raddle_moved_the_entry_follows(agent: HookedAgent, tmp_path: Path) -> None:
    put_in(agent, tmp_path)
    (change,) = install(agent, tmp_path, ["/py", "-P", "-m", "raddle", "hooks", "run", agent.agent])
    write_change(change)
    found = entries(agent, tmp_path)
    assert [entry.event for entry in found] == list(agent.events)
    assert {entry.command for entry in found} == {f"/py -P -m raddle hooks run {agent.agent}"}


def test_a_link_to_settings_kept_elsewhere_stays_a_link(tmp_path: Path) -> None:
    folder, dotfiles = tmp_path / "home", tmp_path / "dotfiles"
    folder.mkdir()
    dotfiles.mkdir()
    (dotfiles / "claude.json").write_text(SETTINGS)
    (folder / "settings.json").symlink_to("../dotfiles/claude.json")
    put_in(CLAUDE, folder)
    assert (folder / "settings.json").is_symlink()
    assert len(plain_of(dotfiles / "claude.json")["hooks"]["Stop"]) == 2
    assert sorted(path.name for path in dotfiles.iterdir()) == ["claude.json"]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.agent)
@pytest.mark.parametrize("text", ['{"a": 1,}', "[1, 2", "\xff", "= 1"])
def test_what_cannot_be_read_is_refused_and_stays(agent: HookedAgent, text: str, tmp_path: Path) -> None:
    file = tmp_path / agent.files[-1]
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(BrokenFormat, match=str(file)):
        install(agent, tmp_path, argv_of(agent))
    with pytest.raises(BrokenFormat, match=str(file)):
        remove(agent, tmp_path)
    assert file.read_bytes() == text.encode("latin-1")


@pytest.mark.parametrize("hooks", ["1", "[]", '{"Stop": [1]}', '{"Stop": {"x": 1}}'])
def test_hooks_in_another_shape_are_left_alone(hooks: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(f'{{"hooks": {hooks}}}')
    with pytest.raises(BrokenFormat):
        install(CLAUDE, tmp_path, argv_of(CLAUDE))
    assert file.read_text() == f'{{"hooks": {hooks}}}'


def test_a_file_that_changed_since_it_was_shown_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(SETTINGS)
    (change,) = install(CLAUDE, tmp_path, argv_of(CLAUDE))
    file.write_text("{}")
    with pytest.raises(ConflictError):
        write_change(change)
    assert file.read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_an_agent_that_was_never_here_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        install(CLAUDE, tmp_path / "nowhere", argv_of(CLAUDE))


def test_gemini_keeps_its_comments_and_counts_milliseconds(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    text = '{\n    // my own\n    "theme": "x" // dark\n}\n'
    file.write_text(text)
    put_in(GEMINI, tmp_path)
    assert "// my own" in file.read_text()
    assert '"theme": "x", // dark' in file.read_text()
    assert '"timeout": 30000' in file.read_text()
    take_out(GEMINI, tmp_path)
    assert file.read_text() == text


def test_codexs_config_keeps_comments_order_and_what_it_trusts(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    put_in(CODEX, tmp_path)
    plain = plain_of(file)
    assert file.read_text().startswith(CONFIG)
    assert plain["hooks"]["state"] == tomllib.loads(CONFIG)["hooks"]["state"]
    assert plain["hooks"]["Stop"][0]["hooks"][0]["timeout"] == 30
    take_out(CODEX, tmp_path)
    assert file.read_text() == CONFIG


TOML_SHAPES = [
    '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command" # loud\ncommand = "say done"\n',
    'a=1\n[hooks]\n[[hooks.Stop]]\nmatcher = "*"\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "x"\n[t]\nb = 1\n',
    'hooks = { Stop = [ { hooks = [ { type = "command", command = "x" } ] } ] }\n[t]\nb = 1\n',
    '[hooks]\nStop = [{ hooks = [{ type = "command", command = "x" }] }]\n',
    "[hooks]\n# nothing yet\n\n[t]\nb = 1",
    'm = """\n[[hooks.Stop]]\n"""\n',
    '[[hooks.Start]]\n[[hooks.Start.hooks]]\ntype = "command"\ncommand = "x"\n[t]\nb = 1\n[[hooks.End]]\nhooks = []\n',
]


@pytest.mark.parametrize("text", TOML_SHAPES)
@pytest.mark.parametrize("as_notify", [False, True])
def test_any_layout_of_codexs_config_says_the_same_besides(
    text: str, as_notify: bool, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    put_in(CODEX, tmp_path, as_notify=as_notify)
    assert len(entries(CODEX, tmp_path)) == 1
    if "#" in text:
        assert text[text.index("#") :].splitlines()[0] in file.read_text()
    take_out(CODEX, tmp_path)
    assert plain_of(file) == tomllib.loads(text)


def test_codexs_hooks_go_where_it_has_some(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG)
    (tmp_path / "hooks.json").write_text('{"hooks": {"Stop": [{"hooks": []}]}}')
    (change,) = put_in(CODEX, tmp_path)
    assert change.path.name == "hooks.json"
    assert (tmp_path / "config.toml").read_text() == CONFIG
    take_out(CODEX, tmp_path)
    assert plain_of(tmp_path / "hooks.json") == {"hooks": {"Stop": [{"hooks": []}]}}


def test_codexs_one_notify_is_taken_only_where_it_is_free(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('notify = ["their", "own"]\n')
    with pytest.raises(ConflictError):
        install(CODEX, tmp_path, argv_of(CODEX), as_notify=True)
    put_in(CODEX, tmp_path)
    assert [entry.event for entry in entries(CODEX, tmp_path)] == ["Stop"]
    with pytest.raises(InvalidInput):
        install(CLAUDE, tmp_path, argv_of(CLAUDE), as_notify=True)


def test_what_keeps_an_agent_from_calling_is_said(tmp_path: Path) -> None:
    for agent, text in (
        (CLAUDE, '{"disableAllHooks": true}'),
        (GEMINI, '{"hooksConfig": {"enabled": false}}'),
        (CODEX, "[features]\nhooks = false\n"),
    ):
        folder = tmp_path / agent.agent
        folder.mkdir()
        (folder / agent.files[-1]).write_text(text)
        assert any("switched off" in note for note in notes_on(agent, folder))
    put_in(CODEX, tmp_path / "codex")
    assert any("trust" in note for note in notes_on(CODEX, tmp_path / "codex"))


def test_each_agents_own_variable_is_heard(tmp_path: Path) -> None:
    named = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "GEMINI_CLI_HOME": "/g"}
    assert [folder_of(agent, named.get, tmp_path) for agent in AGENTS] == [
        Path("/c"),
        Path("/x"),
        Path("/g/.gemini"),
    ]
    assert [folder_of(agent, lambda _: None, tmp_path).name for agent in AGENTS] == [
        ".claude",
        ".codex",
        ".gemini",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "notify-send done; /usr/bin/raddle hooks run claude-code",
        "echo raddle hooks run claude-code",
        "/usr/bin/raddle hooks run claude-code &",
        "cd /x && raddle hooks run claude-code",
        "FOO=1 /usr/bin/raddle hooks run claude-code",
        "sh -c 'raddle hooks run claude-code'",
        "$(which x)/raddle hooks run claude-code",
    ],
)
def test_a_command_of_the_persons_own_that_calls_us_among_others_stays(command: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}))
    before = file.read_bytes()
    assert entries(CLAUDE, tmp_path) == []
    assert take_out(CLAUDE, tmp_path) == []
    put_in(CLAUDE, tmp_path)
    take_out(CLAUDE, tmp_path)
    assert json.loads(file.read_bytes()) == json.loads(before)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.agent)
def test_what_is_no_ordinary_file_is_said_and_nobody_waits(agent: HookedAgent, tmp_path: Path) -> None:
    file = tmp_path / agent.files[0]
    for make in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to(path.name)):
        make(file)
        for ask in (
            lambda: entries(agent, tmp_path),
            lambda: remove(agent, tmp_path),
            lambda: install(agent, tmp_path, argv_of(agent)),
        ):
            with pytest.raises(BrokenFormat, match=r"ordinary file|circle"):
                ask()
        file.rmdir() if file.is_dir() else file.unlink()


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"a": {"hooks": 1}, "hooks": {}, "hooks": {"Stop": []}}')
    with pytest.raises(BrokenFormat, match="'hooks' stands in it twice"):
        install(CLAUDE, tmp_path, argv_of(CLAUDE))
