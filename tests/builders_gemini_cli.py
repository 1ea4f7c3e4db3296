"""Gemini CLI sessions made up record by record: each test writes the shape that it is about, and no more."""

from __future__ import annotations

import json
from typing import Any

from raddle.model.clock import format_time, parse_time
from raddle.model.ids import derived_id

SESSION = "4d1f0c2e-9a7b-4c53-8e21-6b0d7f5a3c19"
SUB_AGENT = "8c3e5a70-1b2d-4f6e-9d80-2a4c6e8f0b1d"
START = parse_time("2026-06-03T08:00:00Z") or 0
FOLDER = "/home/dev/src/kiln"
PROJECT_HASH = "5f0cbb" + "0" * 58
CONTEXT_ID = "d04923d38bb0f6017037e74183378ef4"
"""The id that the program gives to its context, in every session of everybody."""


def id_of(name: str) -> str:
    """A record's id that is the same for the same name."""
    return derived_id("test", name)


def as_text(value: Any) -> bytes:
    """JSON as the program writes it on a line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def context(folder: str = FOLDER, more: str = "") -> str:
    """What the program tells the model at the start."""
    return (
        "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
        f"- **Workspace Directories:**\n  - {folder}\n- **Directory Structure:**\n\nkiln.py\n{more}</session_context>"
    )


def tokens(
    given: int = 100, cached: int = 40, out: int = 7, thoughts: int = 3, tool: int = 0
) -> dict[str, int]:
    """The tokens of one answer."""
    total = given + out + thoughts + tool
    return {
        "input": given,
        "output": out,
        "cached": cached,
        "thoughts": thoughts,
        "tool": tool,
        "total": total,
    }


def answer(call: str, tool: str, response: dict[str, Any]) -> dict[str, Any]:
    """A result, as the API takes it."""
    return {"functionResponse": {"id": call, "name": tool, "response": response}}


class GeminiSession:
    """A session that grows by records, a second apart. `lines` is its file; `records` are its messages so far."""

    def __init__(self, session: str = SESSION, *, start: int = START, **header: Any) -> None:
        self.session = session
        self.now = self._start = start
        self._count = 0
        self.lines: list[bytes] = []
        self.records: list[dict[str, Any]] = []
        self.header = {
            "sessionId": session,
            "projectHash": PROJECT_HASH,
            "startTime": self.time(),
            "lastUpdated": self.time(),
            "kind": "main",
            **header,
        }
        self.write(self.header)

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return b"".join(line + b"\n" for line in self.lines)

    def document(self, **more: Any) -> list[bytes]:
        """The session as one document, as the program printed it until 2026: its lines."""
        head = {name: value for name, value in self.header.items() if name != "kind"}
        whole = {**head, "messages": self.records, **more}
        return json.dumps(whole, ensure_ascii=False, indent=2).encode().split(b"\n")

    def time(self) -> str:
        """Now, as the program writes it."""
        return format_time(self.now).replace("000Z", "Z")

    def write(self, value: Any) -> None:
        """A line."""
        self.lines.append(as_text(value))

    def change(self, **fields: Any) -> None:
        """A line that changes what the session says of itself, or its messages."""
        self.write({"$set": fields})

    def record(self, kind: str, content: Any, *, is_written: bool = True, **more: Any) -> str:
        """A message; its id. `is_written`: on a line of its own."""
        self.now += 1_000_000
        self._count += 1
        own_id = more.pop("id", id_of(f"{self.session}/{self._start}/{self._count}"))
        made = {"id": own_id, "timestamp": self.time(), "type": kind, "content": content, **more}
        self.records.append(made)
        if is_written:
            self.write(made)
            self.change(lastUpdated=self.time())
        return str(own_id)

    def user(self, content: Any, **more: Any) -> str:
        """What a person typed, or what a program put there: a text or parts."""
        return self.record("user", [{"text": content}] if isinstance(content, str) else content, **more)

    def says(self, content: Any = "", *, thoughts: tuple[str, ...] = (), **more: Any) -> str:
        """An answer of the model."""
        thought = [
            {"subject": one, "description": f"{one}, thoroughly", "timestamp": self.time()}
            for one in thoughts
        ]
        more = {"thoughts": thought, "tokens": tokens(), "model": "gemini-2.5-pro", **more}
        return self.record("gemini", content, **more)

    def calls(self, *calls: tuple[str, str, dict[str, Any], Any], **more: Any) -> None:
        """The last answer is written again, with calls (id, tool, arguments, response; None: no result yet)."""
        self.now += 1_000_000
        last = self.records[-1]
        made = [
            {
                "id": call,
                "name": tool,
                "args": args,
                **({} if response is None else {"result": [answer(call, tool, response)]}),
                "status": "success",
                "timestamp": self.time(),
                "resultDisplay": "shown otherwise",
                **more,
            }
            for call, tool, args, response in calls
        ]
        last["toolCalls"] = [*last.get("toolCalls", ()), *made]
        self.write(last)

    def results(self, *parts: dict[str, Any], **more: Any) -> str:
        """The results once more, as the user's, which is how they go to the API."""
        return self.record("user", list(parts), **more)

    def lists(self, records: list[dict[str, Any]], **more: Any) -> None:
        """All messages at once, in the place of those before."""
        self.change(messages=records, **more, lastUpdated=self.time())

    def begins(self, folder: str = FOLDER) -> None:
        """The context comes first, and only in a list."""
        record = {
            "id": CONTEXT_ID,
            "timestamp": self.time(),
            "type": "user",
            "content": [{"text": context(folder)}],
        }
        self.records.append(record)
        self.lists([record])

    def goes_back_to(self, record: str) -> None:
        """The person takes back a prompt and what came after it."""
        self.write({"$rewindTo": record})
        at = next(number for number, one in enumerate(self.records) if one["id"] == record)
        self.records = self.records[:at]
        told = [one for one in self.records if one["type"] in ("user", "gemini")]
        self.lists([with_response for one in told for with_response in _as_history(one)])

    def compacts(self, summary: str, kept: int) -> None:
        """The history is compressed: a summary, an acknowledgement, and the last messages under new ids."""
        tail = [one for one in self.records if one["type"] in ("user", "gemini")][-kept:]
        made: list[dict[str, Any]] = [
            {"type": "user", "content": [{"text": f"<state_snapshot>\n{summary}\n</state_snapshot>"}]},
            {"type": "gemini", "content": [{"text": "Got it. Thanks for the additional context!"}]},
            *({"type": one["type"], "content": _as_history(one)[0]["content"]} for one in tail),
        ]
        self.records = []
        for one in made:
            self.record(one["type"], one["content"], thoughts=[], tokens=None)
        self.change(sessionId=self.session)
        self.lists(self.records)


def _as_history(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A message as the program gives it back from its history: parts, and the results as a message of their own."""
    content = record["content"]
    parts = [{"text": content}] if isinstance(content, str) and content else content or []
    calls = record.get("toolCalls", ())
    asked = [{"functionCall": {"id": one["id"], "name": one["name"], "args": one["args"]}} for one in calls]
    results = [part for one in calls for part in one.get("result", ())]
    made = [{**record, "content": [*parts, *asked]}]
    if results:
        made.append({**record, "id": f"{record['id']}_response", "type": "user", "content": results})
        for name in ("toolCalls", "thoughts", "tokens", "model"):
            made[-1].pop(name, None)
    return made


def picture(data: str = "aGVsbG8=", media_type: str = "image/png") -> dict[str, Any]:
    """A part that holds a picture."""
    return {"inlineData": {"mimeType": media_type, "data": data}}


def a_short_session() -> GeminiSession:
    """A context, a question, a call, its result twice, an answer."""
    session = GeminiSession()
    session.begins()
    session.user("Why is the kiln cold?")
    session.says("I'll look.", thoughts=("The log",))
    session.calls(("read_file__1_0", "read_file", {"path": "kiln.log"}, {"output": "09:00 relay open"}))
    session.results(answer("read_file__1_0", "read_file", {"output": "09:00 relay open"}))
    session.says("The relay is open.")
    return session


def a_session_with_everything() -> GeminiSession:
    """Parallel calls, files and pictures, news, a step back, masked outputs, a compaction, a title."""
    session = GeminiSession()
    session.begins()
    session.user(
        [
            {"text": "Glaze the bowls of @bowl.md — ‹blue›, 青"},
            {"text": "\n--- Content from referenced files ---"},
            {"text": "\nContent from @bowl.md:\n"},
            {"text": "# bowl"},
            {"text": "\n--- End of content ---"},
        ]
    )
    session.says(thoughts=("Two calls", "At once"))
    session.calls(
        ("read__1", "read_file", {"path": "bowl.md"}, {"output": "# bowl\nall of it"}),
        ("ls__1", "run_shell_command", {"command": "ls"}, {"error": "no such folder"}),
    )
    session.results(
        answer("read__1", "read_file", {"output": "# bowl\nall of it"}),
        answer("ls__1", "run_shell_command", {"error": "no such folder"}),
    )
    session.says("Both read.")
    session.record("info", "Gemini CLI update available!")
    second = session.user("Now fire them", displayContent=[{"text": "Now fire them"}])
    session.says("Fired.")
    session.goes_back_to(second)
    session.user("No, dry them first")
    session.says("Drying.")
    session.calls(("dry__1", "run_shell_command", {"command": "dry"}, None))
    session.results(answer("dry__1", "run_shell_command", {"output": "dry"}))
    session.record("warning", "the kiln is warm")
    session.record("error", [{"text": "[API Error: overloaded]"}])
    session.user([{"text": "like this"}, picture()])
    session.says("As in the picture.")
    masked = json.loads(json.dumps(session.records))
    for one in masked:
        for call in one.get("toolCalls", ()):
            call["result"] = [answer(call["id"], call["name"], {"output": "<masked>"})]
    session.lists(masked)
    session.compacts("So far: bowls were dried.", kept=3)
    session.user("Going on?")
    session.says("Going on.")
    session.change(summary="Bowls, dried", memoryScratchpad={"version": 1, "touchedPaths": ["bowl.md"]})
    return session


def a_session_resumed_elsewhere() -> GeminiSession:
    """A session that another machine went on with: its context told anew, its history given back."""
    session = a_short_session()
    session.change(sessionId=SESSION)
    session.now += 3600_000_000
    told = [one for record in session.records for one in _as_history(record)]
    told[0] = {**told[0], "content": [{"text": context("/home/dev/away/kiln")}]}
    session.lists(told)
    session.user("continue")
    session.says("It is warm now.")
    return session


def a_sub_agent(prompt: str = "find the shelf") -> GeminiSession:
    """A sub-agent's own file."""
    agent = GeminiSession(SUB_AGENT, start=START + 60_000_000, kind="subagent", directories=[FOLDER])
    agent.user(prompt)
    agent.says(thoughts=("Shelves",))
    agent.calls(("grep__1", "grep", {"pattern": "shelf"}, {"output": "shelf 4"}))
    agent.results(answer("grep__1", "grep", {"output": "shelf 4"}))
    agent.says("It is shelf 4.")
    return agent


def an_old_session() -> GeminiSession:
    """What versions before the lines recorded: texts as content, results inside the calls alone."""
    session = GeminiSession()
    session.record("user", "Why is the kiln cold?")
    session.says("I'll look.", thoughts=("The log",))
    session.calls(
        ("read_file-1-a", "read_file", {"path": "kiln.log"}, {"output": "09:00 relay open\n\tclosed"})
    )
    session.record("info", "Request cancelled.")
    session.says("The relay is “open”.", tokens=tokens(0, 0, 0, 0))
    session.record("user", "Then close it")
    return session
