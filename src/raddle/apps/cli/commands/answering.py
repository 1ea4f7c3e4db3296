"""Commands that go on with a conversation: ask, chat, jobs, responders, policies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import (
    Words,
    as_json,
    asking_options,
    attach_option,
    complete_thread,
    message_option,
    warn_of_settings,
    with_stores,
)
from raddle.model.errors import InvalidInput, NotFound, NotSignedIn
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.actions.answering.ports import JobResponder


@click.command(
    help="""Talk in thread ID with who answers there; without ID, start a thread.

    Each turn is saved before it is sent, each answer where it belongs. Ctrl-C stops an answer, and what came of it is
    kept; Ctrl-D ends the talk. /help lists what else can be typed. Where stdin is no terminal, all of it is one turn.

    \b
    raddle chat
    raddle chat T-019 --with local
    git diff | raddle chat --with local""",
)
@click.argument("thread", metavar="[ID]", required=False, type=Words(), shell_complete=complete_thread)
@message_option("--branch", "Go on with the branch of this message.")
@asking_options
@attach_option
@click.option("--private", "is_private", is_flag=True, help="A new thread that never leaves this machine.")
@as_json
@with_stores
def chat(
    stores: Stores,
    thread: str | None,
    branch: str | None,
    who: str,
    model: str,
    policy: str,
    budget: int | None,
    attached: tuple[str, ...],
    is_private: bool,
    json: bool,
) -> None:
    """Print the answers."""
    from raddle.apps.cli.chatting import Talk  # noqa: PLC0415

    warn_of_settings(stores)
    if thread is not None and is_private:
        raise InvalidInput("--private is for a new thread", f"`raddle private {thread}` keeps this one here")
    if thread is None and branch is not None:
        raise InvalidInput("--branch is of a thread", "name it: `raddle chat ID --branch MESSAGE`")
    talk = Talk(stores, who=who, model=model, policy=policy, budget=budget, is_private=is_private, json=json)
    if thread is not None:
        talk.go_on(stores.resolve(thread), branch)
    talk.attach(attached)
    if sys.stdin.isatty() and not json:
        talk.show_last()
        talk.run()
    else:
        talk.say(output.text_of_stdin())


@click.command(
    help="""List the turns that wait for an answer, settled as far as can be: what is done lands under its turn.

    With ID only that thread's, also those that another machine launched.

    \b
    raddle jobs answer JOB CALL TEXT    what an agent of the job asked
    raddle jobs tell JOB TEXT           say something to its agents
    raddle jobs cancel JOB              end it""",
    context_settings={"ignore_unknown_options": False},
)
@click.argument("what", nargs=-1, metavar="[ID | VERB …]", type=Words())
@as_json
@with_stores
def jobs(stores: Stores, what: tuple[str, ...], json: bool) -> None:
    """Print what became of each."""
    verbs = {"answer": 4, "tell": 3, "cancel": 2}
    if what and what[0] in verbs:
        if len(what) != verbs[what[0]]:
            raise InvalidInput(
                f"`raddle jobs {what[0]}` takes {words.count(verbs[what[0]] - 1, 'argument')}",
                "`raddle jobs --help` shows how",
            )
        if not all(word.strip() for word in what):
            raise InvalidInput(f"`raddle jobs {what[0]}` needs some text", "`raddle jobs --help` shows how")
        _tell_job(stores, *what)
        return
    if len(what) > 1:
        raise InvalidInput(f"{what[0]!r} is no verb of jobs", "it is one of answer, tell, cancel")
    _list_jobs(stores, stores.resolve(what[0]) if what else None, json=json)


def _list_jobs(stores: Stores, thread_id: str | None, *, json: bool) -> None:
    import msgspec  # noqa: PLC0415

    from raddle.apps.cli.conversation import tell_settled  # noqa: PLC0415
    from raddle.wiring.answering import settle  # noqa: PLC0415

    found = list(settle(stores, thread_id))
    if json:
        output.json([msgspec.to_builtins(one) for one in found])
        return
    for one in found:
        tell_settled(one)
    if not found:
        diagnostics.say("nothing waits for an answer")


def _tell_job(stores: Stores, verb: str, job: str, *said: str) -> None:
    responder = _responder_of_job(stores, job)
    if verb == "cancel":
        responder.cancel(job)
        diagnostics.say(f"cancelled {job}; `raddle jobs` settles its turn")
    elif verb == "answer":
        responder.answer_call(job, said[0], said[1])
        diagnostics.say("told")
    else:
        responder.tell(job, said[0])
        diagnostics.say("told")


def _responder_of_job(stores: Stores, job: str) -> JobResponder:
    from raddle.wiring.answering import job_responder, launched  # noqa: PLC0415

    name = launched(stores, job)
    found = job_responder(stores, name) if name else None
    if found is None:
        raise NotFound("job", job, "`raddle jobs` lists those of this machine")
    return found


@click.command(
    help="""List who can answer: the tables [responders.NAME] of config.toml, and where the key of each comes from.

    A key is looked for in the variable that key_env names, else in the keyring of this system; it is never kept in a
    file, and never shown.

    \b
    raddle responders key NAME       keep a key in the keyring (typed, or on stdin)
    raddle responders forget NAME    take it out again""",
)
@click.argument("what", nargs=-1, metavar="[key|forget NAME]", type=Words())
@as_json
@with_stores
def responders(stores: Stores, what: tuple[str, ...], json: bool) -> None:
    """Print them."""
    from raddle.wiring.answering import forget_key, keep_key, key_source  # noqa: PLC0415

    warn_of_settings(stores)
    if what:
        if len(what) != 2 or what[0] not in {"key", "forget"}:
            raise InvalidInput(
                f"{' '.join(what)!r} is not understood", "`raddle responders key NAME`, or forget NAME"
            )
        if what[0] == "key":
            keep_key(stores, what[1], _typed_key(what[1]))
            diagnostics.say(f"the key of {what[1]} is in the keyring")
        else:
            diagnostics.say("forgotten" if forget_key(stores, what[1]) else "the keyring has no key of it")
        return
    rows = [
        {
            "name": each.name,
            "kind": each.kind,
            "url": each.url,
            "model": each.model,
            "key": key_source(stores, each),
            "is_default": each.name == stores.config.answering_responder,
        }
        for each in stores.config.responders.values()
    ]
    if json:
        output.json(rows)
        return
    if not rows:
        diagnostics.say("nobody is set up to answer; docs/how-to/talk-to-a-model.md shows how")
        return
    cells = [
        [_marked(row), str(row["kind"]), str(row["model"]), str(row["url"]), str(row["key"] or "no key")]
        for row in rows
    ]
    for line in words.table(
        [["name", "kind", "model", "where", "key from"], *cells],
        (24, 12, 40, 60, 30),
        styles=("bold", None, None, "dim", None),
        width=output.columns(),
        shrink=(3, 2),
    ):
        output.styled(line)


def _marked(row: Mapping[str, object]) -> str:
    return f"{row['name']} (default)" if row["is_default"] else str(row["name"])


def _typed_key(name: str) -> str:
    key = (
        click.prompt(f"key of {name}", hide_input=True, err=True)
        if sys.stdin.isatty()
        else output.text_of_stdin()
    )
    if not key.strip():
        raise NotSignedIn("no key was given", "type it, or give it on stdin")
    return str(key).strip()


@click.command(
    help="""List the policies of a deliberation server: the ways of it that can be chosen.

    With ID and POLICY, set the one of that thread (a lone - takes it away). --policy of other commands chooses one for
    a turn."""
)
@click.argument("thread", metavar="[ID", required=False, type=Words(), shell_complete=complete_thread)
@click.argument("policy", metavar="POLICY]", required=False, type=Words())
@click.option(
    "--with", "who", default="", metavar="NAME", type=Words(), help="Which server; else the default."
)
@as_json
@with_stores
def policies(stores: Stores, thread: str | None, policy: str | None, who: str, json: bool) -> None:
    """Print them, or the one of a thread."""
    if thread is None:
        _list_policies(stores, who, json=json)
        return
    with stores.threads.edit(stores.resolve(thread)) as editor:
        if policy is not None:
            editor.set_context("active_policy", None if policy == "-" else policy)
        chosen = editor.thread.plain("active_policy")
    output.answer(json, {"id": editor.thread.id, "policy": chosen}, chosen or "none: what the server takes")


def _list_policies(stores: Stores, who: str, *, json: bool) -> None:
    import msgspec  # noqa: PLC0415

    from raddle.wiring.answering import chosen_responder, job_responder  # noqa: PLC0415

    chosen = chosen_responder(stores, None, who)
    found = job_responder(stores, chosen.settings.name)
    if found is None:
        raise InvalidInput(f"{chosen.settings.name} is no deliberation server", "name one with --with")
    known = found.policies()
    if json:
        output.json([msgspec.to_builtins(one) for one in known])
        return
    rows = [[words.one_line(text) for text in (one.id, one.name, ", ".join(one.tags))] for one in known]
    for line in words.table(rows, (40, 40, 40), styles=("bold", None, "dim")):
        output.styled(line)
    if not known:
        diagnostics.say("it has none")
