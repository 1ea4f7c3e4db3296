"""Commands that find and read: list, search, show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, thread_argument
from raddle.model.threads.summary import ThreadSummary
from raddle.wiring import Stores, with_stores

if TYPE_CHECKING:
    from raddle.model.threads.search_answer import Hit, SearchAnswer

as_json_lines = click.option("--jsonl", is_flag=True, help="Print one JSON document a line.")


@click.command(
    name="list",
    help="List threads: pins first, newest activity first. QUERY narrows the list: filters as in search "
    "(repo: branch: tag: agent: before: after: is:…), or words.",
)
@click.argument("query", nargs=-1)
@click.option("-n", "--limit", type=click.IntRange(1), default=30, show_default=True, help="At most so many.")
@click.option("--all", "everything", is_flag=True, help="All of them, archived ones too.")
@click.option("--deleted", is_flag=True, help="Only deleted ones.")
@as_json
@as_json_lines
@with_stores
def list_(
    stores: Stores,
    query: tuple[str, ...],
    limit: int,
    everything: bool,
    deleted: bool,
    json: bool,
    jsonl: bool,
) -> None:
    """Print a table, or the summaries as JSON."""
    if deleted:
        rows = stores.deleted()
    else:
        rows = stores.listed(" ".join(query), limit=None if everything else limit, with_archived=everything)
    if jsonl:
        output.json_lines(listed(row) for row in rows)
    elif json:
        output.json([listed(row) for row in rows])
    else:
        output.page(_table(stores, rows))
        if not rows:
            diagnostics.say(
                "no threads" if query else "no threads yet: `raddle import` brings in other agents' sessions"
            )


def listed(summary: ThreadSummary) -> dict[str, Any]:
    """A summary in its documented JSON shape."""
    return {
        "id": summary.id,
        "title": summary.title,
        "message_count": summary.message_count,
        "created_at": summary.created_at,
        "last_activity_at": summary.last_activity_at,
        "workspace_root": summary.workspace_root,
        "git_branch": summary.git_branch,
        "git_remote_url": summary.git_remote_url,
        "provider": summary.provider,
        "model": summary.model,
        "source": summary.source,
        "tags": summary.tags,
        "is_pinned": summary.is_pinned,
        "visibility": summary.visibility,
        "is_private": summary.is_private,
        "is_archived": summary.is_archived,
        "sync": {"state": "private" if summary.is_private else "local"},
    }


def _table(stores: Stores, rows: list[ThreadSummary]) -> list[str]:
    now = stores.clock()
    cells = [
        (
            "★" if row.is_pinned else " ",
            stores.short_id(row.id),
            words.ago(row.last_activity_at, now),
            f"{row.message_count:>5,}",
            _place(row),
            _title(row),
        )
        for row in rows
    ]
    return words.table(cells, (1, 40, 14, 8, 34, 72), styles=("yellow", "dim", None, "dim", "cyan", None))


def _place(row: ThreadSummary) -> str:
    """`repository@branch`, as short as it says which."""
    place = (row.git_remote_url or row.workspace_root or "").rstrip("/").rpartition("/")[2]
    return words.one_line("@".join(part for part in (place, row.git_branch) if part)) or "–"


def _title(row: ThreadSummary) -> str:
    marks = [f"#{tag}" for tag in row.tags]
    marks += [word for word, is_so in (("private", row.is_private), ("archived", row.is_archived)) if is_so]
    return words.one_line(" ".join([row.title or "(no title)", *marks]))


@click.command(
    help="Find messages. A message is found when every word stands in its text, or in its thread's title, tags or "
    'git facts. "exact phrase", prefix*, -without, ~inside, and filters: repo: branch: sha: tag: role: agent: tool: '
    "file: before: after: is:pinned is:private is:archived is:removed has:error."
)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="At most so many threads.",
)
@click.option("--cursor", default="", help="Go on where an earlier page ended.")
@as_json
@as_json_lines
@with_stores
def search(stores: Stores, query: tuple[str, ...], limit: int, cursor: str, json: bool, jsonl: bool) -> None:
    """Print hits grouped by thread, the best first."""
    answer = stores.find(" ".join(query), limit=limit, cursor=cursor)
    if jsonl:
        output.json_lines(found(hit) for hit in answer.hits)
        return
    if json:
        output.json(
            {
                "scope": answer.scope,
                "total_threads": answer.total_threads,
                "hits": [found(hit) for hit in answer.hits],
                "cursor": answer.cursor,
            }
        )
        return
    output.page(_hits(stores, answer))
    diagnostics.say(_scope(answer))


def found(hit: Hit) -> dict[str, Any]:
    """A hit in its documented JSON shape."""
    return {
        "thread": listed(hit.thread),
        "message_id": hit.message_id,
        "role": hit.role,
        "field": hit.field,
        "matches": hit.matches,
        "snippet": hit.snippet.text,
        "marks": hit.snippet.marks,
        "score": round(hit.score, 6),
    }


def _hits(stores: Stores, answer: SearchAnswer) -> list[str]:
    now = stores.clock()
    lines = []
    for hit in answer.hits:
        row = hit.thread
        facts = [words.ago(row.last_activity_at, now), _place(row)]
        if hit.matches > 1:
            facts.append(words.count(hit.matches, "hit"))
        lines.append(
            f"{words.style(stores.short_id(row.id), 'yellow')}  {words.style(words.cut(_title(row), 80), 'bold')}"
            f"  {words.style('  '.join(facts), 'dim')}"
        )
        lines.append(f"    {words.style(hit.role + ':', 'dim')} {_marked(hit)}")
        lines.append("")
    return lines[:-1]


def _marked(hit: Hit) -> str:
    text, at, parts = hit.snippet.text, 0, []
    for start, end in hit.snippet.marks:
        parts += [text[at:start], click.style(text[start:end], fg="red", bold=True)]
        at = end
    return "".join([*parts, text[at:]])


def _scope(answer: SearchAnswer) -> str:
    """What was looked at, so that an empty answer from the wrong place shows that it is from the wrong place."""
    scope = answer.scope
    shown = f", {len(answer.hits)} shown" if len(answer.hits) < answer.total_threads else ""
    said = f"{words.count(answer.total_threads, 'thread')} found{shown}; looked at {words.count(scope.threads, 'thread')} of this machine"
    if scope.filters:
        said += f" with {' '.join(scope.filters)}"
    notes = list(scope.notes)
    if scope.ignored:
        notes.append(f"ignored: {' '.join(scope.ignored)}")
    if not scope.is_complete:
        notes.append(f"looked inside the newest {words.count(scope.messages_read, 'message')} only")
    if scope.pending:
        notes.append(f"{words.count(scope.pending, 'thread')} changed since and not in this answer yet")
    return "; ".join([said, *notes])


@click.command(help="Read thread ID: the conversation up to its tip, or another branch, or the tree.")
@thread_argument
@click.option("--tree", is_flag=True, help="Every message as one line, under the one it answers.")
@click.option("--branch", metavar="LEAF", help="Up to this message instead of the tip.")
@click.option("--full", is_flag=True, help="Nothing shortened: whole tool results and thinking.")
@click.option("--removed", is_flag=True, help="With --tree: turns that were taken back too.")
@as_json
@with_stores
def show(
    stores: Stores, thread: str, tree: bool, branch: str | None, full: bool, removed: bool, json: bool
) -> None:
    """With --json: the thread file's own JSON, or with --branch the path as an array of messages."""
    from raddle.actions.threads import find_message  # noqa: PLC0415
    from raddle.apps.cli import reader  # noqa: PLC0415

    loaded = stores.threads.load(stores.resolve(thread))
    leaf = find_message(loaded, branch).id if branch else None
    if json:
        from raddle.model.threads.codec import encode_thread  # noqa: PLC0415
        from raddle.model.threads.message_codec import encode_message  # noqa: PLC0415

        if leaf is None:
            output.write_bytes(encode_thread(loaded))
        else:
            output.json([encode_message(message) for message in loaded.tree.path_to_root(leaf)])
        return
    lines = list(reader.header(loaded, stores.clock(), stores.notes_on(loaded)))
    if tree:
        lines += ["", *reader.outline(loaded, with_removed=removed)]
    else:
        tip = loaded.tree.tip()
        at = leaf or stores.active_leaf(loaded) or (tip.id if tip is not None else None)
        lines += reader.conversation(loaded, at, is_full=full)
        others = len(loaded.tree.heads()) - 1
        if others > 0:
            lines += [
                "",
                words.style(
                    f"{words.count(others, 'other branch')}: raddle branches {stores.short_id(loaded.id)}",
                    "dim",
                ),
            ]
    lines += reader.lost_and_found(loaded)
    output.page(lines)
