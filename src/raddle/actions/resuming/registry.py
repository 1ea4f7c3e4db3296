"""The agents that a conversation can go on in, by name. A new one is one file here and one line in `FORMS`."""

from __future__ import annotations

from raddle.actions.resuming import claude_code, codex, gemini_cli
from raddle.actions.resuming.session import ResumedForm

OPENCODE = "opencode"
"""It takes no file of lines in its folder: its own program brings a document in (`opencode.py`)."""

FORMS: dict[str, ResumedForm] = {
    "claude-code": ResumedForm(
        agent="claude-code",
        label="Claude Code",
        write=claude_code.write,
        move_line=claude_code.move_line,
        folder_in=claude_code.folder_in,
        argv=claude_code.argv,
    ),
    "codex": ResumedForm(
        agent="codex",
        label="Codex",
        write=codex.write,
        move_line=codex.move_line,
        folder_in=codex.folder_in,
        argv=codex.argv,
    ),
    "gemini": ResumedForm(
        agent="gemini-cli",
        label="Gemini CLI",
        write=gemini_cli.write,
        move_line=gemini_cli.move_line,
        folder_in=gemini_cli.folder_in,
        argv=gemini_cli.argv,
        stubs=gemini_cli.stubs,
    ),
}

AGENTS = (*FORMS, OPENCODE)
"""Every name that a person can say."""

_SAME = {"gemini-cli": "gemini", "claude": "claude-code", "open-code": OPENCODE}


def name_of(agent: str) -> str:
    """The name of an agent as this room has it; empty for one that nothing can go on in."""
    name = _SAME.get(agent, agent)
    return name if name in AGENTS else ""
