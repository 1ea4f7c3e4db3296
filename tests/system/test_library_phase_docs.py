"""What the pages say of `raddle.PhaseAdapter` is what it does: their code runs, their tables name what is there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import raddle
from tests.command_line import done
from tests.memory_clones import Clone
from tests.seal import CHECKOUT

HOW_TO = "docs/how-to/write-a-phase-adapter.md"
REFERENCE = "docs/reference/library.md"


def page(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def test_the_code_of_the_page_runs_from_its_top_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = Clone(tmp_path / "store", None)
    clone.begin("build", "test", "present")
    monkeypatch.setenv("RADDLE_STORE", str(clone.root))
    namespace: dict[str, object] = {"__name__": "page"}
    for block in re.findall(r"^```python\n(.*?)^```", page(HOW_TO), re.MULTILINE | re.DOTALL):
        exec(compile(block, HOW_TO, "exec"), namespace)  # noqa: S102  it is our own page
    (run,) = done("run", "list", "--json").json
    assert run["phases"] == {"build": "done", "test": "done", "present": "pending"}
    done("present", "--format", "report", "--out", str(tmp_path / "talk"))
    assert "Three modules compile" in (tmp_path / "talk/report.md").read_text()


def test_the_page_tells_of_every_method_with_its_arguments() -> None:
    text = page(REFERENCE)
    public = [name for name in vars(raddle.PhaseAdapter) if not name.startswith("_") and name != "stop"]
    assert [name for name in public if f"`{name}" not in text] == []
    for name, told in re.findall(
        r"`(\w+)\(([^`]*)\)`", text.split("## `raddle.PhaseAdapter")[1].split("\n## ")[0]
    ):
        method = getattr(raddle.PhaseAdapter, name)
        known = [one.name for one in list(inspect.signature(method).parameters.values())[1:]]
        assert re.findall(r"(\w+)(?==|,|$)", re.sub(r"=[^,]+", "=", told.replace("**", ""))) == known, name


def test_the_page_tells_of_every_argument_of_a_phase() -> None:
    text = page(REFERENCE)
    assert [
        name for name in inspect.signature(raddle.PhaseAdapter).parameters if f"`{name}`" not in text
    ] == []


def test_the_page_tells_of_every_field_of_a_handoff() -> None:
    fields = set(raddle.Handoff.__struct_fields__) - {"schema_version", "unknown"}
    assert [name for name in fields if f"`{name}`" not in page(REFERENCE)] == []
