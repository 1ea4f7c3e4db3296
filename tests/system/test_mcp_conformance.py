"""The protocol's own suite of tests and its inspector, from npm, against the server for agents.

The suite is made for SDKs: most of its scenarios ask for tools of its own making. What is left of it is held to the
letter: which scenarios pass is what docs/reference/mcp-conformance.md says, and whatever fails does so for want of
something that the suite itself would have to bring.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from raddle.apps.mcp_server.catalogue import TOOLS
from tests.builders_import import Machine
from tests.builders_server import a_person, connected, new_id, prepare
from tests.listening_program import ListeningProgram
from tests.mcp_sessions import call, session_in
from tests.memory_hosts import make_code
from tests.npm_programs import npm_programs
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)
pytestmark = pytest.mark.soak

PINNED = (
    "node@22.23.3",  # the inspector needs it, and not every system has it
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
)
REVISIONS = ("2025-11-25", "2026-07-28")
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "mcp-conformance.md"
_COLUMNS = 1 + 2 * len(REVISIONS)
PATIENCE_SECONDS = 120

OF_THE_SUITE = re.compile(
    r"there is no tool '(?:test_|greet|slow_|multi_|confirm_|failing_|protocol_)|no prompt 'test_|no resource 'test://"
    r"|Tool 'json_schema_2020_12_tool' not found|Not testable: |Method not found"
)
"""What a check fails for that is none of ours: it wants a tool, prompt or resource of the suite's own making, or a part
of the protocol that a server may leave out."""
MORE_INPUT = "input-required-result-"
"""Scenarios on tools that ask the client for something in the middle of a call: some pass because there is none."""


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> Path:
    return npm_programs(
        pytestconfig, PINNED, variable="PYTEST_MCP_PROGRAMS", what="the programs that check a server"
    )


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[str]:
    """All that `raddle mcp-serve` answers, over HTTP."""
    machine = Machine(tmp_path / "machine")
    code = make_code(tmp_path / "code")
    session = session_in(code, machine.home)
    call(session, "store_init", project_id="kiln", phases=["build"])
    call(session, "memory_write", namespace="team", key="glaze", content="cobalt")
    session.freshness.close()
    with ListeningProgram("tests.served_mcp", "whole", str(code), str(machine.home)) as program:
        yield program.address


@pytest.fixture
def threads(tmp_path: Path, new_database: NewDatabase) -> Iterator[str]:
    """What a sync server answers."""
    from raddle.model.protocol.signing_in import THREADS
    from raddle.server.accounts.devices import mint

    conninfo = new_database(prepare)
    with connected(conninfo) as connection:
        token = mint(connection, a_person(connection, "ada").user, "laptop", [THREADS], new_id=new_id)
    arguments = ("threads", conninfo, str(tmp_path / "blobs"), token)
    with ListeningProgram("tests.served_mcp", *arguments) as program:
        yield program.address


@pytest.fixture
def made_up() -> Iterator[str]:
    """Tools as the suite wants them, over the same serving."""
    with ListeningProgram("tests.served_mcp", "made-up") as program:
        yield program.address


def _node(
    programs: Path, package: str, *words: str, cwd: Path, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the program of a package."""
    found = json.loads((programs.parent / package / "package.json").read_text())["bin"]
    entry = next(iter(found.values())) if isinstance(found, dict) else found
    return subprocess.run(
        [str(programs / "node"), str(programs.parent / package / entry), *words],
        cwd=cwd,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def checks_of(programs: Path, url: str, revision: str, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What the suite found, by scenario."""
    told = folder / f"suite {revision}"
    words = ("server", "--url", url, "--suite", "all", "--spec-version", revision, "--output-dir", str(told))
    ran = _node(programs, "@modelcontextprotocol/conformance", *words, cwd=folder)
    assert "=== SUMMARY ===" in ran.stdout, ran.stderr[-2000:]
    return {_name(one): json.loads((one / "checks.json").read_text()) for one in sorted(told.iterdir())}


def _name(folder: Path) -> str:
    return re.sub(r"-\d{4}-\d\d-\d\dT[\dZ-]+\Z", "", folder.name.removeprefix("server-"))


def failed(checks: list[dict[str, Any]]) -> list[str]:
    return [f"{one['id']}: {one.get('errorMessage', '')}" for one in checks if one["status"] == "FAILURE"]


def cells(found: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    """What the page has to say of each scenario: how many checks passed, and of how many where some failed."""
    told = {}
    for name, checks in found.items():
        passed = sum(one["status"] == "SUCCESS" for one in checks)
        all_of_them = passed + len(failed(checks))
        told[name] = str(passed) if passed == all_of_them else f"{passed} of {all_of_them}"
    return told


def on_the_page(column: int) -> dict[str, str]:
    """What the page says of the server and revision of that column."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text().splitlines()
        if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[column] for row in rows if len(row) == _COLUMNS and row[column] != "–"}


def check(found: Mapping[str, list[dict[str, Any]]], column: int) -> None:
    asked = {name: checks for name, checks in found.items() if not name.startswith(MORE_INPUT)}
    assert [one for checks in asked.values() for one in failed(checks) if not OF_THE_SUITE.search(one)] == []
    told, page = cells(asked), on_the_page(column)
    passing = {name for name, checks in asked.items() if not failed(checks) and told[name] != "0"}
    assert {name: told[name] for name in passing | (told.keys() & page.keys())} == page


@pytest.mark.parametrize(("column", "revision"), [*enumerate(REVISIONS, 1)])
def test_what_passes_of_the_whole_server_is_what_the_page_says(
    column: int, revision: str, programs: Path, whole: str, tmp_path: Path
) -> None:
    check(checks_of(programs, whole, revision, tmp_path), column)


@pytest.mark.parametrize(("column", "revision"), [*enumerate(REVISIONS, 3)])
def test_what_passes_of_a_sync_server_is_what_the_page_says(
    column: int, revision: str, programs: Path, threads: str, tmp_path: Path
) -> None:
    check(checks_of(programs, threads, revision, tmp_path), column)


@pytest.mark.parametrize("revision", REVISIONS)
def test_errors_and_progress_of_tools_are_told_as_the_protocol_has_them(
    revision: str, programs: Path, made_up: str, tmp_path: Path
) -> None:
    found = checks_of(programs, made_up, revision, tmp_path)
    assert failed(found["tools-call-error"]) == failed(found["tools-call-with-progress"]) == []
    left = {one.partition(":")[0] for one in failed(found.get("server-stateless", []))}
    assert left <= {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}


class Inspected(NamedTuple):
    """A project, as the inspector's command line sees its server over stdin and stdout."""

    programs: Path
    machine: Machine
    code: Path

    def ask(self, *words: str, code: int = 0) -> tuple[Any, str]:
        """What it prints, as JSON, and what it says besides."""
        server = (sys.executable, "-m", "raddle", "mcp-serve", "--no-daemon")
        env = {**self.machine.environment, "MCP_CATALOG_PATH": str(self.machine.folder / "catalog.json")}
        ran = _node(
            self.programs, "@modelcontextprotocol/inspector", "--cli", *server, *words, cwd=self.code, **env
        )
        assert ran.returncode == code, ran.stderr
        return json.loads(ran.stdout or "null"), ran.stderr


def test_the_inspector_lists_calls_reads_and_is_told_what_is_wrong(programs: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    code = make_code(tmp_path / "code")
    inspected = Inspected(programs, machine, code)
    made = ("project_id=kiln", 'phases=["build"]')
    told, _ = inspected.ask("--method", "tools/call", "--tool-name", "store_init", "--tool-arg", *made)
    assert not told["isError"], told
    tools, said = inspected.ask("--method", "tools/list")
    assert {tool["name"] for tool in tools["tools"]} == {tool.name for tool in TOOLS}
    assert re.search(r"Schema portability: 0 errors", said)
    words = ("--tool-arg", "namespace=team", "key=glaze", "content=cobalt")
    told, _ = inspected.ask("--method", "tools/call", "--tool-name", "memory_write", *words)
    assert told["structuredContent"] == {"name": "team/glaze", "state": "created"}
    told, _ = inspected.ask("--method", "resources/read", "--uri", "raddle://memory/team/glaze")
    assert json.loads(told["contents"][0]["text"])["content"] == "cobalt\n"
    told, _ = inspected.ask("--method", "prompts/get", "--prompt-name", "catch_up")
    assert told["messages"][0]["role"] == "user"
