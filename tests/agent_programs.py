"""The agents' own programs, from npm, each talking to a model of ours on this machine.

They are installed once, pinned, into a folder that outlives the tests: the one that PYTEST_AGENT_PROGRAMS names, else
one in pytest's cache. A test that wants them is skipped where there is no npm, or nothing to install from.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model_server import Asked, Model
from tests.npm_programs import npm_programs

PINNED = ("@openai/codex@0.171.0", "@google/gemini-cli@0.61.0", "opencode-ai@1.18.33")
NAMES = ("codex", "gemini", "opencode")
_PATIENCE_SECONDS = 180
_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "GEMINI_API_KEY": "made-up",
    "NO_COLOR": "1",
}


def installed(pytestconfig: pytest.Config) -> Path:
    """The folder in which the programs are; the test is skipped where they cannot be had."""
    return npm_programs(
        pytestconfig, PINNED, variable="PYTEST_AGENT_PROGRAMS", what="the agents' own programs"
    )


class AgentProgram:
    """One agent on one machine (a home), which talks to one model."""

    def __init__(self, name: str, programs: Path, home: Path, model: Model) -> None:
        self.name, self.home, self._model = name, home, model
        self.environment = {
            "HOME": str(home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GOOGLE_GEMINI_BASE_URL": model.address,
            **_QUIET,
        }
        _SETTINGS[name](home, model.address)

    def begin(self, workspace: Path, prompt: str) -> None:
        """A new session."""
        self._run(workspace, *_BEGIN[self.name], prompt)

    def go_on(self, workspace: Path, session_id: str, prompt: str) -> list[str]:
        """Go on with a session, without a person; what the model was asked then, as texts in order."""
        before = len(self._model.requests())
        words = {
            "codex": (*_BEGIN["codex"], "resume", session_id, prompt),
            "gemini": (*_BEGIN["gemini"][:-1], "--resume", session_id, "--prompt", prompt),
            "opencode": ("run", "--session", session_id, prompt),
        }[self.name]
        self._run(workspace, *words)
        asked = [texts_of(one) for one in self._model.requests()[before:]]
        return next(texts for texts in asked if prompt in " ".join(texts[-1:]))

    def asked(self) -> list[Asked]:
        """What its model was asked so far."""
        return self._model.requests()

    def _run(self, workspace: Path, *words: str) -> None:
        ran = subprocess.run(
            [self.name if os.sep in self.name else _found(self.name, self.environment["PATH"]), *words],
            cwd=workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-2000:]


def _found(name: str, path: str) -> str:
    found = shutil.which(name, path=path)
    assert found is not None
    return found


_BEGIN = {
    "codex": ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    "gemini": ("--skip-trust", "--yolo", "--model", "gemini-2.5-pro", "--prompt"),
    "opencode": ("run",),
}


def _codex(home: Path, address: str) -> None:
    folder = home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\n'
        f'base_url = "{address}/v1"\nwire_api = "responses"\n'
    )


def _gemini(home: Path, _: str) -> None:
    folder = home / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    (folder / "settings.json").write_text(json.dumps(settings))


def _opencode(home: Path, address: str) -> None:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Mock",
        "options": {"baseURL": f"{address}/v1", "apiKey": "made-up"},
        "models": {"m": {"name": "m", "tool_call": True}},
    }
    settings = {"provider": {"mock": provider}, "model": "mock/m", "small_model": "mock/m"}
    (folder / "opencode.json").write_text(json.dumps(settings))


_SETTINGS = {"codex": _codex, "gemini": _gemini, "opencode": _opencode}


def texts_of(asked: Asked) -> list[str]:
    """What a request tells the model, turn by turn: words, `call NAME`, `result TEXT`."""
    body = asked.body
    turns = body.get("input") or body.get("messages") or body.get("contents") or []
    return [text for turn in turns for text in _texts_of_turn(turn)]


def _texts_of_turn(turn: dict[str, Any]) -> list[str]:
    if turn.get("type") == "function_call":
        return [f"call {turn['name']}"]
    if turn.get("type") == "function_call_output":
        return [f"result {turn['output']}"]
    if turn.get("role") == "tool":
        return [f"result {turn['content']}"]
    calls = [f"call {call['function']['name']}" for call in turn.get("tool_calls") or ()]
    content = turn.get("content") or turn.get("parts") or ()
    if isinstance(content, str):
        return [content, *calls]
    return [text for part in content for text in _texts_of_part(part)] + calls


def _texts_of_part(part: dict[str, Any]) -> list[str]:
    if "functionCall" in part:
        return [f"call {part['functionCall']['name']}"]
    if "functionResponse" in part:
        return [f"result {part['functionResponse']['response'].get('output')}"]
    return [part["text"]] if part.get("text") else []
