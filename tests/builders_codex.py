"""Codex rollouts made up line by line: each test writes the shape that it is about, and no more."""

from __future__ import annotations

import json
from typing import Any

from raddle.actions.importing.codex import Codex
from raddle.model.clock import format_time, parse_time
from raddle.model.ids import derived_id
from raddle.model.threads.message import TURN, Message
from tests.reading import Reading, named, read

START = parse_time("2026-02-01T09:00:00Z") or 0
FOLDER = "/home/dev/src/kiln"
OLD_SESSION = "c3c4b301-27c8-4c70-b6e4-46b99fdf0236"
USAGE = {
    "input_tokens": 1200,
    "cached_input_tokens": 800,
    "output_tokens": 50,
    "reasoning_output_tokens": 10,
}


def uuid7(at: int, name: str = "") -> str:
    """A UUIDv7 whose time is `at` (microseconds); the same for the same name."""
    time, rest = f"{at // 1000:012x}", derived_id("test", name).replace("-", "")
    return f"{time[:8]}-{time[8:]}-7{rest[13:16]}-8{rest[17:20]}-{rest[20:]}"


SESSION = uuid7(START, "session")


class CodexSession:
    """A rollout that grows by lines, a second apart. Every method that adds a line adds one.

    `age`: "new" has ordinals, ids and turns as 0.171 writes them; "plain" has neither, as in 2025.
    """

    def __init__(self, session: str = SESSION, *, age: str = "new", start: int = START) -> None:
        self.session = session
        self.age = age
        self.lines: list[bytes] = []
        self.now = start
        self.start = start
        self.ordinal = 0
        self.turn = ""
        self.total = dict.fromkeys(USAGE, 0)
        self._count = 0

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return b"".join(line + b"\n" for line in self.lines)

    @property
    def name(self) -> str:
        """The file's name."""
        return f"rollout-2026-02-01T09-00-00-{self.session}.jsonl"

    def bare(self, **fields: Any) -> None:
        """A line with nothing but these fields."""
        self.lines.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode())

    def line(self, kind: str, payload: dict[str, Any], *, seconds: float = 1.0) -> None:
        """A line of the rollout, so many seconds after the one before it."""
        self.now += int(seconds * 1_000_000)
        stamp = format_time(self.now).replace("000Z", "Z")
        if self.age == "new":
            self.bare(timestamp=stamp, ordinal=self.ordinal, type=kind, payload=payload)
            self.ordinal += 1
        else:
            self.bare(timestamp=stamp, type=kind, payload=payload)

    def meta(self, **more: Any) -> None:
        """A header."""
        own: dict[str, Any] = {
            "id": self.session,
            "timestamp": format_time(self.start).replace("000Z", "Z"),
            "cwd": FOLDER,
            "originator": "codex_exec",
            "cli_version": "0.171.0" if self.age == "new" else "0.46.0",
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": "You fire kilns. Secret sauce."},
            "git": {
                "commit_hash": "ab" * 20,
                "branch": "main",
                "repository_url": "https://dev:pw@example.com/a/kiln.git",
            },
        }
        if self.age == "new":
            own |= {"session_id": self.session, "history_mode": "paginated"}
        self.line("session_meta", own | more, seconds=0.05)

    def begin_turn(self, *, model: str = "gpt-5-codex", cwd: str = FOLDER) -> None:
        """What opens a turn."""
        self._count += 1
        self.turn = uuid7(self.now, f"{self.session}/turn/{self._count}")
        if self.age == "new":
            self.event("task_started", turn_id=self.turn)
        context = {"cwd": cwd, "model": model, "summary": "auto", "approval_policy": "never"}
        if self.age == "new":
            context["turn_id"] = self.turn
            self.line("world_state", {"full": True, "state": {"agents_md": {}}}, seconds=0.01)
        self.line("turn_context", context, seconds=0.01)

    def end_turn(self) -> None:
        """What closes a turn."""
        if self.age == "new":
            self.event("task_complete", turn_id=self.turn, last_agent_message="")

    def event(self, kind: str, **fields: Any) -> None:
        """An event."""
        self.line("event_msg", {"type": kind, **fields}, seconds=0.01)

    def item(self, kind: str, *, id: str = "", **fields: Any) -> None:  # noqa: A002  # its name in the format
        """An item of the conversation, with an id in the new age. `id`: that one."""
        self._count += 1
        item: dict[str, Any] = {"type": kind}
        if self.age == "new":
            item["id"] = id or f"{kind[:3]}_{uuid7(self.now, f'{self.session}/{self._count}')}"
        item |= fields
        if self.age == "new" and self.turn:
            item["internal_chat_message_metadata_passthrough"] = {"turn_id": self.turn}
        self.line("response_item", item)

    def user(self, *texts: str, **more: Any) -> None:
        """What a person typed, or what the program put there."""
        self.item("message", role="user", content=[_text("input_text", one) for one in texts], **more)

    def types(self, text: str) -> None:
        """A person types, and an event says so too."""
        self.user(text)
        if self.age == "new":
            inner = {"type": "UserMessage", "id": "x", "content": [{"type": "text", "text": text}]}
            self.event("item_completed", thread_id=self.session, item=inner)
        else:
            self.event("user_message", message=text, images=[])

    def says(self, text: str, **more: Any) -> None:
        """The model says something, and an event says so too."""
        if self.age == "new":
            inner = {"type": "AgentMessage", "id": "x", "content": [{"type": "Text", "text": text}]}
            self.event("item_completed", thread_id=self.session, item=inner)
        else:
            self.event("agent_message", message=text)
        self.item("message", role="assistant", content=[_text("output_text", text)], **more)

    def thinks(self, *texts: str) -> None:
        """The model thinks; most of it is encrypted."""
        for text in texts:
            self.event("agent_reasoning", text=text)
        summary = [_text("summary_text", text) for text in texts]
        self.item("reasoning", summary=summary, encrypted_content="gAAAAABoqqqq")

    def calls(self, call: str, tool: str = "shell", **arguments: Any) -> None:
        """The model calls a tool."""
        self.item("function_call", name=tool, arguments=json.dumps(arguments), call_id=call)

    def result(self, call: str, output: Any) -> None:
        """The result of a call."""
        self.item("function_call_output", call_id=call, output=output)

    def tokens(self, **more: int) -> None:
        """What the response cost, told as often as the age tells it."""
        last = USAGE | more
        self.total = {name: self.total[name] + last.get(name, 0) for name in self.total}
        if self.age == "new":
            record = {"usage": last, "thread_token_usage": self.total, "response_id": "resp_1"}
            self.line("token_usage_record", record, seconds=0.01)
        self.event("token_count", info={"total_token_usage": self.total, "last_token_usage": last})

    def compacts(self, summary: str, *kept: dict[str, Any]) -> None:
        """A compaction."""
        self.line("compacted", {"message": summary, "replacement_history": list(kept)})


def kept(text: str, *, role: str = "user", id: str = "") -> dict[str, Any]:  # noqa: A002
    """A message as a compaction keeps it."""
    item: dict[str, Any] = {"type": "message", "role": role, "content": [_text("input_text", text)]}
    return item | ({"id": id} if id else {})


def _text(kind: str, text: str) -> dict[str, str]:
    return {"type": kind, "text": text}


def call_id(name: str) -> str:
    """The id of a call as the model's server makes it."""
    return f"call_{derived_id('call', name).replace('-', '')[:24]}"


def begun(age: str = "new") -> CodexSession:
    """A session whose first turn begins."""
    session = CodexSession(age=age)
    session.meta()
    session.begin_turn()
    return session


def a_short_session(age: str = "new", session: str = SESSION, start: int = START) -> CodexSession:
    """A question, a thought, a call, its result, an answer."""
    made = CodexSession(session, age=age, start=start)
    made.meta()
    made.begin_turn()
    made.item("message", role="developer", content=[_text("input_text", "<permissions instructions>all")])
    made.user(f"<environment_context>\n  <cwd>{FOLDER}</cwd>\n</environment_context>")
    made.types("Why is the kiln cold?")
    made.thinks("Look at the log first.")
    made.calls(call_id(f"{session}1"), command=["tail", "kiln.log"])
    made.tokens()
    made.result(call_id(f"{session}1"), "Exit code: 0\nWall time: 0 seconds\nOutput:\n09:00 relay open")
    made.says("The relay is open.", phase="final_answer")
    made.tokens(output_tokens=12)
    made.end_turn()
    return made


def a_session_with_everything(age: str = "new") -> CodexSession:
    """Parallel calls, pictures, every kind of call, a rollback, compactions, an error, a name, two folders."""
    made = a_short_session(age)
    made.begin_turn()
    image = "data:image/png;base64,aGVsbG8="
    made.item(
        "message",
        role="user",
        content=[
            _text("input_text", '<image name="[Image #1]">'),
            {"type": "input_image", "image_url": image},
            _text("input_text", "</image>"),
            _text("input_text", "like this — ‹blue›, 青"),
        ],
    )
    made.says("Both at once.")
    made.calls(call_id("a"), command=["ls"])
    made.item("custom_tool_call", call_id=call_id("b"), name="apply_patch", input="*** Begin Patch")
    made.tokens()
    made.result(call_id("a"), json.dumps({"output": "no such", "metadata": {"exit_code": 2}}))
    made.item("custom_tool_call_output", call_id=call_id("b"), output=[_text("input_text", "patched")])
    made.item("web_search_call", status="completed", action={"type": "search", "query": "kiln"})
    made.item(
        "local_shell_call",
        call_id=call_id("c"),
        action={"type": "exec", "command": ["pwd"]},
        status="completed",
    )
    made.result(call_id("c"), {"content": "denied", "success": False})
    made.event("error", message="stream disconnected", codex_error_info="other")
    made.end_turn()
    made.begin_turn()
    made.types("Fire them")
    made.says("Fired.")
    made.tokens()
    made.end_turn()
    made.event("thread_rolled_back", num_turns=1)
    made.begin_turn(cwd="/home/dev/src/kiln/shelf")
    made.types("No, dry them first")
    made.says("Dried.")
    made.tokens()
    made.compacts("So far: bowls were read.", kept("Why is the kiln cold?"))
    made.says("Going on.")
    made.tokens()
    made.event("thread_name_updated", thread_id=made.session, thread_name="Bowls")
    made.user("<turn_aborted>\nThe user interrupted</turn_aborted>")
    made.event("turn_aborted", turn_id=made.turn, reason="interrupted")
    made.begin_turn()
    made.types("again")
    made.types("again")
    made.says("Again, then.")
    made.end_turn()
    return made


def a_bare_session() -> CodexSession:
    """As the first versions wrote it: items without a wrapper, without times, without ids."""
    made = CodexSession(OLD_SESSION, age="plain")
    made.bare(
        id=OLD_SESSION,
        timestamp="2025-08-18T01:16:13.522Z",
        instructions=None,
        git={"commit_hash": "cd" * 20, "branch": "kiln", "repository_url": "git@example.com:a/kiln.git"},
    )
    made.bare(record_type="state")
    context = f"<environment_context>\nCurrent working directory: {FOLDER}\nApproval policy: never\n"
    for role, kind, text in (
        ("user", "input_text", context + "</environment_context>"),
        ("user", "input_text", "hello"),
        ("assistant", "output_text", "hi"),
        ("user", "input_text", "hello"),
    ):
        made.bare(type="message", id=None, role=role, content=[_text(kind, text)])
        made.bare(record_type="state")
    made.bare(type="reasoning", summary=[_text("summary_text", "Look.")], encrypted_content=None)
    made.bare(type="function_call", id="fc_1", name="shell", arguments='{"command":["ls"]}', call_id="call_1")
    made.bare(
        type="function_call_output",
        call_id="call_1",
        output='{"output":"a.txt\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}',
    )
    made.bare(type="message", id="msg_1", role="assistant", content=[_text("output_text", "a.txt")])
    return made


def a_fork(age: str = "new", *, header: bool = True) -> tuple[CodexSession, CodexSession]:
    """A session, and one that was forked from it: its lines are copied in, with new times.

    `header`: is the header of the first among them?
    """
    parent = a_short_session(age)
    start = parent.now + 600_000_000
    child = CodexSession(uuid7(start, "fork"), age=age, start=start)
    child.meta(forked_from_id=parent.session)
    copied = parent.lines if header else parent.lines[1:]
    for line in copied:
        record = json.loads(line)
        child.line(record["type"], record["payload"], seconds=0.001)
    child.total = dict(parent.total)
    child.now += 60_000_000
    child.begin_turn()
    child.types("And now?")
    child.says("Now it is warm.")
    child.tokens(output_tokens=7)
    child.end_turn()
    return parent, child


def a_session_with_a_sub_agent() -> tuple[CodexSession, CodexSession]:
    """A session that starts a sub-agent, and the sub-agent's file: what it was told of the session first."""
    main = a_short_session()
    main.begin_turn()
    main.types("Look for the shelf")
    spawn = call_id("spawn")
    main.calls(spawn, "spawn_agent", message="find the shelf", agent_type="explorer")
    main.tokens()
    agent = uuid7(main.now, "agent")
    started = {"type": "SubAgentActivity", "id": spawn, "kind": "started", "agent_thread_id": agent}
    main.event("item_completed", thread_id=main.session, item=started)
    side = CodexSession(agent, start=main.now)
    spawned = {"parent_thread_id": main.session, "depth": 1, "agent_nickname": "Otter", "agent_role": None}
    inherited = [line for line in main.lines[1:] if b'"response_item"' in line and b'"message"' in line]
    side.meta(
        session_id=main.session,
        forked_from_id=main.session,
        source={"subagent": {"thread_spawn": spawned}},
        subagent_history_start_ordinal=1 + len(inherited),
    )
    for line in inherited:
        side.line("response_item", json.loads(line)["payload"], seconds=0.001)
    side.begin_turn()
    side.types("find the shelf")
    side.says("It is shelf 4.")
    side.tokens(output_tokens=6)
    side.end_turn()
    main.result(spawn, json.dumps({"agent_id": agent, "nickname": "Otter"}))
    main.says("Shelf 4.")
    main.tokens()
    main.end_turn()
    return main, side


def a_reverted_session(*, to_end: bool = False) -> tuple[CodexSession, CodexSession]:
    """A session of two turns, and what it went on with when a person had gone back to the first.

    `to_end`: or had gone back to no turn at all.
    """
    first = a_short_session()
    cut = first.ordinal
    first.begin_turn()
    first.types("Fire them")
    first.says("Fired.")
    first.tokens()
    first.end_turn()
    cut = first.ordinal if to_end else cut
    second = CodexSession(start=first.now + 60_000_000)
    second.start, second.ordinal = START, cut
    second.meta(history_base={"thread_id": SESSION, "end_ordinal_exclusive": cut, "end_byte_offset": 99})
    second.begin_turn()
    second.types("No, dry them first")
    second.says("Dried.")
    second.tokens()
    second.end_turn()
    return first, second


def a_fork_that_names_its_base(
    first: CodexSession, *, end: int | None = None, name: str = "based"
) -> CodexSession:
    """What 0.154 and later write of a fork: the session it goes on from, and the ordinal it was forked at."""
    end = first.ordinal if end is None else end
    start = first.now + 600_000_000
    fork = CodexSession(uuid7(start, name), start=start)
    fork.ordinal = end
    fork.meta(
        forked_from_id=first.session,
        forked_from_ordinal_exclusive=end,
        history_base={"thread_id": first.session, "end_ordinal_exclusive": end, "end_byte_offset": 99},
    )
    fork.begin_turn()
    fork.types(f"And now, {name}?")
    fork.says(f"Now {name}.")
    return fork


def imported(session: CodexSession) -> Reading:
    """What Codex's importer makes of it."""
    return read(Codex(), named(session.name), session.data)


def said(reading: Reading) -> list[tuple[str, str]]:
    """(role, words) of each turn."""
    return [(message.role, message.content) for message in reading.thread.messages if message.kind == TURN]


def only(reading: Reading, role: str) -> Message:
    """The message of that role, where there is one."""
    (found,) = [message for message in reading.thread.messages if message.role == role]
    return found
