"""Who answers by a script: what a test wants to come, in the order it wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from raddle.actions.answering.ports import Asks, Done, Event, Launched, Policy, Question
from raddle.model.errors import NotFound

Script = list[Event | BaseException | Callable[[], object]]


class ScriptedResponder:
    """Gives the events of `script`, raises what is an exception, calls what can be called. `asked`: the questions."""

    kind = "command"
    lives_on = False

    def __init__(self, *script: Event | BaseException | Callable[[], object], name: str = "local") -> None:
        self.name = name
        self.script: Script = list(script)
        self.asked: list[Question] = []
        self.is_closed = False

    def ask(self, question: Question) -> Iterator[Event]:
        self.asked.append(question)
        try:
            yield from self._play()
        finally:
            self.is_closed = True

    def _play(self) -> Iterator[Event]:
        for one in self.script:
            if isinstance(one, BaseException):
                raise one
            if callable(one):
                one()
            else:
                yield one


class ScriptedCouncil(ScriptedResponder):
    """The same for one whose work goes on by itself. `jobs`: how each stands, as its server says."""

    kind = "orchestrator"
    lives_on = True

    def __init__(self, *script: Event | BaseException | Callable[[], object], name: str = "council") -> None:
        super().__init__(*script, name=name)
        self.jobs: dict[str, Done | Exception] = {}
        self.waiting: list[Asks] = []
        self.told: list[tuple[str, ...]] = []

    def follow(self, job_id: str) -> Iterator[Event]:
        yield Launched(job_id=job_id)
        yield from self._play()

    def result(self, job_id: str) -> Done:
        found = self.jobs.get(job_id, Done(state="unknown"))
        if isinstance(found, Exception):
            raise found
        return found

    def questions(self, job_id: str) -> list[Asks]:
        return [one for one in self.waiting if one.job_id == job_id]

    def answer_call(self, job_id: str, call_id: str, text: str) -> None:
        for one in self.waiting:
            if (one.job_id, one.call_id) == (job_id, call_id):
                self.waiting.remove(one)
                self.told.append((job_id, call_id, text))
                return
        raise NotFound("question", call_id)

    def tell(self, job_id: str, text: str) -> None:
        self.told.append((job_id, text))

    def cancel(self, job_id: str) -> None:
        self.jobs[job_id] = Done(state="failed", why="cancelled")

    def policies(self) -> list[Policy]:
        return [Policy(id="p1", name="Plain")]
