"""Tool calls of an imaginary agent: what it asks, what it gets, and what Claude Code keeps beside that.

Owns the sizes: how long the inputs, the outputs and the `toolUseResult` values are. They were fitted to the
figures of real sessions (`bench/README.md`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from bench.corpus.outputs import build_errors, clip, git_diff, git_log, listing, server_log, test_run
from bench.corpus.project import Project, SourceFile, edit
from bench.corpus.words import ADJECTIVES, base64_text, cjk_text, hex_text, image_text, prose, uuid_text


class Call(Struct, kw_only=True):
    """One tool call with its answer. `seconds`: how long it took. `agent_task`: the prompt of a sub-agent."""

    name: str
    input: dict[str, Any]
    output: str | list[dict[str, Any]]
    result: Any
    is_error: bool = False
    seconds: float = 0.2
    agent_task: str = ""
    changed_path: str = ""


class Habits(Struct, frozen=True, kw_only=True):
    """How wordy the sessions are: factors on the lengths of tool outputs and of prose, and whether the whole
    file is kept beside each edit. `noise`: a random sha or uuid for so many characters of output (0: none).
    `patience`: how many seconds at most a command tells of its progress.
    """

    output: float = 1.0
    talk: float = 1.0
    keeps_originals: bool = True
    noise: int = 0
    patience: int = 30


_Shell = tuple[int, str, Callable[[random.Random, Project, int], str]]
_SHELL: tuple[_Shell, ...] = (
    (9, "make test 2>&1 | tail -{n}", test_run),
    (2, "git log --oneline -{n}", git_log),
    (4, "git diff HEAD~{n}", git_diff),
    (3, "ls -la {path}", listing),
    (3, "tail -n {n} /var/log/{name}.log", server_log),
    (5, "make build {name} && make check", build_errors),
)
_SHELL_WEIGHTS = [one[0] for one in _SHELL]


def _noisy(rng: random.Random, text: str, habits: Habits) -> str:
    """`text` with a random sha or uuid at the end of a line for every `habits.noise` characters."""
    if not habits.noise:
        return text
    out, since = [], 0
    for line in text.split("\n"):
        since += len(line)
        while since >= habits.noise:
            line += f" {hex_text(rng, 40) if rng.random() < 0.5 else uuid_text(rng)}"
            since -= habits.noise
        out.append(line)
    return "\n".join(out)


def _bash(rng: random.Random, project: Project, habits: Habits) -> Call:
    _, pattern, output_of = rng.choices(_SHELL, weights=_SHELL_WEIGHTS)[0]
    count = int(min(rng.lognormvariate(1.9, 1.25), 400) * habits.output) + 1
    command = pattern.format(n=count, path=project.paths(rng, 1)[0], name=project.names.one(rng))
    text = _noisy(rng, clip(output_of(rng, project, count)), habits)
    asked = {"command": command, "description": " ".join(project.words.draw(rng, 6))}
    seconds = rng.lognormvariate(-0.1, 1.5)
    if rng.random() < 0.13:
        text = f"Exit code {rng.choice((1, 1, 2, 127))}\n{text}"
        return Call(
            name="Bash", input=asked, output=text, result=f"Error: {text}", is_error=True, seconds=seconds
        )
    if rng.random() < 0.004:
        text += "\n" + cjk_text(rng, 60)
    result = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    return Call(name="Bash", input=asked, output=text, result=result, seconds=seconds)


def _read(rng: random.Random, project: Project, habits: Habits) -> Call:
    file = project.a_file(rng)
    path = f"{project.root}/{file.path}"
    total = len(file.lines)
    asked: dict[str, Any] = {"file_path": path}
    start, stop = 0, min(total, 2000)
    if total > 60 and rng.random() < 0.8:
        start = 10 * rng.randrange((total - 40) // 10)
        stop = min(start + int(rng.choice((20, 30, 40, 50, 60, 80, 120)) * habits.output), total)
        asked |= {"offset": start + 1, "limit": stop - start}
    shown = {"filePath": path, "content": "\n".join(file.lines[start:stop]), "numLines": stop - start}
    result = {"type": "text", "file": {**shown, "startLine": start + 1, "totalLines": total}}
    return Call(
        name="Read", input=asked, output=_noisy(rng, file.numbered(start, stop), habits), result=result
    )


def _hunk(file: SourceFile, at: int, old: list[str], new: list[str]) -> dict[str, Any]:
    before, after = file.lines[max(at - 3, 0) : at], file.lines[at + len(new) : at + len(new) + 3]
    lines = [f" {line}" for line in before] + [f"-{line}" for line in old] + [f"+{line}" for line in new]
    lines += [f" {line}" for line in after]
    beside = len(before) + len(after)
    sizes = {"oldLines": len(old) + beside, "newLines": len(new) + beside}
    return {"oldStart": at + 1, "newStart": at + 1, **sizes, "lines": lines}


def _edit(rng: random.Random, project: Project, habits: Habits) -> Call:
    file = max((project.a_file(rng) for _ in range(2)), key=lambda one: len(one.lines))
    path = f"{project.root}/{file.path}"
    before = file.text() if habits.keeps_originals else ""
    at, old, new = edit(rng, project, file, habits.output)
    old_text, new_text = "\n".join(old), "\n".join(new)
    asked = {"replace_all": False, "file_path": path, "old_string": old_text, "new_string": new_text}
    if rng.random() < 0.05:
        text = f"<tool_use_error>String to replace not found in file.\nString: {old_text}</tool_use_error>"
        return Call(name="Edit", input=asked, output=text, result=f"Error: {text[16:-17]}", is_error=True)
    result: Any = {
        "filePath": path,
        "oldString": old_text,
        "newString": new_text,
        "originalFile": before,
        "structuredPatch": [_hunk(file, at, old, new)],
        "userModified": False,
        "replaceAll": False,
    }
    text = f"The file {path} has been updated successfully."
    if rng.random() < 0.5:
        text = f"The file {path} has been updated. What `cat -n` shows of the edited part:\n"
        text += file.numbered(max(at - 4, 0), at + len(new) + 4)
    return Call(name="Edit", input=asked, output=text, result=result, seconds=4.0, changed_path=file.path)


def _write(rng: random.Random, project: Project, habits: Habits) -> Call:
    file = project.a_file(rng)
    path = f"{project.root}/{file.path}"
    text = "\n".join(
        project.code(rng, file.language, int(min(rng.lognormvariate(4.1, 0.7), 600) * habits.output) + 3)
    )
    result: Any = {
        "type": "create",
        "filePath": path,
        "content": text,
        "structuredPatch": [],
        "originalFile": None,
    }
    said = f"File created successfully at: {path}"
    return Call(
        name="Write",
        input={"file_path": path, "content": text},
        output=said,
        result=result,
        changed_path=file.path,
    )


def _grep(rng: random.Random, project: Project, habits: Habits) -> Call:
    asked: dict[str, Any] = {"pattern": project.names.one(rng), "path": project.root}
    if rng.random() < 0.35:
        paths = sorted(set(project.paths(rng, rng.randrange(1, 12))))
        text = f"Found {len(paths)} files\n" + "\n".join(paths)
        result: dict[str, Any] = {"mode": "files_with_matches", "filenames": paths, "numFiles": len(paths)}
        return Call(name="Grep", input=asked, output=text, result=result)
    lines = []
    for _ in range(rng.randrange(1, 5)):
        file = project.a_file(rng)
        for _ in range(int(min(rng.lognormvariate(2.4, 0.9), 120) * habits.output) + 1):
            at = rng.randrange(len(file.lines))
            lines.append(f"{file.path}:{at + 1}:{file.lines[at]}")
    text = "\n".join(lines)
    result = {"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": len(lines)}
    return Call(name="Grep", input=asked | {"output_mode": "content", "-n": True}, output=text, result=result)


def _glob(rng: random.Random, project: Project, _: Habits) -> Call:
    paths = [
        f"{project.root}/{path}"
        for path in project.paths(rng, int(min(rng.lognormvariate(1.6, 1.2), 100)) + 1)
    ]
    asked = {"pattern": f"**/*{project.names.one(rng)}*", "path": project.root}
    result = {
        "filenames": paths,
        "durationMs": rng.randrange(900),
        "numFiles": len(paths),
        "truncated": False,
    }
    return Call(name="Glob", input=asked, output="\n".join(paths), result=result)


def _todo(rng: random.Random, project: Project, _: Habits) -> Call:
    count = rng.randrange(2, 8)
    done = rng.randrange(count)
    subjects = [" ".join(project.words.draw(rng, rng.randrange(5, 11))) for _ in range(count)]
    states = ["completed"] * done + ["in_progress"] + ["pending"] * (count - done - 1)
    todos = [
        {"content": f"Fix {subject}", "status": state, "activeForm": f"Fixing {subject}"}
        for subject, state in zip(subjects, states, strict=True)
    ]
    text = (
        "Todos have been modified successfully. Follow your progress with the list, then go on with the task."
    )
    return Call(
        name="TodoWrite", input={"todos": todos}, output=text, result={"oldTodos": todos, "newTodos": todos}
    )


def _task(rng: random.Random, project: Project, habits: Habits) -> Call:
    prompt = prose(rng, project.phrases, project.names, int(rng.uniform(250, 900) * habits.talk))
    description = " ".join(project.words.draw(rng, 4))
    answer = prose(rng, project.phrases, project.names, int(rng.lognormvariate(6.9, 0.7) * habits.talk))
    agent = hex_text(rng, 7)
    asked = {
        "description": description,
        "prompt": prompt,
        "subagent_type": rng.choice(("general-purpose", "Explore")),
    }
    blocks = [
        {"type": "text", "text": answer},
        {"type": "text", "text": f"agentId: {agent} (to resume this agent)"},
    ]
    result = {
        "status": "completed",
        "prompt": prompt,
        "agentId": agent,
        "content": blocks[:1],
        "totalDurationMs": rng.randrange(9000, 400_000),
        "totalTokens": rng.randrange(9000, 90_000),
        "totalToolUseCount": rng.randrange(2, 40),
    }
    return Call(name="Task", input=asked, output=blocks, result=result, seconds=60.0, agent_task=prompt)


def _task_output(rng: random.Random, project: Project, habits: Habits) -> Call:
    agent = hex_text(rng, 7)
    text = "\n".join(
        [
            f"[Tool: Bash] {server_log(rng, project, 8)}"
            for _ in range(int(rng.uniform(1, 14) * habits.output) + 1)
        ]
    )
    shown = f"<task_id>{agent}</task_id>\n\n<output>\n{text[-6000:]}\n</output>"
    task = {"task_id": agent, "task_type": "local_agent", "status": "running", "output": text, "result": text}
    asked = {"task_id": agent, "block": rng.random() < 0.5, "timeout": 30_000}
    return Call(
        name="TaskOutput",
        input=asked,
        output=shown,
        result={"retrieval_status": "success", "task": task},
        seconds=9.0,
    )


def _image(rng: random.Random, project: Project, habits: Habits) -> Call:
    path = f"{project.root}/docs/{project.names.one(rng)}.png"
    data = image_text(rng, int(min(rng.lognormvariate(10.3, 0.8), 700_000) * habits.output))
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    result = {
        "type": "image",
        "file": {"base64": data, "type": "image/png", "originalSize": len(data) * 3 // 4},
    }
    return Call(name="Read", input={"file_path": path}, output=[block], result=result)


_Maker = Callable[[random.Random, Project, Habits], Call]
_TOOLS: tuple[tuple[float, _Maker], ...] = (
    (30, _bash),
    (25, _edit),
    (24, _read),
    (9, _grep),
    (3, _glob),
    (5, _todo),
    (1.5, _task),
    (2, _task_output),
    (2.4, _write),
    (0.08, _image),
)
_MAKERS = [maker for _, maker in _TOOLS]
_MAKER_WEIGHTS = [weight for weight, _ in _TOOLS]


def tool_call(rng: random.Random, project: Project, habits: Habits) -> Call:
    """One call of some tool, the everyday ones most often."""
    return rng.choices(_MAKERS, weights=_MAKER_WEIGHTS)[0](rng, project, habits)


def huge_edit(rng: random.Random, project: Project, size: int) -> Call:
    """An edit of a generated lock file, whose copy makes a record of about `size` bytes."""
    line = f'"{ADJECTIVES[0]}@npm:^{rng.randrange(9)}": {{ "integrity": "sha512-'
    lines = [
        f'{line}{base64_text(rng, 24)}", "resolved": "{name}" }},'
        for name in project.names.draw(rng, size // 130)
    ]
    path = f"{project.root}/package.lock"
    asked = {"replace_all": False, "file_path": path, "old_string": lines[0], "new_string": lines[1]}
    result = {
        "filePath": path,
        "oldString": lines[0],
        "newString": lines[1],
        "originalFile": "\n".join(lines),
        "structuredPatch": [],
        "userModified": False,
        "replaceAll": False,
    }
    return Call(name="Edit", input=asked, output=f"The file {path} has been updated.", result=result)
