"""A session of hundreds of megabytes is read in bounded memory, at first and when it grows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders_claude_code import ClaudeSession
from tests.builders_import import Machine, add
from tests.seal import CHECKOUT

MEASURED = """
import resource, sys
from raddle.apps.cli.main import main
code = main(["import", "--json", *sys.argv[1:]])
who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
print(*(resource.getrusage(one).ru_maxrss >> 10 for one in who), file=sys.stderr)
sys.exit(code)
"""


CORPORA = {
    "codex": "from bench.corpus.codex import Plan, write_corpus as w;"
    "w('{home}/.codex', Plan(megabytes={size}, sessions=1))",
    "gemini-cli": "from bench.corpus.gemini_cli import Plan, write_corpus as w;"
    "w('{home}/.gemini', Plan(megabytes={size}, sessions=1))",
    "opencode": "from bench.corpus.opencode import Plan, write_corpus as w;"
    "w('{home}/.local/share/opencode/opencode.db', Plan(megabytes={size}, sessions=1))",
    "chatgpt": "from bench.corpus.chatgpt import write_corpus as w; w('{home}', {size})",
}
"""Agent -> a program that writes one large session (of ChatGPT: an export) where the agent keeps it."""


def bring_in(machine: Machine, *what: str) -> tuple[dict[str, int], list[int]]:
    """What an import in a process of its own did; the most memory of that process and of its workers, in MiB."""
    found = subprocess.run(
        [sys.executable, "-c", MEASURED, *what],
        env=machine.environment,
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(found.stdout), [int(word) for word in found.stderr.split()[-2:]]


@pytest.mark.soak
def test_a_large_session_fits_in_250_megabytes_a_process(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    # In a process of its own: what this one has ever held would count as what its children hold.
    write_corpus = ("bench.corpus", str(machine.home / ".claude"), "--megabytes", "300", "--threads", "1")
    subprocess.run([sys.executable, "-m", *write_corpus], cwd=CHECKOUT, check=True)
    report, memory = bring_in(machine)
    assert report["threads"] == 1
    assert report["messages"] > 10_000
    assert max(memory) < 250, memory
    (path,) = machine.claude.rglob("*.jsonl")
    more = ClaudeSession(path.stem)
    more.user("a word that stands nowhere else: zyzzyva")
    add(path, more.data)
    report, memory = bring_in(machine)
    assert report["messages"] == 1
    assert max(memory) < 250, memory
    assert len(machine.finds("zyzzyva")) == 1


@pytest.mark.soak
@pytest.mark.parametrize("agent", CORPORA)
def test_a_large_session_of_any_agent_fits_in_250_megabytes_a_process(tmp_path: Path, agent: str) -> None:
    machine = Machine(tmp_path)
    (machine.home / ".local/share/opencode").mkdir(parents=True)
    program = CORPORA[agent].format(home=machine.home, size=300)
    subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, check=True)
    what = [str(machine.home / "conversations.json")] if agent == "chatgpt" else []
    report, memory = bring_in(machine, *what)
    assert report["messages"] > 5_000
    assert max(memory) < 250, memory
    report, memory = bring_in(machine, *what)
    assert report["messages"] == 0
    assert max(memory) < 250, memory
