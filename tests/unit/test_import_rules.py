"""Rules of the config: which sessions are left out, which are private from their first byte."""

from __future__ import annotations

import json

import pytest

from raddle.actions.importing.rules import Rules, workspace_in
from tests.builders_claude_code import FOLDER, ClaudeSession, a_session_with_everything, calls


@pytest.mark.parametrize(
    ("glob", "workspace", "fits"),
    [
        ("/home/me/clients", "/home/me/clients", True),
        ("/home/me/clients", "/home/me/clients/acme/src", True),
        ("/home/me/clients/", "/home/me/clients/acme", True),
        ("/home/me/clients/**", "/home/me/clients/acme/src", True),
        ("/home/me/clients/**", "/home/me/clients", True),
        ("/home/me/clients", "/home/me/clients-of-old", False),
        ("/home/me/*/secret", "/home/me/a/b/secret", True),
        ("/home/me/c?ients", "/home/me/clients", True),
        ("/home/me/[ab]", "/home/me/c", False),
        ("/", "/anything", True),
        ("/**", "/anything", True),
        ("/home/me/Clients", "/home/me/clients", False),
        ("/home/me/clients", "", False),
    ],
)
def test_a_glob_names_a_folder_and_all_below_it(glob: str, workspace: str, *, fits: bool) -> None:
    assert bool(Rules(exclude=[glob]).leaves_out("/sessions/s.jsonl", workspace)) is (
        fits or glob in ("/", "/**")
    )
    assert Rules(private_workspaces=[glob]).makes_private(workspace or None, None) is fits


def test_a_session_is_left_out_by_its_file_or_its_workspace_and_the_rule_is_named() -> None:
    rules = Rules(exclude=["/tmp/**", "*/old/*.jsonl"])
    assert rules.leaves_out("/home/me/s.jsonl", "/tmp/x") == "[import] exclude '/tmp/**'"
    assert rules.leaves_out("/home/me/old/s.jsonl", "/home/me") == "[import] exclude '*/old/*.jsonl'"
    assert rules.leaves_out("/home/me/s.jsonl", "/home/me") == ""
    assert rules.leaves_out("/home/me/s.jsonl") == ""


def test_a_repository_may_be_private() -> None:
    rules = Rules(private_remotes=["github.com/acme/*", "git.example.org/team/plans"])
    assert rules.makes_private(None, "github.com/acme/rocket")
    assert rules.makes_private("/w", "git.example.org/team/plans")
    assert not rules.makes_private("/w", "github.com/me/rocket")
    assert not rules.makes_private("/w", None)
    assert not Rules().makes_private("/w", "github.com/acme/rocket")


def test_a_repository_is_the_same_in_letters_of_any_case() -> None:
    assert Rules(private_remotes=["github.com/acme/*"]).makes_private(None, "github.com/Acme/Rocket")
    assert Rules(private_remotes=["GitHub.com/Acme/Rocket"]).makes_private(None, "github.com/acme/rocket")


def test_a_path_is_looked_for_by_every_name_it_has() -> None:
    names = {"/alias/s": ("/alias/s", "/clients/s")}
    rules = Rules(exclude=["/clients"], private_workspaces=["/clients"], names_of=names.__getitem__)
    assert rules.leaves_out("/alias/s")
    assert rules.makes_private("/alias/s", None)


def test_where_no_rule_asks_nobody_looks_at_the_disk() -> None:
    def nobody(path: str) -> tuple[str, ...]:
        raise AssertionError(path)

    assert not Rules(names_of=nobody).leaves_out("/s", "/w")
    assert not Rules(private_remotes=["github.com/a/*"], names_of=nobody).makes_private(
        "/w", "github.com/b/c"
    )


class TestTheWorkspaceOfASession:
    def test_it_is_the_folder_that_its_first_turn_was_typed_in(self) -> None:
        assert workspace_in(a_session_with_everything().lines) == FOLDER

    def test_a_folder_that_a_tool_was_called_in_is_not_it(self) -> None:
        session = ClaudeSession()
        del session.fields["cwd"]
        session.says(calls("c1", "run", cwd="/elsewhere"))
        assert workspace_in(session.lines) == ""
        session.fields["cwd"] = '/home/me/a "quoted" 青'
        session.says(calls("c2", "run", cwd="/elsewhere"))
        assert workspace_in(session.lines) == '/home/me/a "quoted" 青'

    def test_records_that_hold_it_in_their_payload_tell_it_too(self) -> None:
        line = json.dumps({"type": "session_meta", "payload": {"id": "x", "cwd": "/home/me"}}).encode()
        assert workspace_in([b"{}", line]) == "/home/me"

    @pytest.mark.parametrize(
        "line",
        [
            b'{"cwd":"/home/me","message":{"content":"torn',
            b'{"x":1}{"type":"user","cwd":"/home/me"}',
            b'\x00\x00{"cwd" : "/home/me"}',
            b'{"cwd":"/home/me","x":"\xff"}',
            b'[{"cwd":"/home/me"}]',
        ],
    )
    def test_a_damaged_line_tells_it_too(self, line: bytes) -> None:
        assert workspace_in([b"}{", line]) == "/home/me"

    @pytest.mark.parametrize(
        "line",
        [b'{"cwd":null}', b'{"cwd":""}', b'{"cwd":7}', b'{"cwd":"\\ud800"}', b'"cwd"', b'{"cwd":"/hal'],
    )
    def test_a_line_that_does_not_tell_it_is_passed_over(self, line: bytes) -> None:
        assert workspace_in([line, b'{"cwd":"/home/me"}']) == "/home/me"
        assert workspace_in([line]) == ""
