"""A talk in a terminal: turns are typed, answers stream, and what is typed and not yet sent survives the process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from raddle.actions.answering.asking import Request
from raddle.actions.answering.ports import Asks
from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.conversation import Telling, as_plain, say_taken_back, tell_settled, what_stands
from raddle.apps.cli.interrupts import stopped_in_order
from raddle.apps.cli.prompt import as_turn, as_typed, is_command, typed
from raddle.model.errors import InvalidInput, NotFound, Purged, RaddleError
from raddle.model.threads.edits import ROOT
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.actions.answering.settings import ResponderSettings
    from raddle.model.threads.message import Attachment
    from raddle.model.threads.thread import Thread

_PROMPT = "you> "
_REMINDED = 2
_SHORT = 80
_HELP = (
    ("/with NAME", "who answers from now on"),
    ("/model NAME", "which model, empty: the responder's own"),
    ("/policy NAME", "which policy, for a deliberation; empty: the responder's own"),
    ("/policies", "list them"),
    ("/attach FILE", "send a file with the next turn; alone: list what is attached"),
    ("/detach FILE", "do not; alone: none of them"),
    ("/again", "ask once more about the last turn; both answers stay"),
    ("/undo", "take your last turn here back"),
    ("/quit", "end the talk (or Ctrl-D)"),
    ("\\", "at the end of a line: the turn goes on on the next; a paste of several lines is one turn"),
    ("//…", "a turn that starts with /"),
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
        self._is_sent = False

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
        """Files for the next turn. Where one cannot be attached, none of them is."""
        from raddle.wiring.attaching import check_attachable  # noqa: PLC0415

        for path in paths:
            check_attachable(path)
        self._attached += paths

    def say(self, text: str) -> None:
        """One turn and its answer."""
        if not text.strip() and not self._attached:
            raise InvalidInput("a turn needs some text", "say it as TEXT, or give it on stdin with -")
        thread = self._thread()
        request = self._request(thread, self._head, text, self._attachments())
        if thread is not None and not thread.title and not len(thread.tree):
            self._name(thread, text)
        self._ask(thread, request)

    def ask_about_last(self, *, anew: bool = False) -> None:
        """The answer to the turn that stands last where the talk is; `anew`: though it has one."""
        from raddle.actions.answering.asking import turn_to_ask  # noqa: PLC0415

        thread = self._thread()
        if thread is None:
            raise InvalidInput("nothing was said yet", "say something first")
        self._ask(thread, self._request(thread, turn_to_ask(thread, self._head, anew=anew), ""))

    def _thread(self) -> Thread | None:
        return self.stores.threads.load(self.thread_id) if self.thread_id else None

    def _attachments(self) -> tuple[Attachment, ...]:
        """What is attached, kept. What cannot be any more is attached no longer, so that a talk can go on."""
        from raddle.wiring.attaching import attachments_of, check_attachable  # noqa: PLC0415

        for path in tuple(self._attached):
            try:
                check_attachable(path)
            except RaddleError:
                self._attached.remove(path)
                raise
        return attachments_of(self.stores, self._attached)

    def _name(self, thread: Thread, text: str) -> None:
        from raddle.actions.importing.titles import title_from  # noqa: PLC0415
        from raddle.actions.threads import rename  # noqa: PLC0415

        rename(self.stores.threads, thread.id, text, title_of=title_from)

    def _request(
        self,
        thread: Thread | None,
        parent_id: str | None,
        text: str,
        attachments: tuple[Attachment, ...] = (),
    ) -> Request:
        return Request(
            parent_id=parent_id,
            text=text,
            attachments=attachments,
            budget_tokens=self._budget,
            model=self._model,
            policy=self._policy or (thread.plain("active_policy") or "" if thread is not None else ""),
        )

    def _ask(self, thread: Thread | None, request: Request) -> None:
        from raddle.wiring.answering import ask_anew, ask_in  # noqa: PLC0415

        settings = self._responder(thread)
        self._tell_unsent(request, settings)
        telling = Telling(as_json=self._json, answer=self._ask_person if sys.stdin.isatty() else None)
        if thread is None:
            self.thread_id, told = ask_anew(self.stores, settings, request, is_private=self._is_private)
        else:
            told = ask_in(self.stores, thread, settings, request)
        known = set() if thread is None else {each.id for each in thread.tree.children(request.parent_id)}
        try:
            with stopped_in_order("stopped"):
                try:
                    telling.tell_all(told)
                finally:
                    self._move_to(telling)
        except click.exceptions.Exit:
            diagnostics.say(what_stands(self.thread_id, self._there(), telling, known))
            if self._json:
                output.json(as_plain(self.thread_id, telling))
            raise
        except RaddleError as error:
            say_taken_back(error, self._there(), telling)
            raise
        finally:
            if self._is_sent and request.attachments:
                self._attached.clear()
            if telling.sent is None:
                self.thread_id = thread.id if thread is not None else ""
            elif thread is None and not self._json and not sys.stdin.isatty():
                diagnostics.say(f"thread {self.thread_id}")
        if self._json:
            output.json(as_plain(self.thread_id, telling))

    def _responder(self, thread: Thread | None) -> ResponderSettings:
        """Who answers; InvalidInput where they would not heed what was chosen for them."""
        from raddle.wiring.answering import chosen_responder  # noqa: PLC0415

        settings = chosen_responder(self.stores, thread, self._who).settings
        is_council = settings.kind == "orchestrator"
        if self._policy and not is_council:
            raise InvalidInput(
                f"{settings.name} has no policies: it is no deliberation server", "leave the policy out"
            )
        if self._model and is_council:
            raise InvalidInput(
                f"{settings.name} chooses its models itself: it is a deliberation server",
                "leave the model out; `raddle policies` lists what can be chosen",
            )
        return settings

    def _tell_unsent(self, request: Request, settings: ResponderSettings) -> None:
        if request.attachments:
            from raddle.wiring.attaching import not_sent  # noqa: PLC0415

            for attachment, why in not_sent(self.stores, request.attachments, settings):
                diagnostics.note(f"{words.one_line(attachment.name)} is kept here, and not sent: {why}")

    def _move_to(self, telling: Telling) -> None:
        """Where the talk stands after a turn, however that ended."""
        if telling.sent is None:
            return
        turn = telling.sent.message_id
        if telling.landed is not None:
            self._head = telling.landed.message_id
        else:
            thread = self._there()
            if thread is None or thread.tree.is_removed(turn):
                return
            self._head = next((each.id for each in reversed(thread.tree.children(turn))), turn)
        self._is_sent = True
        if self.stores.active.get(self.thread_id):
            self.stores.active.set(self.thread_id, self._head)

    def _there(self) -> Thread | None:
        """The thread; None where it is gone."""
        with contextlib.suppress(NotFound, Purged):
            return self._thread()
        return None

    def _ask_person(self, asks: Asks) -> None:
        """A question of an agent's, put to whoever sits here."""
        from raddle.wiring.answering import job_responder, launched  # noqa: PLC0415

        said = click.prompt("your answer", default="", show_default=False, err=True)
        responder = job_responder(self.stores, launched(self.stores, asks.job_id))
        if said.strip() and responder is not None:
            responder.answer_call(asks.job_id, asks.call_id, said)

    def show_last(self) -> None:
        """Remind the person of where the talk stands: its title, and what was said last."""
        thread = self._thread()
        if thread is None:
            return
        diagnostics.suggest(f"{thread.id}: {words.one_line(thread.title) or '(no title)'}")
        for message in thread.tree.path_to_root(self._head)[-_REMINDED:]:
            said = words.one_line(message.content)
            diagnostics.suggest(words.cut(f"{message.role}: {said}", output.columns() or _SHORT))

    def run(self) -> None:
        """Turn after turn, until the person has said all."""
        from raddle.wiring.resume_point import sitting_here  # noqa: PLC0415

        wants_private = None if self.thread_id else self._is_private
        with sitting_here(self.stores, wants_private=wants_private) as typed_only:
            if typed_only:
                self.thread_id = typed_only
                private = ", a private thread" if self.stores.threads.load(typed_only).is_private else ""
                diagnostics.say(f"what you typed here and did not send is in {typed_only}{private}")
            diagnostics.suggest("/help lists what can be typed; Ctrl-D ends the talk")
            self._take_turns()
        if self.thread_id:
            diagnostics.suggest(f"`raddle chat {self.thread_id}` goes on")

    def _take_turns(self) -> None:
        while True:
            try:
                text = typed(_PROMPT, as_typed(self._draft()), self._keep_typed)
            except EOFError:
                diagnostics.say("")
                return
            except KeyboardInterrupt:
                diagnostics.say("")
                if self.thread_id:
                    self._keep_draft("")
                continue
            if text.strip() in {"/quit", "/exit"}:
                return
            if text.strip():
                self._do(text)

    def _do(self, text: str) -> None:
        """One turn or one command; what goes wrong is said, and the talk goes on. No turn is lost."""
        is_turn = not is_command(text)
        self._is_sent = False
        try:
            if is_turn:
                self.say(as_turn(text))
            else:
                self._command(text)
        except RaddleError as error:
            diagnostics.failed(error, as_json=False)
        except (KeyboardInterrupt, click.exceptions.Exit):
            pass
        if is_turn and not self._is_sent:
            self._keep_draft(as_turn(text))

    def _command(self, text: str) -> None:
        verb, _, rest = text.strip().partition(" ")
        rest = rest.strip()
        known: dict[str, Callable[[str], None]] = {
            "/help": self._help,
            "/with": self._choose,
            "/model": lambda name: setattr(self, "_model", name),
            "/policy": lambda name: setattr(self, "_policy", name),
            "/policies": self._policies,
            "/attach": self._attach,
            "/detach": self._detach,
            "/again": lambda _: self.ask_about_last(anew=True),
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

        name = chosen_responder(self.stores, self._thread(), self._who).settings.name
        found = job_responder(self.stores, name)
        if found is None:
            raise InvalidInput(f"{name} is no deliberation server", "/with NAME chooses another")
        for policy in found.policies():
            output.line(f"{policy.id}  {words.one_line(policy.name)}")

    def _attach(self, path: str) -> None:
        if path:
            self.attach((path,))
        for each in self._attached:
            diagnostics.say(f"goes with the next turn: {words.one_line(each)}")
        if not self._attached:
            diagnostics.say("nothing is attached")

    def _detach(self, path: str) -> None:
        if path and path not in self._attached:
            raise InvalidInput(f"{path} is not attached", "/attach alone lists what is")
        self._attached = [each for each in self._attached if path and each != path]
        self._attach("")

    def _undo(self, _: str) -> None:
        from raddle.actions.answering.taking_back import take_back_at  # noqa: PLC0415

        if not self.thread_id:
            raise InvalidInput("nothing was said yet", "say something first")
        gone, self._head = take_back_at(self.stores.threads, self.thread_id, self._head)
        if self._head is not None and self.stores.active.get(self.thread_id):
            self.stores.active.set(self.thread_id, self._head)
        diagnostics.say(f"took back {words.count(len(gone), 'message')}" if gone else "nothing to take back")

    def _draft(self) -> str:
        thread = self._there()
        if thread is None:
            return ""
        return thread.drafts.get(self.stores.author.device, {}).get(self._head or ROOT, "")

    def _keep_typed(self, text: str) -> None:
        if not is_command(text):
            self._keep_draft(as_turn(text))

    def _keep_draft(self, text: str) -> None:
        from raddle.wiring.answering import begin_with_draft  # noqa: PLC0415

        # What cannot be kept now is tried again in a second; the turn itself says what is wrong.
        with contextlib.suppress(RaddleError):
            if not self.thread_id:
                self.thread_id = begin_with_draft(self.stores, text, is_private=self._is_private)
                return
            with self.stores.threads.edit(self.thread_id) as editor:
                editor.set_draft(self._head, text)
