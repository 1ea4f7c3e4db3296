"""Claude Code sessions made up line by line: each test writes the shape that it is about, and no more."""

from __future__ import annotations

import json
from typing import Any

from raddle.model.clock import format_time, parse_time
from raddle.model.ids import derived_id

SESSION = "0e0a6b7c-5d1f-4c7e-9a3b-2f4d6e8a0c1e"
OTHER_SESSION = "7b1c2d3e-4f50-4617-8829-3a4b5c6d7e8f"
START = parse_time("2026-02-01T09:00:00Z") or 0
FOLDER = "/home/dev/src/kiln"


def uuid_of(name: str) -> str:
    """A uuid that is the same for the same name."""
    return derived_id("test", name)


class ClaudeSession:
    """A session file that grows by lines, a second apart, each under the one before it unless told otherwise.

    Every method that adds a line gives its uuid. `under`: another parent; None for a root.
    """

    def __init__(self, session: str = SESSION, *, agent: str = "", start: int = START) -> None:
        self.session = session
        self.agent = agent
        self.lines: list[bytes] = []
        self.now = start
        self.last: str | None = None
        self._count = 0
        self.fields: dict[str, Any] = {"cwd": FOLDER, "gitBranch": "main", "version": "2.1.34"}

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return b"".join(line + b"\n" for line in self.lines)

    def bare(self, **fields: Any) -> None:
        """A line with nothing but these fields."""
        self.lines.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode())

    def line(
        self,
        kind: str,
        *,
        under: str | None = "",
        uuid: str = "",
        at: int | None = None,
        without: tuple[str, ...] = (),
        **more: Any,
    ) -> str:
        """A line of the tree. `at`: seconds after the start. `without`: names of fields to leave out."""
        self._count += 1
        self.now = self.now + 1_000_000 if at is None else START + at * 1_000_000
        uuid = uuid or uuid_of(f"{self.session}/{self.agent}/{self._count}")
        fields: dict[str, Any] = {
            "parentUuid": self.last if under == "" else under,
            "isSidechain": bool(self.agent),
            "userType": "external",
            **self.fields,
            "sessionId": self.session,
            "type": kind,
            **({"agentId": self.agent} if self.agent else {}),
            **more,
            "uuid": uuid,
            "timestamp": format_time(self.now).replace("000Z", "Z"),
        }
        self.bare(**{name: value for name, value in fields.items() if name not in without})
        self.last = uuid
        return uuid

    def user(self, content: Any, **more: Any) -> str:
        """What a person typed, or what a program put there: a text or blocks."""
        return self.line("user", message={"role": "user", "content": content}, **more)

    def says(
        self,
        *blocks: Any,
        message: str = "",
        out: int = 1,
        model: str = "claude-opus-4-5-20251101",
        **more: Any,
    ) -> str:
        """A line of an assistant: texts or blocks. `message`: the id of the API message it is part of."""
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        usage = {
            "input_tokens": 10,
            "output_tokens": out,
            "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 5,
        }
        said = {
            "model": model,
            "id": message or f"msg_{self._count}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "usage": usage,
        }
        return self.line("assistant", message=said, **more)

    def result(self, call: str, content: Any, *, is_error: bool | None = None, **more: Any) -> str:
        """The result of a call."""
        block: dict[str, Any] = {"tool_use_id": call, "type": "tool_result", "content": content}
        if is_error is not None:
            block["is_error"] = is_error
        return self.user([block], **more)

    def progress(self, call: str = "hook", **more: Any) -> str:
        """A line of progress, which says nothing but is a parent to others."""
        data = more.pop("data", {"type": "hook_progress", "hookName": "PostToolUse"})
        return self.line("progress", data=data, parentToolUseID=call, toolUseID=call, **more)

    def turn_ends(self) -> str:
        """The two lines that close a turn."""
        self.line("system", subtype="stop_hook_summary", hookCount=1, level="suggestion")
        return self.line("system", subtype="turn_duration", durationMs=1200)

    def compacts(self, summary: str) -> str:
        """A compaction: a boundary that has no parent, and a summary in the user's name."""
        self.line(
            "system",
            under=None,
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=self.last,
            compactMetadata={"trigger": "auto", "preTokens": 155_000},
        )
        return self.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def thinks(text: str) -> dict[str, Any]:
    """A block of thinking."""
    return {"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"}


def calls(call: str, tool: str = "Bash", **arguments: Any) -> dict[str, Any]:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": call, "name": tool, "input": arguments}


def starts(call: str, prompt: str) -> dict[str, Any]:
    """A block that starts a sub-agent."""
    return calls(call, "Task", prompt=prompt, subagent_type="Explore", description="look around")


def picture(data: str, media_type: str = "image/png") -> dict[str, Any]:
    """A block that holds a picture, as base64."""
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def a_short_session() -> ClaudeSession:
    """A question, a call, its result, an answer."""
    session = ClaudeSession()
    session.user("Why is the kiln cold?")
    session.says(thinks("Look at the log first."), message="msg_a", out=3)
    session.says("I'll look.", calls("call_1", command="tail kiln.log"), message="msg_a", out=40)
    session.result("call_1", "09:00 relay open")
    session.says("The relay is open.", message="msg_b", out=12)
    session.turn_ends()
    return session


def a_session_with_everything() -> ClaudeSession:
    """Parallel calls, progress, hooks, rewinds, a compaction, a command, a picture, an error."""
    session = ClaudeSession()
    session.bare(type="summary", summary="Somebody else's talk", leafUuid=uuid_of("nowhere"))
    session.progress(under=None)
    session.bare(type="file-history-snapshot", messageId="x", snapshot={}, isSnapshotUpdate=False)
    first = session.progress()
    session.user("Glaze the bowls — ‹blue›, 青")
    session.says(thinks("Two calls."), message="msg_1", out=2)
    one = session.says(calls("call_1", "Read", file_path="bowl.md"), message="msg_1", out=2)
    two = session.says(calls("call_2", command="ls"), message="msg_1", out=90)
    session.progress("call_1", under=one)
    session.result("call_1", "# bowl", under=one)
    session.result("call_2", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], under=two)
    session.says("Both read.", message="msg_2", out=9)
    before = session.turn_ends()
    session.user("Now fire them")
    session.says("Fired.", message="msg_3", out=4)
    session.user("No, dry them first", under=before, at=600)
    session.says(starts("call_3", "find the shelf"), message="msg_4", out=5)
    session.result("call_3", [{"type": "text", "text": "shelf 4\nagentId: a1b2c3d"}], is_error=False)
    session.user("<command-name>/cost</command-name>")
    session.user("<local-command-stdout>cheap</local-command-stdout>")
    session.user("be brief", isMeta=True)
    session.user([picture("aGVsbG8="), {"type": "text", "text": "like this"}])
    session.says("API Error: overloaded", message="msg_5", model="<synthetic>", isApiErrorMessage=True)
    session.compacts("So far: bowls were read.")
    session.says("Going on.", message="msg_6", out=11)
    session.bare(type="custom-title", customTitle="Bowls", sessionId=SESSION)
    session.user("typed again from the start", under=first, at=900)
    session.says("Hello again.", message="msg_7", out=3)
    return session


def a_sub_agent(
    prompt: str = "find the shelf", *, agent: str = "a1b2c3d", session: str = SESSION
) -> ClaudeSession:
    """A sub-agent's own file."""
    agents = ClaudeSession(session, agent=agent, start=START + 602_000_000)
    agents.user(prompt)
    agents.says(calls("call_x", "Grep", pattern="shelf"), message=f"msg_{agent}_1", out=2)
    agents.result("call_x", "shelf 4")
    agents.says("It is shelf 4.", message=f"msg_{agent}_2", out=6)
    return agents


def a_file_without_a_tree() -> list[bytes]:
    """Lines with neither uuid nor parent nor session, as the first versions and some exports have them."""
    session = ClaudeSession()
    bare = ("uuid", "parentUuid", "sessionId", "isSidechain")
    for content in ("hello", "hello", "again"):
        session.user(content, without=bare)
        session.line("assistant", message={"content": [{"type": "text", "text": "hi"}]}, without=bare)
    return session.lines
