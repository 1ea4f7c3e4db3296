"""A deliberation server of our own: real HTTP, jobs that a test drives, and every way in which such a server fails.

It listens on a Unix socket in a thread of the test, which holds its jobs and counts what was launched. For a program
of the test, `reachable` puts a port of 127.0.0.1 before it: a process that passes bytes on, since a sealed test speaks
no TCP (`python -m tests.fakes.orchestrator SOCKET PORT` prints the address, and ends when its stdin does).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from tests.builders_served import short_folder

TOKEN = "nsed-a-token-of-nobody"
SESSION_HEADER = "x-nsed-session-id"
_ROOT = Path(__file__).resolve().parent.parent.parent
_PATIENCE_SECONDS = 30
_ROUTES = {
    "POST /deliberation": "launch",
    "GET /deliberations": "jobs",
    "GET /deliberation/{}/result": "result",
    "POST /deliberation/{}/cancel": "cancel",
    "POST /deliberation/{}/inject": "inject",
    "GET /deliberation/{}/tool-calls": "calls",
    "POST /deliberation/{}/tool-calls/{}": "answer_call",
    "GET /policies": "policies",
    "GET /agents": "agents",
    "GET /job/{}/stream": "stream",
}
_PATTERNS = [
    (re.compile(re.escape(route).replace(r"\{\}", "([^/]+)") + r"\Z"), name)
    for route, name in _ROUTES.items()
]


class Asked(NamedTuple):
    """A request. `route`: what is asked, as `Orchestrator.next_time` names it."""

    route: str
    path: str
    headers: Mapping[str, str]
    """By name in small letters."""
    body: Any


class Says(NamedTuple):
    """An answer in place of the true one; nothing is done."""

    status: int
    body: Any = None
    """JSON, or bytes as they are."""
    headers: Mapping[str, str] = {}


class Breaks(NamedTuple):
    """The connection ends without an answer. `does_it`: what was asked is done all the same."""

    does_it: bool = True


class IsSilent(NamedTuple):
    """What was asked is done, and nothing is said until the server dies."""


Fault = Says | Breaks | IsSilent


@dataclass
class Job:
    """A job. `polls_left`: it ends when it was asked for so often; None: when the test says so."""

    id: str
    conversation: str
    status: str = "running"
    result: str | None = None
    author: str = ""
    polls_left: int | None = None
    events: list[tuple[str, Any]] = field(default_factory=list)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: list[Any] = field(default_factory=list)
    """The bodies of what was said to its agents."""

    @property
    def is_over(self) -> bool:
        """Is there no more to come?"""
        return self.status not in {"pending", "running", "claimed"}


class Orchestrator:
    """Use `orchestrating`. What is public may be set and read at any time.

    `answer`, `author`, `ending`: of the next job that ends by itself. `polls`: after how many questions a new job ends
    by itself (None: never; 0: before anybody asks). `agents`: without any, a launch is refused with 503. `streams`:
    `whole`, `none` (404), `cut` (ends after its first event), `silent` (open, and nothing comes). `decide`: what
    becomes of each request for which nothing was planned.
    """

    def __init__(self, socket_path: Path) -> None:
        self.socket_path = socket_path
        self.token = TOKEN
        self.answer, self.author, self.ending = "Forty-two.", "deep-thought", "completed"
        self.decide: Callable[[Asked], Fault | None] = lambda _: None
        self.polls: int | None = 0
        self.agents: list[str] = ["deep-thought", "marvin"]
        self.policies: Any = [{"policy_id": "p1", "name": "review", "tags": ["code", "slow"]}]
        self.streams = "whole"
        self.session: str | None = "session-1"
        self.jobs: dict[str, Job] = {}
        self.launched: list[Any] = []
        """The bodies of all launches that were taken, also by a server that has died since."""
        self.asked: list[Asked] = []
        self.connections = self.streams_open = 0
        """How many there are now."""
        self.deaths = 0
        self._faults: defaultdict[str, list[Fault]] = defaultdict(list)
        self._ids = itertools.count(1)
        self._changed = threading.Condition()
        self._turning = threading.Lock()
        """Held while it dies or comes back, by whichever thread lets it."""
        self._server: _Server | None = None
        self._door: subprocess.Popen[str] | None = None
        self._port = 0

    def start(self) -> None:
        """Listen."""
        with self._turning:
            self._server = _Server(self)
            threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
            if self._port:
                self._open_door()

    def die(self, *, forgets: bool = False) -> None:
        """Nobody listens any more, and every connection is cut. `forgets`: the jobs are gone with it."""
        with self._turning:
            self._close_door()
            with self._changed:
                server, self._server = self._server, None
                self.deaths += 1
                if forgets:
                    self.jobs.clear()
                self._changed.notify_all()
            if server is not None:
                server.shutdown()
                self.socket_path.unlink(missing_ok=True)
                server.cut()
                server.server_close()

    def next_time(self, route: str, *faults: Fault) -> None:
        """What becomes of the next requests of that kind, one each: launch, result, calls, stream, cancel …"""
        self._faults[route].extend(faults)

    def of(self, route: str) -> list[Asked]:
        """The requests of that kind so far."""
        return [each for each in self.asked if each.route == route]

    def finish(self, job_id: str, text: str | None = None, status: str = "completed") -> None:
        """It ends: with the answer, without one (""), or as `status` says."""
        with self._changed:
            self._end(self.jobs[job_id], self.answer if text is None else text, status)
            self._changed.notify_all()

    def ask_person(self, job_id: str, arguments: Any, name: str = "user_ask_user") -> str:
        """An agent waits to be told something; the call's id."""
        with self._changed:
            call_id = f"call-{next(self._ids)}"
            call = {"call_id": call_id, "job_id": job_id, "tool_name": name, "arguments": arguments}
            self.jobs[job_id].calls[call_id] = {**call, "agent_id": self.author, "status": "Pending"}
            self.happen(job_id, "tool_call", {"call_id": call_id})
            return call_id

    def happen(self, job_id: str, kind: str, data: Any) -> None:
        """An event of the job's stream; a text goes as it is."""
        with self._changed:
            self.jobs[job_id].events.append((kind, data))
            self._changed.notify_all()

    def forget(self, job_id: str) -> None:
        """The job was never here."""
        with self._changed:
            del self.jobs[job_id]
            self._changed.notify_all()

    def wait_for(self, route: str, count: int = 1) -> None:
        """Come back when there were so many requests of that kind."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.of(route)) >= count, _PATIENCE_SECONDS)

    def wait_for_no_stream(self) -> None:
        """Come back when nobody listens to any job."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self.streams_open, _PATIENCE_SECONDS)

    def is_left_alone(self) -> bool:
        """Has everybody gone? Waits for that."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.connections, _PATIENCE_SECONDS)

    def count(self, connections: int = 0, streams: int = 0) -> None:
        """So many more of them."""
        with self._changed:
            self.connections += connections
            self.streams_open += streams
            self._changed.notify_all()

    def open_port(self) -> str:
        """The address under which a program reaches it, for as long as it lives, and again when it lives again."""
        self._open_door()
        return f"http://127.0.0.1:{self._port}"

    def _open_door(self) -> None:
        command = [sys.executable, "-m", "tests.fakes.orchestrator", str(self.socket_path), str(self._port)]
        self._door = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._door.stdout is not None
        self._port = int(self._door.stdout.readline())

    def _close_door(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            door.communicate(timeout=_PATIENCE_SECONDS)

    def note(self, asked: Asked) -> Fault | None:
        """A request came; what is to become of it."""
        with self._changed:
            self.asked.append(asked)
            self._changed.notify_all()
            planned = self._faults[asked.route]
            return planned.pop(0) if planned else self.decide(asked)

    def stay_silent(self, is_gone: threading.Event) -> None:
        """Come back when it has died, or nobody waits any more."""
        with self._changed:
            self._changed.wait_for(lambda: is_gone.is_set() or self._server is None, _PATIENCE_SECONDS)

    def do(self, asked: Asked, names: Sequence[str]) -> Says:
        """What it truly answers."""
        with self._changed:
            job = self.jobs.get(names[0]) if names else None
            if names and job is None:
                return Says(404, {"error": f"no job {names[0]}"})
            says = getattr(self, f"_do_{asked.route}")(asked, job, *names[1:])
            self._changed.notify_all()
            assert isinstance(says, Says)
            return says

    def _do_launch(self, asked: Asked, _: None) -> Says:
        body = asked.body
        if not self.agents:
            return Says(503, {"error": "no agents online"})
        if any(job.conversation == body["conversation_id"] and not job.is_over for job in self.jobs.values()):
            return Says(409, {"error": "job already running"})
        job = Job(f"job-{next(self._ids)}", body["conversation_id"], polls_left=self.polls)
        self.jobs[job.id] = job
        self.launched.append(body)
        self._count_down(job, 0)
        session = asked.headers.get(SESSION_HEADER) or self.session
        return Says(202, {"job_id": job.id}, {SESSION_HEADER: session} if session else {})

    def _do_result(self, _: Asked, job: Job) -> Says:
        self._count_down(job, 1)
        return Says(200, {"job_id": job.id, "status": job.status, "result": job.result})

    def _do_jobs(self, *_: Any) -> Says:
        return Says(200, {"jobs": [{"job_id": job.id, "status": job.status} for job in self.jobs.values()]})

    def _do_cancel(self, _: Asked, job: Job) -> Says:
        if job.is_over:
            return Says(409, {"error": "it is over"})
        self._end(job, None, "cancelled")
        return Says(200, {"status": "cancelled"})

    def _do_inject(self, asked: Asked, job: Job) -> Says:
        if job.is_over:
            return Says(409, {"error": "it is over"})
        job.told.append(asked.body)
        return Says(200, {"sequence": len(job.told), "injected_at_round": 1})

    def _do_calls(self, asked: Asked, job: Job) -> Says:
        calls = [call for call in job.calls.values() if call["status"] == "Pending"]
        return Says(200, {"tool_calls": calls if asked.path.endswith("?status=pending") else []})

    def _do_answer_call(self, asked: Asked, job: Job, call_id: str) -> Says:
        call = job.calls.get(call_id)
        if call is None:
            return Says(404, {"error": "no such call"})
        if call["status"] != "Pending":
            return Says(409, {"error": "it was answered"})
        call.update(status="Responded", result=asked.body["result"])
        return Says(200, {"status": "responded"})

    def _do_policies(self, *_: Any) -> Says:
        return Says(200, self.policies)

    def _do_agents(self, *_: Any) -> Says:
        return Says(200, [{"agent_id": name, "is_online": True} for name in self.agents])

    def _do_stream(self, *_: Any) -> Says:
        return Says(404, {"error": "no streams here"} if self.streams == "none" else {})

    def _count_down(self, job: Job, steps: int) -> None:
        if job.polls_left is None or job.is_over:
            return
        job.polls_left -= steps
        if job.polls_left <= 0:
            self._end(job, self.answer, self.ending)

    def _end(self, job: Job, text: str | None, status: str) -> None:
        job.status, job.result, job.author = status, text, self.author
        done = "Success" if status == "completed" else status
        job.events.append(
            (
                "job_complete",
                {
                    "status": done,
                    "job_id": job.id,
                    "rounds_completed": 2,
                    "best_proposal_content": text or "",
                    "best_proposal_score": 0.9,
                    "best_proposal_author": self.author,
                },
            )
        )

    def events(self, job_id: str, is_gone: threading.Event) -> Iterator[tuple[str, Any]]:
        """What the stream of a job says, for as long as it goes on and somebody listens."""
        yield "connected", '"ok"'
        if self.streams == "cut":
            return
        told = 0
        while (news := self._news(job_id, told, is_gone)) is not None:
            told += len(news)
            yield from news
            if any(kind == "job_complete" for kind, _ in news):
                return

    def _news(self, job_id: str, told: int, is_gone: threading.Event) -> list[tuple[str, Any]] | None:
        with self._changed:
            self._changed.wait_for(
                lambda: is_gone.is_set() or self._has_news(job_id, told), _PATIENCE_SECONDS
            )
            job = self.jobs.get(job_id)
            if job is None or self._server is None or is_gone.is_set():
                return None
            return job.events[told:]

    def _has_news(self, job_id: str, told: int) -> bool:
        job = self.jobs.get(job_id)
        if self._server is None or job is None:
            return True
        return self.streams != "silent" and len(job.events) > told

    @contextlib.contextmanager
    def watched(self, connection: socket.socket) -> Iterator[threading.Event]:
        """Set when who is at the other end has gone, while the block runs; nothing is read from there after it."""
        is_gone = threading.Event()

        def watch() -> None:
            with contextlib.suppress(OSError):  # cut from this side
                connection.recv(1)
            with self._changed:
                is_gone.set()
                self._changed.notify_all()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield is_gone
        finally:
            with contextlib.suppress(OSError):  # cut from the other side
                connection.shutdown(socket.SHUT_RD)
            watcher.join(_PATIENCE_SECONDS)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 50

    def __init__(self, orchestrator: Orchestrator) -> None:
        self.orchestrator = orchestrator
        self._connections: list[socket.socket] = []
        super().__init__(str(orchestrator.socket_path), _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.append(request)
        super().process_request(request, client_address)

    def cut(self) -> None:
        """End every connection."""
        for each in self._connections:
            with contextlib.suppress(OSError):  # it has ended
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no news; anything else is a fault of this file."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle(self) -> None:
        """One connection, from its first request to its last."""
        self.server.orchestrator.count(connections=1)
        try:
            super().handle()
        finally:
            self.server.orchestrator.count(connections=-1)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Asked for something."""
        self._serve()

    def do_POST(self) -> None:
        """Told something."""
        self._serve()

    def _serve(self) -> None:
        orchestrator = self.server.orchestrator
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        route, names = _route_of(self.command, self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(route, self.path, headers, json.loads(data or b"null"))
        fault = orchestrator.note(asked)
        if headers.get("authorization") != f"Bearer {orchestrator.token}":
            return self._send(Says(401, {"error": "unauthorized"}))
        if isinstance(fault, Says):
            return self._send(fault)
        if fault is not None:
            self.close_connection = True
            if isinstance(fault, IsSilent) or fault.does_it:
                orchestrator.do(asked, names)
            if isinstance(fault, IsSilent):
                with orchestrator.watched(self.connection) as is_gone:
                    orchestrator.stay_silent(is_gone)
            return None
        if not route:
            return self._send(Says(404, {"error": "nothing there"}))
        if route == "stream" and orchestrator.streams != "none" and names[0] in orchestrator.jobs:
            return self._stream(names[0])
        return self._send(orchestrator.do(asked, names))

    def _send(self, says: Says) -> None:
        data = says.body if isinstance(says.body, bytes) else json.dumps(says.body).encode()
        self.send_response(says.status)
        for name, value in {"Content-Type": "application/json", **says.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, job_id: str) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        orchestrator = self.server.orchestrator
        orchestrator.count(streams=1)
        try:
            self._tell(job_id)
        finally:
            orchestrator.count(streams=-1)

    def _tell(self, job_id: str) -> None:
        orchestrator = self.server.orchestrator
        with orchestrator.watched(self.connection) as is_gone:
            for kind, data in orchestrator.events(job_id, is_gone):
                told = data if isinstance(data, str) else json.dumps(data)
                self.wfile.write(f"event: {kind}\ndata: {told}\n\n".encode())


def _route_of(method: str, path: str) -> tuple[str, list[str]]:
    """(Name of what is asked, the ids in it); empty where there is no such thing."""
    whole = f"{method} {path.partition('?')[0]}"
    for pattern, name in _PATTERNS:
        if found := pattern.match(whole):
            return name, [unquote(each) for each in found.groups()]
    return "", []


@contextlib.contextmanager
def orchestrating() -> Iterator[Orchestrator]:
    """A server that listens."""
    with short_folder() as folder:
        orchestrator = Orchestrator(folder / "s")
        orchestrator.start()
        try:
            yield orchestrator
        finally:
            orchestrator.die()


def main(socket_path: str, port: str) -> None:
    """Pass on what comes to the port until stdin ends."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", int(port)))
        door.listen()
        sys.stdout.write(f"{door.getsockname()[1]}\n")
        sys.stdout.flush()
        threading.Thread(target=_accept, args=(door, socket_path), daemon=True).start()
        while os.read(0, 1):
            continue


def _accept(door: socket.socket, socket_path: str) -> None:
    while True:
        outside, _ = door.accept()
        inside = socket.socket(socket.AF_UNIX)
        inside.connect(socket_path)
        for source, target in ((outside, inside), (inside, outside)):
            threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):  # one of the two has gone, and the other is told so
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(*sys.argv[1:])
