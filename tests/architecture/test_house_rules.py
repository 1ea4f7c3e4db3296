"""The rules of the house that no linter knows; CONTRIBUTING.md says them in words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from tests.architecture.sources import modules, text_files

LINES = 400
TEST_LINES = 600
"""A test file is longer than what it tests, and splitting it by topic hides what is missing."""

LONG_FILES: dict[str, str] = {
    "src/raddle/model/threads/edits.py": "one verb a method; what they share, the stamping, must not exist twice",
}
"""Path -> why this file is better whole, though it is longer than that."""

NAMES_THAT_SAY_NOTHING = frozenset(
    {"abstract", "common", "controller", "dao", "dto", "helper", "helpers", "impl", "manager", "managers"}
    | {"misc", "processor", "service", "services", "stuff", "util", "utils"}
)
FOLDERS_THAT_SAY_NOTHING = NAMES_THAT_SAY_NOTHING | {"base", "core", "lib"}

REQUIRED_REASONS = frozenset({"skip", "skipif", "xfail"})


def test_every_module_says_what_it_owns() -> None:
    assert [path for path, tree in modules().items() if not ast.get_docstring(tree)] == []


def test_a_long_file_has_a_reason() -> None:
    assert long_files() - LONG_FILES.keys() == set(), "split it, or give the reason in LONG_FILES"


def test_a_reason_for_a_long_file_is_struck_when_the_file_is_short() -> None:
    assert LONG_FILES.keys() - long_files() == set()
    assert [path for path, reason in LONG_FILES.items() if not reason.strip()] == []


def long_files() -> set[str]:
    """Paths of the Python files over their limit."""
    limits = {path: TEST_LINES if path.startswith("tests/") else LINES for path in modules()}
    return {path for path, limit in limits.items() if text_files()[path].count("\n") > limit}


def test_no_file_folder_or_class_is_named_for_nothing() -> None:
    assert list(_empty_names()) == []


def _empty_names() -> Iterator[str]:
    for path, tree in modules().items():
        *folders, file = PurePath(path).with_suffix("").parts
        if _words(file) & NAMES_THAT_SAY_NOTHING or any(
            _words(f) & FOLDERS_THAT_SAY_NOTHING for f in folders
        ):
            yield path
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and _words(node.name) & NAMES_THAT_SAY_NOTHING:
                yield f"{path}: class {node.name}"


def _words(name: str) -> set[str]:
    """`ThreadManager` and `thread_manager` as {thread, manager}."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_what_is_private_to_a_module_stays_there() -> None:
    borrowed = [
        f"{path}: {alias.name} from {node.module}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"raddle", "tests"}
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert borrowed == []


def test_a_test_that_may_not_run_says_why() -> None:
    silent = [f"{path}:{node.lineno}" for path, node in _marks() if not _gives_reason(node)]
    assert silent == []


def _marks() -> Iterator[tuple[str, ast.expr]]:
    """Every use of pytest's skip, skipif and xfail, as a call or as a bare mark."""
    for path, tree in modules().items():
        called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_mark(node.func):
                yield path, node
            if isinstance(node, ast.Attribute) and node not in called and _is_mark(node):
                yield path, node


def _is_mark(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in REQUIRED_REASONS
        and ast.unparse(node.value) in {"pytest", "pytest.mark"}
    )


def _gives_reason(node: ast.expr) -> bool:
    """A text as the only argument, or `reason=`."""
    if not isinstance(node, ast.Call):
        return False
    worded = ast.unparse(node.func) == "pytest.skip" and bool(node.args)
    return worded or any(word.arg == "reason" for word in node.keywords)


def test_a_test_tests_something() -> None:
    hollow = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in modules().items()
        if path.startswith("tests/")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if all(_says_nothing(statement) for statement in node.body)
    ]
    assert hollow == []


def _says_nothing(statement: ast.stmt) -> bool:
    """A docstring, `pass`, `...`, or an assertion of a constant."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant)
    return isinstance(statement, ast.Pass)


def test_no_banner_cuts_a_file_in_parts() -> None:
    """A file that needs headings wants to be two files."""
    banner = re.compile(r"^\s*#.*[-=#*~─═]{4,}\s*$", re.MULTILINE)
    assert [path for path, text in text_files().items() if path.endswith(".py") and banner.search(text)] == []
