"""OpenCode sessions made up record by record, as rows of its database and as the lines that become of them.

Each test writes the shape that it is about, and no more. The shapes are those of OpenCode 1.18; `old_…` builders
make those of earlier versions.
"""

from __future__ import annotations

import json
from typing import Any

SESSION = "ses_kiln0000000000000000000001"
START = 1_769_936_400_000
"""2026-02-01T09:00:00Z, in milliseconds."""
FOLDER = "/home/dev/src/kiln"
PNG = "data:image/png;base64,aGVsbG8="


def encoded(value: Any) -> bytes:
    """As OpenCode writes JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class OpenCodeSession:
    """A session and its sub-agents, as rows that grow: each message a second after the one before.

    `lines` are what an adapter makes of them, in the order in which they were told; telling a message again adds its
    line again. `fork` copies.
    """

    def __init__(self, session: str = SESSION, *, title: str = "Cold kiln", start: int = START) -> None:
        self.session = session
        self.now = start
        self.lines: list[bytes] = []
        self.sessions: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        """By id: {session, after, info, parts}."""
        self.last: dict[str, str | None] = {}
        self._count = 0
        self.header(session, title=title)

    @property
    def data(self) -> bytes:
        """The lines' bytes."""
        return b"".join(line + b"\n" for line in self.lines)

    def header(self, session: str, *, parent: str | None = None, tell: bool = True, **fields: Any) -> str:
        """A session, or another state of it."""
        row = self.sessions.setdefault(
            session,
            {
                "opencode": "session",
                "id": session,
                "projectID": "p1",
                "directory": FOLDER,
                "version": "1.18.33",
                "time": {"created": self.now, "updated": self.now},
            },
        )
        if parent is not None:
            row["parentID"] = parent
        row["time"] = row["time"] | {"updated": self.now}
        row.update(fields)
        self.last.setdefault(session, None)
        if tell:
            self.lines.append(encoded(row))
        return session

    def sub_agent(self, session: str, title: str = "look left (@general subagent)", parent: str = "") -> str:
        """The session of a sub-agent."""
        return self.header(session, parent=parent or self.session, title=title, agent="general")

    def message(
        self, info: dict[str, Any], *parts: Any, session: str = "", message: str = "", after: str | None = ""
    ) -> str:
        """A message; its id. `after`: another one than the session's last."""
        session = session or self.session
        self._count += 1
        self.now += 1000
        name = message or f"msg_{session[4:8]}{self._count:04}"
        self.messages[name] = {
            "opencode": "message",
            "id": name,
            "session": session,
            "after": self.last[session] if after == "" else after,
            "info": {"time": {"created": self.now}, **info},
            "parts": self._parts(name, parts),
        }
        self.last[session] = name
        self.tell(name)
        return name

    def _parts(self, message: str, parts: Any) -> list[dict[str, Any]]:
        made = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
        return [{"id": f"prt_{message[4:]}{number:03}", **part} for number, part in enumerate(made)]

    def user(self, *parts: Any, **more: Any) -> str:
        """What a person typed: texts or parts."""
        model = {"providerID": "mock", "modelID": "m1"}
        return self.message({"role": "user", "agent": "build", "model": model}, *parts, **more)

    def says(
        self, answers: str, *parts: Any, out: int = 5, info: dict[str, Any] | None = None, **more: Any
    ) -> str:
        """What an assistant answered to the message `answers`."""
        said = {
            "role": "assistant",
            "parentID": answers,
            "mode": "build",
            "agent": "build",
            "path": {"cwd": FOLDER, "root": FOLDER},
            "cost": 0.5,
            "tokens": tokens(out),
            "modelID": "m1",
            "providerID": "mock",
            "time": {"created": self.now + 1000, "completed": self.now + 1500},
            **(info or {}),
        }
        return self.message(said, *parts, **more)

    def change(self, message: str, *parts: Any, info: dict[str, Any] | None = None) -> None:
        """Update a message in place, and tell it again. `parts`: all of them, where any are given."""
        row = self.messages[message]
        if parts:
            row["parts"] = self._parts(message, parts)
        row["info"] = row["info"] | (info or {})
        self.tell(message)

    def tell(self, message: str) -> None:
        """The line of a message as it is now."""
        self.lines.append(encoded(self.messages[message]))

    def fork(self, session: str, *, before: str = "") -> OpenCodeSession:
        """A copy of the main session under new ids, with its times, up to the message `before`."""
        copy = OpenCodeSession(session, title="Cold kiln (fork #1)", start=self.now + 60_000)
        names: dict[str, str] = {}
        last: str | None = None
        for number, (name, row) in enumerate(self.messages.items()):
            if row["session"] != self.session:
                continue
            if name == before:
                break
            names[name] = f"msg_fork{number:04}"
            info = dict(row["info"])
            if info.get("parentID") in names:
                info["parentID"] = names[info["parentID"]]
            copy.messages[names[name]] = {
                **row,
                "id": names[name],
                "session": session,
                "after": last,
                "info": info,
                "parts": [
                    {**part, "id": f"prt_fork{number:04}{at:03}"} for at, part in enumerate(row["parts"])
                ],
            }
            last = copy.last[session] = names[name]
            copy.tell(names[name])
        copy._count = len(self.messages)
        return copy


def tokens(out: int, *, input_tokens: int = 400, reasoning: int = 0) -> dict[str, Any]:
    """A count of tokens, as 1.18 tells it."""
    return {
        "total": input_tokens + 800 + out + reasoning,
        "input": input_tokens,
        "output": out,
        "reasoning": reasoning,
        "cache": {"read": 800, "write": 0},
    }


def thinks(text: str) -> dict[str, Any]:
    """A part of reasoning."""
    return {"type": "reasoning", "text": text, "time": {"start": START, "end": START + 5}}


def shown(text: str) -> dict[str, Any]:
    """A text that the program put beside what was typed."""
    return {"type": "text", "text": text, "synthetic": True}


def runs(call: str, tool: str = "bash", **arguments: Any) -> dict[str, Any]:
    """A call that has not ended."""
    return {
        "type": "tool",
        "tool": tool,
        "callID": call,
        "state": {"status": "running", "input": arguments, "time": {"start": START + 4000}},
    }


def ran(call: str, output: Any, tool: str = "bash", *, at: int = 4500, **arguments: Any) -> dict[str, Any]:
    """A call that has ended, with its output."""
    state = {
        "status": "completed",
        "input": arguments,
        "output": output,
        "title": "ran",
        "metadata": {"output": output, "exit": 0},
        "time": {"start": START + 4000, "end": START + at},
    }
    return {"type": "tool", "tool": tool, "callID": call, "state": state}


def failed(call: str, error: str, tool: str = "read", **arguments: Any) -> dict[str, Any]:
    """A call that failed."""
    state = {
        "status": "error",
        "input": arguments,
        "error": error,
        "time": {"start": START, "end": START + 9},
    }
    return {"type": "tool", "tool": tool, "callID": call, "state": state}


def delegates(call: str, prompt: str, session: str = "", output: str | None = None) -> dict[str, Any]:
    """A call that starts a sub-agent: running, or ended with its words."""
    arguments = {"description": "look", "prompt": prompt, "subagent_type": "general"}
    made = runs(call, "task") if output is None else ran(call, output, "task")
    made["state"]["input"] = arguments
    if session:
        made["state"]["metadata"] = {"sessionId": session, "model": {"modelID": "m1", "providerID": "mock"}}
    return made


def file(url: str = PNG, *, mime: str = "image/png", name: str = "dot.png") -> dict[str, Any]:
    """A part that is a file."""
    return {"type": "file", "mime": mime, "filename": name, "url": url}


STEP = (
    {"type": "step-start", "snapshot": "338b26d9"},
    {"type": "step-finish", "reason": "stop", "cost": 0.5},
)


def a_short_session() -> OpenCodeSession:
    """A question, a call, its result, an answer."""
    session = OpenCodeSession()
    asked = session.user("Why is the kiln cold?")
    session.says(
        asked, STEP[0], thinks("Look at the log."), "I'll look.", ran("c1", "relay open", command="tail log")
    )
    session.says(asked, "The relay is open.", *STEP)
    return session


def a_session_with_everything() -> OpenCodeSession:
    """Parallel calls, sub-agents at work at once, files, a failed call, a compaction, an error, growth in place."""
    session = OpenCodeSession(title="New session - 2026-02-01T09:00:00.000Z")
    asked = session.user("Glaze the bowls — ‹blue›, 青", file(), shown("Called the Read tool"))
    first = session.says(asked, thinks("Two calls."), runs("c1", command="ls"), runs("c2", command="pwd"))
    session.change(
        first, thinks("Two calls."), ran("c1", "a\u2028b", command="ls"), failed("c2", "no", "bash")
    )
    session.says(asked, "Both ran.", *STEP, out=9)
    told = session.user("look twice")
    both = session.says(
        told,
        "I delegate.",
        delegates("t1", "look left", "ses_left"),
        delegates("t2", "look right", "ses_right"),
    )
    session.sub_agent("ses_left")
    session.sub_agent("ses_right", "look right (@general subagent)")
    left = session.user("look left", session="ses_left")
    right = session.user("look right", session="ses_right")
    session.says(left, ran("l1", "left!", command="look"), session="ses_left")
    session.says(right, "right is clear", session="ses_right")
    session.says(left, "left is clear", session="ses_left")
    session.change(
        both,
        "I delegate.",
        delegates("t1", "look left", "ses_left", "left is clear"),
        delegates("t2", "look right", "ses_right", "right is clear"),
    )
    session.header(SESSION, title="Bowls in blue")
    session.says(told, "Both clear.", *STEP)
    squeeze = session.user({"type": "compaction", "auto": True})
    session.says(squeeze, "So far: bowls.", info={"summary": True, "mode": "compaction"})
    session.user(shown("Continue if you have next steps"))
    again = session.user("go on")
    session.says(
        again, info={"error": {"name": "APIError", "data": {"message": "overloaded"}}, "tokens": tokens(0)}
    )
    return session


def an_old_session() -> OpenCodeSession:
    """What the first versions wrote: no parent, no total of tokens, other names of states, a folder as a text."""
    session = OpenCodeSession(title="OpenCode old")
    for line in session.sessions.values():
        line["version"] = "0.1"
    session.message({"role": "user", "providerID": "mock", "modelID": "m0"}, "Open README")
    session.message(
        {
            "role": "assistant",
            "providerID": "mock",
            "modelID": "m0",
            "path": "/tmp/old",
            "summary": {"title": None, "body": ""},
            "cost": {"input": 24},
            "tokens": {"input": 120, "output": 16},
        },
        {**ran("c1", "# Title", command="cat README.md"), "metadata": {}},
        "Read README.",
    )
    session.message({"role": "user"}, "again")
    session.message({"role": "user"}, "again")
    return session
