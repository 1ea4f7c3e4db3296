"""Who answers on this machine, joined to the threads that they answer in.

Owns the choice of a responder for a thread, where its key comes from, and what becomes of launches that were left.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle import __version__
from raddle.actions.answering.asking import RESPONDER, Desk, Request, Told, ask
from raddle.actions.answering.ports import JobResponder, Responder
from raddle.actions.answering.reconciling import Settled, reconcile
from raddle.actions.answering.settings import ResponderSettings
from raddle.actions.importing.titles import title_from
from raddle.actions.recording.recorder import GitNews, Opening, Recorder
from raddle.actions.recording.sharing import told_in
from raddle.adapters.credentials import ApiKeys
from raddle.adapters.local_store.launch_book import LaunchBook
from raddle.adapters.responders import responder_of
from raddle.model.clock import format_time
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.attaching import attachment_bytes
from raddle.wiring.bodies import keep_body

_HOW = (
    'say who in config.toml, for example: [responders.local] kind = "openai", url = "http://localhost:11434/v1",'
    ' model = "…"; docs/how-to/talk-to-a-model.md has more'
)


class Chosen(Struct, frozen=True, kw_only=True):
    """Who answers in a thread, and why it is them: told, thread, config or only."""

    settings: ResponderSettings
    why: str


def chosen_responder(stores: Stores, thread: Thread | None, name: str = "") -> Chosen:
    """The one of that name, else the thread's, else the one that settings name, else the only one there is."""
    known = stores.config.responders
    theirs = thread.shows(RESPONDER) if thread is not None else None
    orchestrator = thread.plain("orchestrator") if thread is not None else None
    if name:
        return Chosen(settings=_named(known, name), why="told")
    for candidate in (theirs, orchestrator):
        if isinstance(candidate, str) and candidate in known:
            return Chosen(settings=known[candidate], why="thread")
    if stores.config.answering_responder:
        return Chosen(settings=_named(known, stores.config.answering_responder), why="config")
    if len(known) == 1:
        return Chosen(settings=next(iter(known.values())), why="only")
    if known:
        raise InvalidInput(
            f"several could answer: {', '.join(sorted(known))}",
            "name one with --with, or set it in config.toml: [answering] responder = …",
        )
    raise InvalidInput("nobody is set up to answer", _HOW)


def _named(known: dict[str, ResponderSettings], name: str) -> ResponderSettings:
    if name not in known:
        there = f"config.toml has {', '.join(sorted(known))}" if known else _HOW
        raise NotFound("responder", name, there)
    return known[name]


def key_of(stores: Stores, settings: ResponderSettings) -> str | None:
    """The key that it is asked with, from its variable or the keyring; None where there is none."""
    if not settings.takes_key:
        return None
    kept = stores.config.keys.get(settings.key_env)
    return kept.reveal() if kept is not None else ApiKeys().find(settings.name)


def key_source(stores: Stores, settings: ResponderSettings) -> str:
    """Where that key comes from: the variable's name, `keyring`, or empty."""
    if not settings.takes_key:
        return ""
    if settings.key_env in stores.config.keys:
        return settings.key_env
    return "keyring" if ApiKeys().find(settings.name) else ""


def open_responder(stores: Stores, settings: ResponderSettings, *, folder: Path | None = None) -> Responder:
    """Somebody to ask. `folder`: where a program works. InvalidInput where nothing may be asked of the network."""
    if stores.config.is_offline and settings.kind != "command":
        raise InvalidInput("raddle is offline (RADDLE_OFFLINE)", "unset it to ask somebody")
    return responder_of(
        settings,
        key=functools.partial(key_of, stores, settings),
        pause=time.sleep,
        random=random.random,
        folder=folder,
    )


def job_responder(stores: Stores, name: str) -> JobResponder | None:
    """The one of that name whose work goes on by itself; None where there is none such."""
    settings = stores.config.responders.get(name)
    if settings is None or settings.kind != "orchestrator" or stores.config.is_offline:
        return None
    found = open_responder(stores, settings)
    assert found.lives_on
    return found  # type: ignore[return-value]  # what lives on keeps jobs (actions/answering/ports.py)


def desk_of(stores: Stores, *, is_private: bool = True) -> Desk:
    """What asking works with on this machine. `is_private`: may nothing be fetched of what was attached?"""
    return Desk(
        threads=lambda: stores.threads,
        book=LaunchBook(stores.paths.launches_dir),
        new_id=stores.author.new_id,
        keep_body=functools.partial(keep_body, stores),
        read=functools.partial(attachment_bytes, stores, is_private=is_private),
    )


def ask_in(
    stores: Stores, thread: Thread, settings: ResponderSettings, request: Request
) -> Generator[Told, None, None]:
    """Send a turn of a thread that is there; as `ask`."""
    opening = Opening(
        is_new=False,
        workspace_root=thread.plain("workspace_root"),
        cwd=thread.plain("cwd"),
        client_version=thread.plain("client_version") or "",
        head=request.parent_id,
        state=thread.agent_state,
        told=told_in(thread),
    )
    return _ask(stores, thread.id, opening, settings, request, is_private=thread.is_private)


def ask_anew(
    stores: Stores,
    settings: ResponderSettings,
    request: Request,
    *,
    is_private: bool = False,
    title: str = "",
) -> tuple[str, Generator[Told, None, None]]:
    """The id of a new thread where the person stands, and the sending of its first turn."""
    place = stores.place()
    thread_id = f"T-{stores.author.new_id()}"
    opening = Opening(
        is_new=True,
        workspace_root=place.workspace_root,
        cwd=place.cwd,
        client_version=__version__,
        is_private=is_private or place.is_private,
        title=title or title_from(request.text),
        git=GitNews(snapshot=place.git) if place.git is not None else None,
    )
    return thread_id, _ask(stores, thread_id, opening, settings, request)


def begin_with_draft(stores: Stores, text: str, *, is_private: bool) -> str:
    """A thread where the person stands in which nothing is said yet but what they type; its id."""
    place = stores.place()
    with stores.threads.create() as editor:
        if is_private or place.is_private:
            editor.set_private(True)
        editor.start(workspace_root=place.workspace_root, cwd=place.cwd, client_version=place.client_version)
        editor.snapshot_git(place.git)
        editor.set_draft(None, text)
        editor.write("last_activity_at", format_time(stores.clock()))  # or no list would show it
        return editor.thread.id


def _ask(
    stores: Stores,
    thread_id: str,
    opening: Opening,
    settings: ResponderSettings,
    request: Request,
    *,
    is_private: bool = True,
) -> Generator[Told, None, None]:
    desk = desk_of(stores, is_private=is_private)
    if request.budget_tokens is None:
        request = msgspec.structs.replace(request, budget_tokens=settings.budget_tokens)
    recorder = Recorder(desk.threads, thread_id, opening, keep_body=desk.keep_body)
    folder = Path(opening.workspace_root or "")
    is_here = folder.is_absolute() and folder.is_dir()
    responder = open_responder(stores, settings, folder=folder if is_here else None)
    return ask(desk, recorder, responder, request)


def settle(stores: Stores, thread_id: str | None = None) -> Iterator[Settled]:
    """Settle the launches that nobody waits for; as `reconcile`."""
    return reconcile(desk_of(stores), functools.partial(job_responder, stores), thread_id)


def launched(stores: Stores, job_id: str) -> str:
    """Who works on a job that was launched on this machine; empty where none of that id was."""
    for left in LaunchBook(stores.paths.launches_dir).all():
        if job_id in {left.launch.job_id, left.taken_as}:
            return left.launch.responder
    return ""


def keep_key(stores: Stores, name: str, key: str) -> None:
    """Keep the key of a responder in the keyring."""
    ApiKeys().keep(_named(stores.config.responders, name).name, key)


def forget_key(stores: Stores, name: str) -> bool:
    """Take it out; was there one?"""
    return ApiKeys().forget(_named(stores.config.responders, name).name)
