"""raddle knows phases, entries, artifacts and handoffs: the words of a field of work are the examples' alone."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import modules

DOMAIN_WORDS = frozenset(
    {
        "accuracy",
        "backprop",
        "checkpoint",
        "checkpoints",
        "dataset",
        "datasets",
        "epoch",
        "epochs",
        "gradient",
    }
    | {"gradients", "hyperparameter", "hyperparameters", "inference", "logits", "loss", "losses", "minibatch"}
    | {"optimizer", "overfitting", "perplexity", "trained", "trainer", "training"}
    | {"canary", "coverage", "flaky", "linter", "lints", "pytest", "testsuite", "unittest"}
)
"""Of machine learning, and of building and testing programs. `train`, `build` and `test` may be names of phases."""

EXCUSED: dict[tuple[str, str], str] = {
    ("epoch", "src/raddle/model/clock.py"): "when Unix time begins",
    ("epoch", "src/raddle/model/protocol/"): "of a hub: which database its versions count in",
    ("epoch", "src/raddle/actions/sync/"): "the same",
    ("epoch", "src/raddle/adapters/"): "the same, and when Unix time begins",
    ("epoch", "src/raddle/server/"): "the same",
    ("epoch", "src/raddle/model/threads/"): "the same, and when Unix time begins",
    ("epoch", "src/raddle/wiring/daemon_sync.py"): "of a hub",
    ("epoch", "src/raddle/apps/cli/commands/serving.py"): "of a hub: an administrator starts another one",
    ("losses", "src/raddle/adapters/agent_homes/"): "what is lost of a damaged store",
    ("checkpoint", "src/raddle/adapters/local_store/"): "SQLite's, of its write-ahead log",
    ("checkpoint", "src/raddle/server/embedded_pg/"): "PostgreSQL's",
    ("checkpoints", "src/raddle/server/embedded_pg/"): "the same",
    (
        "checkpoint",
        "src/raddle/actions/memory/artifacts.py",
    ): "one of three kinds that a hint offers, any word will do",
    ("checkpoint", "src/raddle/apps/cli/commands/memory_artifacts.py"): "the same, in a help text",
    ("checkpoints", "src/raddle/apps/cli/commands/memory_artifacts.py"): "the same",
    ("flaky", "src/raddle/apps/cli/demo_stories"): "what the talks of the demo are about",
    ("pytest", "src/raddle/apps/cli/demo_stories"): "the same",
    ("dataset", "src/raddle/apps/cli/demo_stories"): "an attribute of a page, in a patch that is talked of",
}
"""(word, start of the paths in which it means another thing) -> which."""


def _said(tree: ast.Module) -> Iterator[str]:
    """Every name in a module, and every text that is no docstring."""
    docstrings = {
        id(statement.value)
        for node in ast.walk(tree)
        for statement in _statements(node)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        for field in ("id", "attr", "name", "arg", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name


def _statements(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else []


def _words(text: str) -> set[str]:
    """`coverage_pct`, `CoveragePct` and `the coverage` all hold `coverage`."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)}


@functools.cache
def _found() -> tuple[tuple[str, str], ...]:
    return tuple(_looked_for())


def _looked_for() -> Iterator[tuple[str, str]]:
    for path, tree in modules().items():
        if path.startswith("src/raddle/") and not path.startswith("src/raddle/examples/"):
            for word in {word for text in _said(tree) for word in _words(text)} & DOMAIN_WORDS:
                yield word, path


def test_no_module_but_the_examples_speaks_of_a_field_of_work() -> None:
    strangers = [
        f"{path}: {word}"
        for word, path in _found()
        if not any(word == excused and path.startswith(start) for excused, start in EXCUSED)
    ]
    assert strangers == []


def test_an_excuse_is_struck_when_nothing_needs_it() -> None:
    found = _found()
    needed = {
        (word, start)
        for word, start in EXCUSED
        for other, path in found
        if word == other and path.startswith(start)
    }
    assert EXCUSED.keys() - needed == set()


def test_the_rooms_of_phases_and_presentations_need_no_excuse() -> None:
    rooms = ("src/raddle/actions/phases/", "src/raddle/actions/presenting/", "src/raddle/apps/library/")
    assert [(word, path) for word, path in _found() if path.startswith(rooms)] == []


def test_the_examples_do_speak_of_theirs() -> None:
    texts = [tree for path, tree in modules().items() if path.startswith("src/raddle/examples/")]
    said = {word for tree in texts for text in _said(tree) for word in _words(text)}
    assert {"epoch", "loss", "accuracy", "checkpoint", "coverage"} <= said


@pytest.mark.parametrize(
    "code",
    [
        "epoch = 1",
        "def coverage_pct(): ...",
        "x.trainLoss",
        "f(accuracy=1)",
        "say('the loss')",
        "f'{x} loss'",
    ],
)
def test_such_a_word_is_found_wherever_it_stands(code: str) -> None:
    assert {word for text in _said(ast.parse(code)) for word in _words(text)} & DOMAIN_WORDS


@pytest.mark.parametrize(
    "code", ['"""The loss."""', "def f():\n    'the accuracy'", "# epoch", "lossless = glossary"]
)
def test_it_may_stand_in_a_docstring_and_a_comment(code: str) -> None:
    assert not {word for text in _said(ast.parse(code)) for word in _words(text)} & DOMAIN_WORDS
