"""The forms a thread can leave in, by name. A new form is one file here and one line in `FORMS`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from raddle.actions.exporting.json_forms import to_json, to_json_lines
from raddle.actions.exporting.loom import to_loom
from raddle.actions.exporting.markdown import to_markdown
from raddle.actions.exporting.text import to_text
from raddle.model.errors import InvalidInput
from raddle.model.threads.quorum import encode_quorum
from raddle.model.threads.thread import Thread

Export = Callable[[Thread, str | None], bytes]
"""The bytes of a thread; of the path from the root to a message, where one is named (NotFound: no such
message).
"""


class Form(Struct, frozen=True, kw_only=True):
    """One form. `suffix`: how the names of its files end."""

    name: str
    suffix: str
    export: Export


FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form(name="markdown", suffix=".md", export=to_markdown),
        Form(name="text", suffix=".txt", export=to_text),
        Form(name="json", suffix=".json", export=to_json),
        Form(name="jsonl", suffix=".jsonl", export=to_json_lines),
        Form(name="loom", suffix=".json", export=to_loom),
        Form(name="quorum", suffix=".json", export=encode_quorum),
    )
}


def form_named(name: str) -> Form:
    """The form of that name; InvalidInput names those there are."""
    form = FORMS.get(name)
    if form is None:
        raise InvalidInput(f"{name[:40]!r} is not a form to export", f"it is one of {', '.join(FORMS)}")
    return form
