"""`python -m raddle.examples.app_test`: the package that `app_build` made is tested, as the phase `test` of the run.

It reads the handoff of `build`, and of its artifacts the one that is named there.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import sys
import types
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import raddle
from raddle.examples.as_program import run

_CASES: dict[str, Callable[[Any], bool]] = {
    "counts a word twice": lambda modules: modules["words"].count("a b A") == {"a": 2, "b": 1},
    "counts nothing": lambda modules: modules["words"].count("") == {},
    "reports in order": lambda modules: modules["report"].report("b a") == "a 1\nb 1",
}


def run_tests() -> str:
    """The id of the run."""
    with raddle.PhaseAdapter("test") as phase:
        upstream = phase.upstream("build")
        archive = zipfile.ZipFile(io.BytesIO(phase.artifact_bytes(upstream.best_artifacts[0])))
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
        ran: set[tuple[str, int]] = set()
        failed = []
        with _loaded(texts) as modules:
            for name, case in _CASES.items():
                is_passed = _traced(functools.partial(case, modules), set(texts), ran)
                phase.metric(case=name, passed=is_passed)
                if not is_passed:
                    failed.append(name)
                    phase.error(f"{name}: failed")
        wanted = {(name, line) for name, text in texts.items() for line in _lines(text)}
        coverage_pct = 100 * len(ran & wanted) / len(wanted)
        left = [f"{name}:{line}" for name, line in sorted(wanted - ran)]
        phase.summary(f"{len(_CASES) - len(failed)} of {len(_CASES)} tests pass.")
        phase.publish_handoff(
            f"{len(_CASES) - len(failed)} of {len(_CASES)} tests pass, {coverage_pct:.0f} % of the lines ran",
            results={
                "passed": len(_CASES) - len(failed),
                "failed": len(failed),
                "coverage_pct": coverage_pct,
            },
            best_artifacts=upstream.best_artifacts,
            open_questions=[f"Never ran: {', '.join(left)}"] if left else [],
        )
        return phase.run_id


@contextlib.contextmanager
def _loaded(texts: dict[str, str]) -> Iterator[dict[str, types.ModuleType]]:
    """The modules of a package, importable from each other for the length of the block."""
    before = dict(sys.modules)
    modules = {name.removesuffix(".py"): types.ModuleType(name.removesuffix(".py")) for name in texts}
    try:
        sys.modules.update(modules)
        for name, text in texts.items():
            # What the package is, `app_build` has published.
            exec(compile(text, name, "exec"), modules[name.removesuffix(".py")].__dict__)  # noqa: S102
        yield modules
    finally:
        for name in modules:
            del sys.modules[name]
        sys.modules.update({name: before[name] for name in modules if name in before})


def _traced(case: Callable[[], bool], files: set[str], ran: set[tuple[str, int]]) -> bool:
    """Does a case pass? Every line of `files` that runs meanwhile is noted in `ran`."""

    def trace(frame: types.FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            ran.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return case()
    finally:
        sys.settrace(before)


def _lines(text: str) -> set[int]:
    """The lines of the bodies of functions, docstrings left out."""
    return {
        statement.lineno
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
        for statement in ast.walk(function)
        if isinstance(statement, ast.stmt) and statement is not function
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    }


if __name__ == "__main__":
    run(run_tests)
