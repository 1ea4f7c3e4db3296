"""raddle registered as a server of agents: in each client's own settings, shown first, and undone to the byte."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from raddle.config import Config, load_config
from raddle.model.errors import BrokenFormat, ConflictError, InvalidInput, NotFound, RaddleError
from raddle.wiring.mcp_registrations import NAMES, Plan, carry_out, plan_install, plan_removal

PROGRAM = ("/opt/somewhere/bin/raddle",)
PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
}
USER_FILES = {
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
}
CONTAINERS = {"codex": "mcp_servers", "opencode": "mcp", "vscode": "servers"}
JSON_LAYOUTS = [
    b"",
    b" \n",
    b"{}",
    b"{ \n }\n",
    b'{"SERVERS":{}}',
    b'{"a":1,"SERVERS":{"other":{"command":"x"}},"z":[1,2,3]}',
    b'{\r\n\t"a": 1,\r\n\t"SERVERS": {\r\n\t\t"other": {"command": "x"}\r\n\t}\r\n}\r\n',
    b'\xef\xbb\xbf{"a": 1}\n',
    b'{\n    "SERVERS" :\n{ \n\n }   }\n\n',
]
LENIENT_LAYOUTS = [
    b'{\n  // the servers\n  "SERVERS": {\n    "other": {"command": "x"}, // mine\n  },\n}\n',
    b'{ "SERVERS": { "other": {"command": "a, ]"}, }, }',
    b"/* nothing yet */ {}\n",
]
TOML_LAYOUTS = [
    b"",
    b'model = "x"  # the best\r\n[a]\r\nb = 1\r\n',
    b"[mcp_servers]\n",
    b"mcp_servers = {}\n",
    b'mcp_servers = { other = { command = "x" } } # mine\n',
    b'[mcp_servers.other]\ncommand = "x"\nargs = [ "a", ]\n\n[mcp_servers.other.env]\nA = "1"\n[z]\na=2',
    b'\xef\xbb\xbfmodel="x"\n',
]
LAYOUTS = [
    *[(client, text) for client in ("claude-code", "opencode", "vscode", "gemini") for text in JSON_LAYOUTS],
    *[(client, text) for client in ("gemini", "opencode", "cursor", "vscode") for text in LENIENT_LAYOUTS],
    *[("codex", text) for text in TOML_LAYOUTS],
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "code"
    for folder in ("src", ".git/objects", ".git/refs"):
        (made / folder).mkdir(parents=True)
    (made / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return made


@pytest.fixture
def config(home: Path, project: Path) -> Config:
    return load_config(workspace=str(project / "src"))


def put_in(config: Config, client: str, **how: Any) -> Plan:
    plan = plan_install(config, client, PROGRAM, **how)
    carry_out(plan)
    return plan


def take_out(config: Config, client: str, **how: Any) -> Plan:
    plan = plan_removal(config, client, **how)
    carry_out(plan)
    return plan


def entry_in(file: Path) -> Any:
    """What is registered there, from the strict form of what the tests write."""
    text = file.read_text(encoding="utf-8-sig")
    plain = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    (servers,) = (plain[key] for key in ("mcpServers", "mcp_servers", "mcp", "servers") if key in plain)
    return servers["raddle"]


@pytest.mark.parametrize("client", NAMES)
def test_a_project_says_it_in_a_file_that_fits_every_machine(
    config: Config, project: Path, client: str
) -> None:
    plan = put_in(config, client, scope="project")
    file = project / PROJECT_FILES[client]
    assert plan.files == (str(file),)
    assert "+" in plan.diff
    entry = entry_in(file)
    if client == "opencode":
        assert entry == {"type": "local", "command": ["raddle", "mcp-serve"]}
    else:
        assert entry["command"] == "raddle"
        assert entry["args"] == ["mcp-serve"]
    assert str(project.parent) not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert not plan_install(config, client, PROGRAM, scope="project").changes
    take_out(config, client)
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]


@pytest.mark.parametrize("client", NAMES)
def test_a_person_has_it_with_this_very_raddle(config: Config, home: Path, client: str) -> None:
    file = home / USER_FILES[client]
    if client != "claude-code":
        with pytest.raises(NotFound, match="folder"):
            plan_install(config, client, PROGRAM, scope="user")
    file.parent.mkdir(parents=True, exist_ok=True)
    put_in(config, client, scope="user")
    entry = entry_in(file)
    assert (entry["command"][0] if client == "opencode" else entry["command"]) == PROGRAM[0]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    take_out(config, client, scope="user")
    assert not file.exists()
    assert file.parent.exists()


def test_codex_is_registered_for_the_person_and_the_others_for_the_project(
    config: Config, home: Path
) -> None:
    (home / ".codex").mkdir()
    assert plan_install(config, "codex", PROGRAM).files == (str(home / ".codex/config.toml"),)
    for client in set(NAMES) - {"codex"}:
        (file,) = plan_install(config, client, PROGRAM).files
        assert file.endswith(f"/code/{PROJECT_FILES[client]}")


@pytest.mark.parametrize(("client", "layout"), LAYOUTS)
def test_taken_out_again_it_leaves_no_trace(
    config: Config, project: Path, client: str, layout: bytes
) -> None:
    before = layout.replace(b"SERVERS", CONTAINERS.get(client, "mcpServers").encode())
    file = project / PROJECT_FILES[client]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before)
    put_in(config, client, scope="project")
    after = file.read_bytes()
    assert b"mcp-serve" in after
    comments = [part for part in (b"// the servers", b"// mine", b"# mine", b"# the best") if part in before]
    assert all(part in after for part in comments)
    take_out(config, client)
    assert file.read_bytes() == before


@pytest.mark.parametrize(("client", "layout"), LAYOUTS)
def test_what_was_written_meanwhile_stays(config: Config, project: Path, client: str, layout: bytes) -> None:
    before = layout.replace(b"SERVERS", CONTAINERS.get(client, "mcpServers").encode())
    file = project / PROJECT_FILES[client]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before)
    put_in(config, client, scope="project")
    end = b"\n# more\n" if client == "codex" else b"\n\n"
    file.write_bytes(file.read_bytes() + end)
    take_out(config, client)
    left = file.read_bytes()
    assert b"mcp-serve" not in left
    assert left.endswith(end)
    assert (b"other" in left) == (b"other" in before)


def test_a_registration_that_came_with_the_code_is_taken_out_too(config: Config, project: Path) -> None:
    file = project / ".mcp.json"
    file.write_text(
        '{"mcpServers": {"other": {"command": "x"}, "raddle": {"command": "raddle", "args": ["mcp-serve", "--x"]}}}\n'
    )
    assert not plan_install(config, "claude-code", PROGRAM).changes  # what a person added to it stays
    take_out(config, "claude-code")
    assert file.read_text() == '{"mcpServers": {"other": {"command": "x"}}}\n'
    assert not plan_removal(config, "claude-code").changes


@pytest.mark.parametrize(
    ("command", "before"),
    [("raddle", []), ("/x/raddle", []), ("uvx", ["raddle"]), ("uvx", ["--from", "raddle[mcp]==1", "raddle"])],
)
def test_a_server_that_was_adopted_is_not_registered_twice(
    config: Config, project: Path, command: str, before: list[str]
) -> None:
    file = project / ".mcp.json"
    server = {"command": command, "args": [*before, "mcp-serve", "--store", "m"]}
    file.write_text(json.dumps({"mcpServers": {"redthread": server}}))
    plan = plan_install(config, "claude-code", PROGRAM)
    assert not plan.changes
    assert "redthread" in plan.hints[0]
    assert not plan_removal(config, "claude-code").changes  # no install of ours put it there


def test_raddle_that_moved_is_found_again_with_what_was_added(config: Config, home: Path) -> None:
    (home / ".codex").mkdir()
    file = home / ".codex/config.toml"
    put_in(config, "codex")
    file.write_text(
        file.read_text().replace('["mcp-serve"]', '["mcp-serve", "--all-repositories"]') + "a=1\n"
    )
    carry_out(plan_install(config, "codex", ["/new/raddle"]))
    entry = tomllib.loads(file.read_text())["mcp_servers"]["raddle"]
    assert {"RADDLE_DATA_DIR", "XDG_DATA_HOME", "SSH_AUTH_SOCK"} <= set(entry.pop("env_vars"))
    assert entry == {"command": "/new/raddle", "args": ["mcp-serve", "--all-repositories"], "a": 1}
    take_out(config, "codex")
    assert not file.exists() or b"raddle" not in file.read_bytes()


def test_another_server_of_that_name_is_nobody_elses_to_replace(config: Config, project: Path) -> None:
    file = project / ".mcp.json"
    theirs = b'{"mcpServers": {"raddle": {"command": "npx", "args": ["raddle"]}}}'
    file.write_bytes(theirs)
    with pytest.raises(ConflictError, match="another server"):
        plan_install(config, "claude-code", PROGRAM)
    assert not plan_removal(config, "claude-code").changes
    put_in(config, "claude-code", force=True)
    assert entry_in(file)["command"] == "raddle"


HOSTILE = [
    ("claude-code", b'{"mcpServers": '),
    ("claude-code", b'{"mcpServers": [], "a": 1}'),
    ("claude-code", b'{"mcpServers": {"raddle": 1, "raddle": 2}}'),
    ("claude-code", b"[]"),
    ("claude-code", b"\xff\xfe"),
    ("claude-code", b'{"a": 1,}'),
    ("claude-code", b"[" * 100_000),
    ("vscode", b"{,}"),
    ("vscode", b'{"a" 1}'),
    ("opencode", b'{"mcp": "off"}'),
    ("codex", b"[mcp_servers\n"),
    ("codex", b'mcp_servers = "none"\n'),
    ("codex", b"[[mcp_servers]]\na = 1\n"),
]


@pytest.mark.parametrize(("client", "data"), HOSTILE)
def test_what_cannot_be_read_is_left_as_it_is(
    config: Config, project: Path, client: str, data: bytes
) -> None:
    file = project / PROJECT_FILES[client]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    with pytest.raises(BrokenFormat) as told:
        plan_install(config, client, PROGRAM, scope="project")
    assert str(file) in told.value.message
    assert file.read_bytes() == data


def test_a_file_that_changes_while_a_person_thinks_is_not_written_over(config: Config, project: Path) -> None:
    plan = plan_install(config, "vscode", PROGRAM)
    (project / ".vscode").mkdir()
    (project / ".vscode/mcp.json").write_text("{}")
    with pytest.raises(RaddleError, match="changed"):
        carry_out(plan)
    assert (project / ".vscode/mcp.json").read_text() == "{}"


def test_a_home_is_no_project(home: Path) -> None:
    with pytest.raises(InvalidInput, match="your home"):
        plan_install(load_config(workspace=str(home)), "gemini", PROGRAM)
    assert not plan_removal(load_config(workspace=str(home)), "vscode").changes


def test_opencode_with_its_servers_one_level_deeper_is_written_to_so(config: Config, project: Path) -> None:
    file = project / "opencode.jsonc"
    before = '{\n  "mcp": {\n    "servers": {"other": {"type": "local", "command": ["x"]}},\n  },\n}\n'
    file.write_text(before)
    put_in(config, "opencode")
    assert '"raddle": {"type": "local", "command": ["raddle", "mcp-serve"]}' in file.read_text()
    assert file.read_text().index('"servers"') < file.read_text().index('"raddle"')
    take_out(config, "opencode")
    assert file.read_text() == before
