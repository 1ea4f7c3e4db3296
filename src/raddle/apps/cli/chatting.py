"""A talk in a terminal: turns are typed, answers stream, and what is typed and not yet sent survives the process."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

import click

from raddle.actions.answering.asking import Request
from raddle.actions.answering.ports import Asks
from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.conversation import Telling, as_plain, tell_settled
from raddle.apps.cli.interrupts import stopped_in_order
from raddle.model.errors import InvalidInput, RaddleError
from raddle.wiring import Stores

_PROMPT = "you> "
_DRAFT_SECONDS = 1.0
_HELP = (
    ("/with NAME", "who answers from now on"),
    ("/model NAME", "which model, empty: the responder's own"),
    ("/policy NAME", "which policy, for a deliberation; empty: the responder's own"),
    ("/policies", "list them"),
    ("/attach FILE", "send a file with the next turn"),
    ("/again", "ask once more about the last turn"),
    ("/undo", "take the last turn back"),
    ("/quit", "end the talk (or Ctrl-D)"),
)


class Talk:
    """A talk in one thread, or in one that its first turn begins."""

    def __init__(
        self,
        stores: Stores,
        *,
        who: str = "",
        model: str = "",
        policy: str = "",
        budget: int | None = None,
        is_private: bool = False,
        json: bool = False,
    ) -> None:
        self.stores = stores
        self.thread_id = ""
        self._who = who
        self._model = model
        self._policy = policy
        self._budget = budget
        self._is_private = is_private
        self._json = json
        self._head: str | None = None
        self._attached: list[str] = []

    def go_on(self, thread_id: str, branch: str | None = None) -> None:
        """In a thread that is there, under the newest message of a branch."""
        from raddle.wiring.answering import settle  # noqa: PLC0415
        from raddle.wiring.resume_point import resume_point  # noqa: PLC0415

        self.thread_id = thread_id
        for settled in settle(self.stores, thread_id):
            tell_settled(settled)
        self._head = resume_point(self.stores, thread_id, leaf=branch).leaf

    def stand_at(self, thread_id: str, parent: str | None) -> None:
        """In a thread that is there, under a message (its id, the start or the end of that), `root`, or the tip."""
        from raddle.actions.threads import ROOT, find_message  # noqa: PLC0415

        thread = self.stores.threads.load(thread_id)
        self.thread_id = thread_id
        tip = thread.tree.tip()
        if parent is None:
            self._head = tip.id if tip is not None else None
        else:
            self._head = None if parent == ROOT else find_message(thread, parent).id

    def attach(self, paths: tuple[str, ...]) -> None:
        """Files for the next turn."""
        self._attached += paths

    def say(self, text: str, *, again: bool = False) -> None:
        """One turn and its answer. `again`: the turn that stands last is asked about."""
        from raddle.actions.importing.titles import title_from  # noqa: PLC0415
        from raddle.actions.threads import rename  # noqa: PLC0415
        from raddle.wiring.answering import ask_anew, ask_in, chosen_responder  # noqa: PLC0415
        from raddle.wiring.attaching import attachments_of  # noqa: PLC0415

        if not text.strip() and not again and not self._attached:
            raise InvalidInput("a turn needs some text", "say it as TEXT, or give it on stdin with -")
        thread = self.stores.threads.load(self.thread_id) if self.thread_id else None
        settings = chosen_responder(self.stores, thread, self._who).settings
        request = Request(
            parent_id=self._head,
            text="" if again else text,
            attachments=attachments_of(self.stores, self._attached),
            budget_tokens=self._budget,
            model=self._model,
            policy=self._policy or (thread.plain("active_policy") or "" if thread is not None else ""),
        )
        if thread is not None and not thread.title and not len(thread.tree):
            rename(self.stores.threads, thread.id, text, title_of=title_from)
        telling = Telling(as_json=self._json, answer=self._ask_person if sys.stdin.isatty() else None)
        if thread is None:
            self.thread_id, told = ask_anew(self.stores, settings, request, is_private=self._is_private)
        else:
            told = ask_in(self.stores, thread, settings, request)
        self._attached.clear()
        with stopped_in_order("stopped: what had come of the answer is kept"):
            try:
                telling.tell_all(told)
            finally:
                self._move_to(telling)
        if self._json:
            output.json(as_plain(self.thread_id, telling.sent, telling.landed))
        elif thread is None and not sys.stdin.isatty():
            diagnostics.say(f"thread {self.thread_id}")

    def _move_to(self, telling: Telling) -> None:
        """Where the talk stands after a turn, however that ended."""
        sent, landed = telling.sent, telling.landed
        if landed is not None:
            self._head = landed.message_id
        elif sent is not None:
            tree = self.stores.threads.load(self.thread_id).tree
            below = tree.children(sent.message_id)
            if below:
                self._head = below[-1].id
            elif not tree.is_removed(sent.message_id):
                self._head = sent.message_id
        if self._head is not None and self.stores.active.get(self.thread_id):
            self.stores.active.set(self.thread_id, self._head)

    def _ask_person(self, asks: Asks) -> None:
        """A question of an agent's, put to whoever sits here."""
        from raddle.wiring.answering import job_responder, launched  # noqa: PLC0415

        said = click.prompt("your answer", default="", show_default=False, err=True)
        responder = job_responder(self.stores, launched(self.stores, asks.job_id))
        if said.strip() and responder is not None:
            responder.answer_call(asks.job_id, asks.call_id, said)

    def run(self) -> None:
        """Turn after turn, until the person has said all."""
        diagnostics.suggest("/help lists what can be typed; Ctrl-D ends the talk")
        while True:
            try:
                text = self._typed()
            except EOFError:
                diagnostics.say("")
                break
            except KeyboardInterrupt:
                diagnostics.say("")
                continue
            if not text.strip():
                continue
            if text.strip() in {"/quit", "/exit"}:
                break
            self._do(text)
        if self.thread_id:
            diagnostics.suggest(f"`raddle chat {self.thread_id}` goes on")

    def _do(self, text: str) -> None:
        """One turn or one command; what goes wrong is said, and the talk goes on."""
        try:
            if text.startswith("/") and not text.startswith("//"):
                self._command(text)
            else:
                self.say(text.removeprefix("/") if text.startswith("//") else text)
        except RaddleError as error:
            diagnostics.failed(error, as_json=False)
        except (KeyboardInterrupt, click.exceptions.Exit):
            return

    def _command(self, text: str) -> None:
        verb, _, rest = text.strip().partition(" ")
        rest = rest.strip()
        known: dict[str, Callable[[str], None]] = {
            "/help": self._help,
            "/with": self._choose,
            "/model": lambda name: setattr(self, "_model", name),
            "/policy": lambda name: setattr(self, "_policy", name),
            "/policies": self._policies,
            "/attach": lambda path: self.attach((path,)),
            "/again": lambda _: self.say("", again=True),
            "/undo": self._undo,
        }
        if verb not in known:
            raise InvalidInput(
                f"{verb} is no command here", "/help lists them; a turn that starts with / is typed //"
            )
        known[verb](rest)

    def _help(self, _: str) -> None:
        for verb, meaning in _HELP:
            output.line(f"{verb:16}{meaning}")

    def _choose(self, name: str) -> None:
        from raddle.wiring.answering import chosen_responder  # noqa: PLC0415

        self._who = chosen_responder(self.stores, None, name).settings.name
        diagnostics.say(f"{self._who} answers")

    def _policies(self, _: str) -> None:
        from raddle.wiring.answering import chosen_responder, job_responder  # noqa: PLC0415

        thread = self.stores.threads.load(self.thread_id) if self.thread_id else None
        found = job_responder(self.stores, chosen_responder(self.stores, thread, self._who).settings.name)
        for policy in found.policies() if found is not None else ():
            output.line(f"{policy.id}  {words.one_line(policy.name)}")

    def _undo(self, _: str) -> None:
        if not self.thread_id:
            raise InvalidInput("nothing was said yet", "say something first")
        with self.stores.threads.edit(self.thread_id) as editor:
            gone = editor.undo(1)
            tip = editor.thread.tree.tip()
        self._head = tip.id if tip is not None else None
        diagnostics.say(f"took back {words.count(len(gone), 'message')}")

    def _typed(self) -> str:
        """What the person types; what was typed and not sent before stands there already, and is kept as it grows."""
        with self._draft_kept():
            return input(_PROMPT)

    @contextlib.contextmanager
    def _draft_kept(self) -> Iterator[None]:
        """Keep the line that is typed as this device's draft, once a second at most."""
        try:
            import readline  # noqa: PLC0415  not every Python has it
        except ImportError:
            yield
            return
        before = self._draft() if self.thread_id else ""
        if before:
            readline.set_startup_hook(lambda: readline.insert_text(before))
        is_over = threading.Event()

        def watch() -> None:
            last = before
            while not is_over.wait(_DRAFT_SECONDS):
                typed = readline.get_line_buffer()
                if typed != last and not typed.startswith("/"):
                    self._keep_draft(typed)
                    last = typed

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            is_over.set()
            watcher.join()
            readline.set_startup_hook(None)

    def _draft(self) -> str:
        thread = self.stores.threads.load(self.thread_id)
        return thread.drafts.get(self.stores.author.device, {}).get(self._head or "root", "")

    def _keep_draft(self, text: str) -> None:
        from raddle.wiring.answering import begin_with_draft  # noqa: PLC0415

        # What cannot be kept now is tried again in a second; the turn itself says what is wrong.
        with contextlib.suppress(RaddleError):
            if not self.thread_id:
                self.thread_id = begin_with_draft(self.stores, text, is_private=self._is_private)
                return
            with self.stores.threads.edit(self.thread_id) as editor:
                editor.set_draft(self._head, text)
