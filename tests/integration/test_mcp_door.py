"""Agents handed on to the daemon: who is let in, how the bytes travel, and what one caller cannot do to others."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raddle import __version__
from raddle.adapters.local_socket import connect_to, listen_at
from raddle.apps.daemon.board import Board
from raddle.apps.daemon.doorkeeper import Doorkeeper
from raddle.apps.mcp_server.door import Door
from raddle.apps.mcp_server.relay import Ending, relay
from raddle.config import Config, load_config
from raddle.model.errors import StorageError
from raddle.wiring.daemon_state import DaemonState
from raddle.wiring.mcp_door import (
    Caller,
    agents_came,
    call_daemon,
    caller_at,
    note_agents_came,
    open_doorway,
    socket_of,
    standing_of,
)
from tests.builders import WoundClock

PATIENCE_SECONDS = 20.0


@pytest.fixture
def config(home: Path, tmp_path: Path) -> Config:
    return load_config(workspace=str(tmp_path))


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """A relay keeps signals caught for what follows it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def beside(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def asked(config: Config, said: bytes | dict[str, Any], *, of: Config | None) -> tuple[Caller | None, Any]:
    """What the daemon with the settings `of` makes of it, and what it answers."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(said if isinstance(said, bytes) else json.dumps(said).encode() + b"\n")
        ours.shutdown(socket.SHUT_WR)
        found = caller_at(theirs, of)
        theirs.shutdown(socket.SHUT_WR)
        told = ours.recv(1 << 16)
    return found, json.loads(told) if told else None


def preamble(config: Config, **other: Any) -> dict[str, Any]:
    said = {"version": __version__, "standing": standing_of(config), "workspace": "/w"}
    return {**said, **other}


def test_one_of_the_same_version_and_settings_is_served_with_its_own_workspace_and_store(
    config: Config,
) -> None:
    found, answer = asked(config, preamble(config, store="/s", include_private=True), of=config)
    assert answer == {"is_served": True, "why": ""}
    assert found is not None
    assert (found.include_private, found.all_repositories) == (True, False)
    settings = found.settings(config)
    assert (settings.workspace, settings.store) == (Path("/w"), "/s")
    assert settings.data_dir == config.data_dir


def test_whoever_is_set_up_otherwise_is_told_why_not(config: Config, home: Path, tmp_path: Path) -> None:
    def why(said: bytes | dict[str, Any], of: Config | None = config) -> str:
        found, answer = asked(config, said, of=of)
        assert found is None
        return str(answer["why"])

    assert why(preamble(config, version="0.0.0")) == "another version"
    assert why(preamble(config), of=None) == "no settings"
    elsewhere = load_config({"HOME": str(home), "RADDLE_DATA_DIR": str(tmp_path / "other")})
    assert why(preamble(elsewhere)) == "other settings"
    assert why(preamble(config, standing={})) == "other settings"
    assert why(preamble(load_config({"HOME": str(home), "RADDLE_OFFLINE": "1"}))) == "other settings"
    assert why(preamble(config, workspace="relative")) == "not understood"
    for said in (
        b"\n",
        b"{}\n",
        b"\xff\xfe\n",
        b"[" * 5000 + b"\n",
        b'{"version": 1}\n',
        b"GET / HTTP/1.1\n",
    ):
        assert why(said) == "not understood"
    assert why(b"no line at all") == "not understood"
    assert why(b"x" * 100_000) == "not understood"


def test_a_caller_may_lack_what_the_daemon_has_and_not_have_another(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = preamble(config)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    assert asked(config, bare, of=config)[0] is not None
    with_agent = preamble(config)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/another")
    assert asked(config, with_agent, of=config)[0] is None


def test_no_variable_and_no_token_goes_over_the_socket(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bytes] = []
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hunter2@proxy")
    monkeypatch.setenv("RADDLE_TOKEN", "sesame")

    def answer(listening: socket.socket) -> None:
        with listening.accept()[0] as connection:
            heard.append(connection.recv(1 << 16))
            connection.sendall(b'{"is_served":true}\n')

    with listen_at(socket_of(config.paths)) as listening:
        assert call_daemon(load_config(), all_repositories=False, include_private=False) is None
        monkeypatch.delenv("RADDLE_TOKEN")
        serving = beside(functools.partial(answer, listening))
        connection = call_daemon(config, all_repositories=True, include_private=False)
        assert connection is not None
        connection.close()
        serving.join(PATIENCE_SECONDS)
    (said,) = heard
    assert b"hunter2" not in said
    assert b"sesame" not in said
    assert json.loads(said)["all_repositories"] is True


def test_a_daemon_that_does_not_answer_is_not_waited_for(config: Config) -> None:
    ask = functools.partial(call_daemon, config, all_repositories=False, include_private=False)
    assert ask() is None  # none there
    began = time.monotonic()
    with listen_at(socket_of(config.paths)):
        assert ask() is None  # one that says nothing
    assert 0.3 < time.monotonic() - began < 5
    assert ask() is None  # one that was killed, and left its socket
    socket_of(config.paths).unlink()
    socket_of(config.paths).write_text("no socket")
    assert ask() is None


def test_a_socket_is_this_users_alone_and_takes_the_place_of_one_that_was_left(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.sock"
    listen_at(path).close()
    assert stat.S_ISSOCK(path.lstat().st_mode)
    with listen_at(path):
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        connection = connect_to(path, seconds=1.0)
        assert connection is not None
        connection.close()
    assert [one.name for one in path.parent.iterdir()] == ["b.sock"]


def test_a_path_longer_than_the_system_takes_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 20) / ("longer" * 20) / "mcp-0123456789ab.sock"
    with listen_at(path):
        connection = connect_to(path, seconds=1.0)
        assert connection is not None
        connection.close()
    assert connect_to(path, seconds=1.0) is None


def test_where_a_socket_cannot_be_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        listen_at(tmp_path / "file" / "x.sock")
    folder = tmp_path / "folder.sock"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(StorageError):
        listen_at(folder)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder.sock"]


class _Streams:
    """A relay in this thread, between a client's two pipes and a server's socket."""

    def __init__(self) -> None:
        self.incoming, self.feed = os.pipe()
        self.heard, self.outgoing = os.pipe()
        self.ours, self.server = socket.socketpair()

    def run(self) -> Ending:
        with self.ours:
            return relay(self.ours, self.incoming, self.outgoing)

    def close(self) -> None:
        self.server.close()
        for number in (self.incoming, self.feed, self.heard, self.outgoing):
            with contextlib.suppress(OSError):
                os.close(number)


@pytest.fixture
def streams() -> Iterator[_Streams]:
    made = _Streams()
    yield made
    made.close()


def test_much_travels_both_ways_however_slow_a_reader_is(streams: _Streams) -> None:
    sent = os.urandom(3_000_000)
    got = bytearray()

    def client() -> None:
        left = memoryview(sent)
        while left:
            left = left[os.write(streams.feed, left[:100_000]) :]
        os.close(streams.feed)

    def server() -> None:
        """Sends back what it hears, and hears no more until it could."""
        piece = streams.server.recv(7919)
        while piece:
            streams.server.sendall(piece)
            piece = streams.server.recv(7919)
        streams.server.shutdown(socket.SHUT_WR)

    def reader() -> None:
        while len(got) < len(sent):
            got.extend(os.read(streams.heard, 4099))

    threads = [beside(work) for work in (client, server, reader)]
    assert streams.run() is Ending.CLIENT
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert bytes(got) == sent


def test_the_server_may_still_answer_once_the_client_has_said_all(streams: _Streams) -> None:
    os.write(streams.feed, b"ask")
    os.close(streams.feed)

    def server() -> None:
        assert streams.server.recv(10) == b"ask"
        assert streams.server.recv(10) == b""
        streams.server.sendall(b"answer")
        streams.server.close()

    serving = beside(server)
    assert streams.run() is Ending.CLIENT
    serving.join(PATIENCE_SECONDS)
    assert os.read(streams.heard, 10) == b"answer"


def test_who_still_listens_is_waited_for_and_nobody_else(
    streams: _Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.apps.mcp_server.relay._LAST_WORDS_SECONDS", 0.0)
    os.close(streams.feed)

    def server() -> None:
        assert streams.server.recv(10) == b""
        threading.Event().wait(0.2)
        streams.server.sendall(b"at last")
        streams.server.close()

    beside(server)
    assert streams.run() is Ending.CLIENT
    assert os.read(streams.heard, 10) == b"at last"
    gone = _Streams()
    os.close(gone.feed)
    os.close(gone.heard)
    began = time.monotonic()
    assert gone.run() is Ending.CLIENT
    assert time.monotonic() - began < PATIENCE_SECONDS
    gone.close()


def test_a_server_that_ends_by_itself_is_told_from_one_that_was_left(streams: _Streams) -> None:
    streams.server.sendall(b"last words")
    streams.server.close()
    assert streams.run() is Ending.SERVER
    assert os.read(streams.heard, 100) == b"last words"


def test_a_client_that_reads_no_more_ends_it(streams: _Streams) -> None:
    os.close(streams.heard)
    streams.server.sendall(b"x" * 1000)
    assert streams.run() is Ending.CLIENT


def test_a_signal_ends_it_with_a_client_that_says_nothing(streams: _Streams) -> None:
    def server() -> None:
        assert streams.server.recv(1) == b""
        streams.server.close()

    ended = beside(server)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    assert streams.run() is Ending.SIGNAL
    ended.join(PATIENCE_SECONDS)
    timer.join()


class _Echo:
    """Repeats what it hears, until told to fail."""

    def __init__(self) -> None:
        self.configs: list[Config] = []
        self.is_closed = False

    def renew(self, config: Config) -> None:
        self.configs.append(config)

    def serve(self, connection: socket.socket, caller: Caller) -> None:
        while piece := connection.recv(100):
            if piece == b"fail":
                raise ValueError("words of a conversation")
            connection.sendall(piece)

    def close(self, seconds: float) -> None:
        self.is_closed = True


class _Log:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.lines.append({"event": event, **fields})


def test_one_that_fails_ends_alone_and_all_are_shown_out_at_the_end(config: Config) -> None:
    log, service = _Log(), _Echo()
    board = Board(DaemonState(pid=1, since=0, version="0"), save=lambda _: True, log=log, clock=WoundClock())
    keeper = Doorkeeper(functools.partial(open_doorway, config.paths), board, service)

    def come() -> socket.socket | None:
        return call_daemon(config, all_repositories=False, include_private=False)

    with keeper.at_the_door():
        until(socket_of(config.paths).exists)
        assert come() is None  # no settings yet
        with keeper.serving(config):
            one, other = come(), come()
            assert one is not None
            assert other is not None
            until(lambda: board.state.agents == 2)
            one.sendall(b"fail")
            assert one.recv(10) == b""
            until(lambda: board.state.agents == 1)
            other.sendall(b"still here")
            assert other.recv(100) == b"still here"
        assert come() is None
        one.close()
    assert other.recv(10) == b""
    other.close()
    assert service.is_closed
    assert service.configs == [config]
    assert not socket_of(config.paths).exists()
    assert "words of a conversation" not in str(log.lines)
    assert [line["part"] for line in log.lines if line["event"] == "error"] == ["agents"]


def test_a_socket_that_somebody_takes_away_comes_back(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.apps.daemon.doorkeeper._LOOK_SECONDS", 0.05)
    board = Board(
        DaemonState(pid=1, since=0, version="0"), save=lambda _: True, log=_Log(), clock=WoundClock()
    )
    keeper = Doorkeeper(functools.partial(open_doorway, config.paths), board, _Echo())
    with keeper.at_the_door(), keeper.serving(config):
        until(socket_of(config.paths).exists)
        socket_of(config.paths).unlink()
        until(socket_of(config.paths).exists)
        connection = call_daemon(config, all_repositories=False, include_private=False)
        assert connection is not None
        connection.close()


def test_new_settings_reach_an_agent_that_is_being_served_and_no_line_is_without_end(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.apps.mcp_server.connection._LONGEST_LINE", 10_000)
    door = Door()
    caller = Caller(version=__version__, standing={}, workspace=str(config.workspace), all_repositories=True)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        door.serve(theirs, caller)  # not before there are settings
        door.renew(config)
        serving = beside(lambda: door.serve(theirs, caller))
        ours.settimeout(PATIENCE_SECONDS)
        ours.sendall(b'not json\n\n{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        heard = b""
        while b'"id":1' not in heard:
            heard += ours.recv(1 << 16)
        (session,) = door._served
        assert session.access.all_repositories
        assert session.config.workspace == config.workspace
        door.renew(msgspec.structs.replace(config, author_name="Ada", workspace=None))
        assert session.config.author_name == "Ada"
        assert session.config.workspace == config.workspace
        with contextlib.suppress(OSError):
            ours.sendall(b"x" * 50_000)
        serving.join(PATIENCE_SECONDS)
        assert not serving.is_alive()
    assert not door._served
    door.close(1.0)


def test_a_daemon_that_has_served_agents_is_ready_for_the_next_one_before_it_comes(config: Config) -> None:
    door = Door()
    door.renew(config)
    assert not agents_came(config.paths)
    note_agents_came(config.paths)
    ready = Door()
    ready.renew(config)
    until(lambda: ready.is_ready)
    assert not door.is_ready
