"""A sync of a memory that dies at any of its steps: the next one finishes it, and nothing is lost or twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from raddle.actions.memory.syncing import SyncReport, sync
from tests.memory_clones import Clone, paths, settle

pytest_plugins = ["tests.memory_fixtures"]

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
ENTRY = f"runs/{RUN}/phases/build/entries/0001-{RUN}.json"
PLAN = "memory/team/plan"


class Killed(Exception):
    """The process is gone."""


class Dying:
    """Stands before the three things that a sync works with, and dies at the `at`th thing that it does to them."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.left = at
        self.after = after

    def over(self, real: Any) -> Any:
        dying = self

        class Front:
            def __getattr__(self, name: str) -> Any:
                done = getattr(real, name)

                def call(*arguments: Any, **named: Any) -> Any:
                    dying.left -= 1
                    if dying.left == 0 and not dying.after:
                        raise Killed
                    answer = done(*arguments, **named)
                    if dying.left == 0:
                        raise Killed
                    return answer

                return call

        return Front()


def _both_move(ada: Clone, bob: Clone) -> None:
    ada.write(PLAN, "base\n\n\nend\n")
    ada.write("memory/team/gone", "x\n")
    settle([ada, bob])
    bob.write(PLAN, "from bob\n\n\nend\n")
    bob.write("memory/team/clash", "bob\n")
    (bob.root / "memory/team/gone").unlink()
    bob.sync()
    ada.write(PLAN, "base\n\n\nfrom ada\n")
    ada.write("memory/team/clash", "ada\n")
    ada.files.add({ENTRY: b"{}"})


def _points() -> Iterator[Any]:
    for at in range(1, 33):
        for after in (False, True):
            marks = () if at in (9, 22, 25, 27) and after else (pytest.mark.soak,)
            yield pytest.param(at, after, marks=marks)


@pytest.mark.parametrize(("at", "after"), list(_points()))
def test_a_sync_that_dies_anywhere_is_finished_by_the_next(
    ada: Clone, bob: Clone, at: int, after: bool
) -> None:
    _both_move(ada, bob)
    dying = Dying(at, after=after)
    repository = dying.over(ada.repository)
    try:
        report: SyncReport | None = sync(
            dying.over(ada.files), repository, repository, ada.writer, pause=lambda _: None
        )
    except Killed:
        report = None
    assert report is None or dying.left > 0
    ada.open("ada")
    settle([ada, bob])
    assert ada.scan() == bob.scan()
    assert ada.text(PLAN) == "from bob\n\n\nfrom ada\n"
    assert ENTRY in paths(bob)
    assert "memory/team/gone" not in paths(ada)
    clashes = [path for path in paths(ada) if path.startswith("memory/team/clash")]
    assert sorted(ada.text(path) for path in clashes) == ["ada\n", "bob\n"]
