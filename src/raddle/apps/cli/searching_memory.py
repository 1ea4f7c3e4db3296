"""`raddle search --in memory` and `--in all`: what this project's memory has of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_found import say_looked_at, shape_of, shape_of_answer, shown
from raddle.apps.cli.plain_json import encoded
from raddle.model.errors import NotFound, RaddleError
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.actions.memory.memory_search import MemoryAnswer


_LEADS_NOWHERE = "this folder leads to no project's memory"


def search_here(
    stores: Stores, store_path: str | None, text: str, limit: int, *, as_you_type: bool, is_wanted: bool
) -> MemoryAnswer | None:
    """What the memory that this folder leads to has; None where none does, unless it `is_wanted`: then NotFound."""
    from raddle.wiring.memory import open_memory  # noqa: PLC0415
    from raddle.wiring.memory_shelf import search_memory  # noqa: PLC0415

    try:
        memory = open_memory(stores, store_path)
        return search_memory(memory, text, limit=limit, as_you_type=as_you_type)
    except RaddleError as error:
        if is_wanted or store_path is not None:
            raise
        if isinstance(error, NotFound):
            named = stores.config.store
            where = f"RADDLE_STORE names {named}, which is no memory" if named else _LEADS_NOWHERE
            diagnostics.note(words.one_line(f"{where}: only threads were looked at"))
        else:
            diagnostics.warn(f"{words.one_line(error.message)}: only threads were looked at")
        return None


def tell(answer: MemoryAnswer, now: int, *, json: bool, jsonl: bool, is_first: bool) -> None:
    """Print it. `is_first`: threads follow, under a heading of their own."""
    if jsonl:
        output.json_lines({"memory": shape_of(hit)} for hit in answer.hits)
        told = shape_of_answer(answer)
        del told["hits"]
        diagnostics.say(encoded({"memory": told}).decode())
    elif json:
        output.json({"memory": shape_of_answer(answer)})
    else:
        if is_first and answer.hits:
            output.styled(words.style("in this project's memory", "dim"))
        output.page(shown(answer, now))
        if is_first and answer.hits:
            output.line()
            output.styled(words.style("in threads", "dim"))
        say_looked_at(answer)
