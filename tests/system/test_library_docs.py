"""What the pages say of the library is what it does: their code runs, their tables name what is there."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import raddle
from raddle.model import errors
from tests.seal import CHECKOUT

HOW_TO = "docs/how-to/record-an-agent.md"
REFERENCE = "docs/reference/library.md"


def page(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[str]:
    """The Python of a page, block by block, each at the line it has there (for tracebacks)."""
    text = page(name)
    found = re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return ["\n" * text.count("\n", 0, match.start(1)) + match[1] for match in found]


def test_the_code_of_the_page_runs_from_its_top_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(HOW_TO):
        exec(compile(block, HOW_TO, "exec"), namespace)  # noqa: S102  it is our own page
    with raddle.open() as store:
        assert f"{store.list()[-1].id}\n" == capsys.readouterr().out
        assert {thread.agent_state.kind for thread in store} == {"waiting_for_user_input"}
        assert len(store.list()) == len(blocks(HOW_TO)) - 1


def test_the_code_of_the_reference_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with raddle.record() as session:
        session.user("hello")
    for block in blocks(REFERENCE):
        exec(compile(block, REFERENCE, "exec"), {"__name__": "page"})  # noqa: S102  it is our own page
    with raddle.open() as store:
        assert store.get(session.thread_id).tags == ["reviewed"]
    assert capsys.readouterr().out.startswith("on this machine")


def test_the_page_tells_of_every_method_of_a_session_and_of_a_store() -> None:
    text = page(REFERENCE)
    for kind in (raddle.Session, raddle.Store, raddle.StreamedReply, raddle.ToolRun):
        public = [name for name in vars(kind) if not name.startswith("_") and name != "cut"]
        assert [name for name in public if f"`{name}" not in text] == []


def test_the_page_tells_of_every_argument_with_its_default() -> None:
    text = page(REFERENCE)
    assert [name for name in inspect.signature(raddle.record).parameters if f"`{name}`" not in text] == []
    for call in re.findall(r"^\| `(\w+)\((.*)\)` \|", text, re.MULTILINE):
        method = getattr(raddle.Session, call[0], None) or getattr(raddle.Store, call[0], None)
        if method is None:
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        told = re.findall(r"(\w+)(?:=([^,]+?))?(?:,|$)", call[1].replace("*, ", ""))
        assert [(one.name, _default(one)) for one in parameters] == [
            (_whole(name), default) for name, default in told
        ], call


def _whole(name: str) -> str:
    return "thread_id" if name == "id" else name


def _default(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return ""
    return f'"{default}"' if isinstance(default, str) else repr(default)


def test_the_page_tells_of_every_error_that_is_exported() -> None:
    exported = [name for name in raddle.__all__ if hasattr(errors, name)]
    assert [
        name for name in exported if name != "RaddleError" and f"| `{name}` |" not in page(REFERENCE)
    ] == []


def test_types_and_names_of_the_package_are_the_same() -> None:
    stub = ast.parse((CHECKOUT / "src/raddle/__init__.pyi").read_text(encoding="utf-8"))
    typed = {
        name.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert {*typed, "__version__"} == set(raddle.__all__)
    for name, home in typed.items():
        assert name is not None
        assert getattr(raddle, name) is getattr(sys.modules[str(home)], name)


def test_a_name_that_the_package_has_not_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'recrod'"):
        raddle.recrod  # type: ignore[attr-defined]  # noqa: B018
    assert {"record", "open", "Thread"} <= set(dir(raddle))


def test_what_a_program_asks_for_is_all_that_is_loaded() -> None:
    code = (
        "import raddle, sys; raddle.Thread; print(*[n for n in sys.modules if n.startswith('raddle.apps')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    code = "import raddle, sys; raddle.record; print('asyncio' in sys.modules, 'sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
