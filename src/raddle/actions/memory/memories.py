"""Memories: texts that are worth knowing for long, each by its `namespace/key`; read, written, taken out.

The one place that says how a name is typed, which keys may stand side by side, and what of a memory's front matter
a write keeps. A second one would take a key that no clone on another system can hold.
"""

from __future__ import annotations

import unicodedata
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from raddle.actions.memory.memory_search import LARGEST_SEARCHED, text_in, time_told
from raddle.actions.memory.ports import StoreFiles, Writer
from raddle.model.clock import format_time
from raddle.model.errors import InvalidInput, NotFound, TooLarge
from raddle.model.memory.memory_text import FrontMatter, MemoryText, described, format_memory, parse_memory
from raddle.model.memory.names import shown
from raddle.model.memory.repo_layout import (
    MEMORY_FOLDER,
    Place,
    check_key,
    check_namespace,
    check_new_key,
    memory_file,
    place_of,
)

LARGEST_MEMORY = LARGEST_SEARCHED
"""Bytes; what is larger is no text that anybody reads, and belongs among the artifacts."""


class MemoryFiles(StoreFiles, Protocol):
    """A store's files, and which names stand in each other's way."""

    def twins(self, folder: str, name: str) -> list[str]:
        """The names right in a folder, of files and folders, that a file system could take for `name`, itself too."""


class MemoryLine(Struct, frozen=True, kw_only=True, gc=False):
    """A memory in a list. `updated`: RFC 3339; where the memory tells none, when its file was last written here.
    `size`: bytes."""

    namespace: str
    key: str
    description: str = ""
    tags: tuple[str, ...] = ()
    updated: str = ""
    size: int = 0

    @property
    def name(self) -> str:
        """As a person types it."""
        return f"{self.namespace}/{self.key}"


class Memory(Struct, frozen=True, kw_only=True):
    """A memory as it is read. `text`: None where its bytes are no text."""

    namespace: str
    key: str
    path: str
    data: bytes
    text: MemoryText | None

    @property
    def name(self) -> str:
        """As a person types it."""
        return f"{self.namespace}/{self.key}"


class Written(Struct, frozen=True, kw_only=True):
    """What a write did. `secrets`: kinds of what looks like one in the text."""

    namespace: str
    key: str
    path: str
    state: Literal["created", "changed", "unchanged"]
    secrets: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As a person types it."""
        return f"{self.namespace}/{self.key}"


class Told(Struct, frozen=True, kw_only=True):
    """What a writer says of a memory besides its text; None and empty: nothing, what was said before stays."""

    description: str | None = None
    author: str | None = None
    tags: tuple[str, ...] = ()
    untags: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Is nothing said?"""
        return self.description is None and self.author is None and not self.tags and not self.untags


def split_name(text: str) -> tuple[str, str]:
    """(namespace, key) of `namespace/key`; InvalidInput where it is no such name."""
    namespace, slash, key = text.partition("/")
    if not (namespace and slash and key):
        raise InvalidInput(
            f"{shown(text)} is not the name of a memory", "write namespace/key, such as team/style.md"
        )
    return namespace, key


def memory_path(name: str) -> str:
    """The file that a memory of that name is written to; InvalidInput where no memory may be called so."""
    namespace, key = split_name(name)
    return memory_file(namespace, key)


def place_named(text: str) -> Place:
    """Where the memory of that name is; names that others wrote, and conflicts, can be read as well."""
    namespace, key = split_name(text)
    place = place_of(f"{MEMORY_FOLDER}/{namespace}/{key}")
    if place.kind not in ("memory", "conflict"):
        raise InvalidInput(f"{shown(text)} is not the name of a memory", "see `raddle memory list`")
    return place


def existing_place(files: StoreFiles, name: str) -> tuple[Place, bytes | None]:
    """Where the memory of that name is, and its bytes: by the name as typed, else by its canonical form (macOS types
    an accent as a character of its own). None: there is none."""
    place = place_named(name)
    data = files.read(place.path)
    canonical = unicodedata.normalize("NFC", name)
    if data is None and canonical != name:
        other = place_named(canonical)
        found = files.read(other.path)
        if found is not None:
            return other, found
    return place, data


def line_of(place: Place, data: bytes, memory: MemoryText, modified: int) -> MemoryLine:
    """A memory as a line of a list. `modified`: when its file was last written, in microseconds since 1970."""
    return MemoryLine(
        namespace=place.namespace,
        key=place.key,
        description=described(memory),
        tags=memory.front_matter.tags,
        updated=format_time(time_told(memory, modified)),
        size=len(data),
    )


def get_memory(files: StoreFiles, name: str) -> Memory:
    """The memory of that name; NotFound."""
    place, data = existing_place(files, name)
    if data is None:
        raise NotFound("memory", name, f"`raddle memory list {place.namespace}` shows what there is")
    return memory_in(place, data)


def memory_in(place: Place, data: bytes) -> Memory:
    """These bytes as the memory at that place."""
    text = text_in(data)
    return Memory(
        namespace=place.namespace,
        key=place.key,
        path=place.path,
        data=data,
        text=None if text is None else parse_memory(text),
    )


def set_memory(
    files: MemoryFiles, writer: Writer, name: str, text: str | None, told: Told | None = None
) -> Written:
    """Write a memory (`text` None: only what is told of it). InvalidInput where its key stands in another's way.

    Front matter that is there stays, with fields and comments of others, and so does a memory without any: it gets
    one when something is told of it. A new one has who wrote it and when. Front matter in `text` counts as told.
    """
    from raddle.actions.memory.secrets_seen import seen_secrets  # patterns that a reader never needs  # noqa: PLC0415

    told = told or Told()
    namespace, key = split_name(name)
    namespace, key = check_namespace(namespace), check_key(key)
    path = memory_file(namespace, key)
    if text is not None and len(text.encode()) > LARGEST_MEMORY:
        raise too_large(f"{namespace}/{key}")
    state: Literal["created", "changed", "unchanged"] = "unchanged"

    def change(old: bytes | None) -> bytes:
        nonlocal state
        if old is None:
            if text is None:
                raise NotFound("memory", name, "give a text to write a new one")
            check_not_in_the_way(files, namespace, key)
        new = changed(old, text, told, writer)
        state = "created" if old is None else "unchanged" if new == old else "changed"
        return new

    now = files.change(path, change) or b""
    secrets = tuple(seen_secrets(now.decode(errors="replace"))) if state != "unchanged" else ()
    return Written(namespace=namespace, key=key, path=path, state=state, secrets=secrets)


def delete_memory(files: StoreFiles, name: str) -> Memory:
    """Take a memory out; what it was. Its versions stay in the history as far as they were committed."""
    gone = get_memory(files, name)
    files.change(gone.path, lambda _: None)
    return gone


def too_large(name: str) -> TooLarge:
    """What is raised for a text that is no memory any more."""
    return TooLarge(
        f"{shown(name)} would be larger than {LARGEST_MEMORY // 1024} KiB",
        "keep what is worth reading, or add it to a run: `raddle artifact add`",
    )


def check_spelling(files: MemoryFiles, namespace: str) -> None:
    """InvalidInput where there is a namespace that differs only in case or Unicode form."""
    for other in files.twins(MEMORY_FOLDER, namespace):
        if other != namespace:
            raise InvalidInput(
                f"namespace {shown(namespace)} differs from {shown(other)} only in case or Unicode form",
                f"write {shown(other)}",
            )


def check_not_in_the_way(files: MemoryFiles, namespace: str, key: str) -> None:
    """InvalidInput where a new key (or its namespace) cannot stand beside what is there, on some system.

    Looks at the folders on its way alone: a namespace may have ten thousand keys.
    """
    check_spelling(files, namespace)
    root, parts = f"{MEMORY_FOLDER}/{namespace}", key.split("/")
    for depth, part in enumerate(parts):
        above = "/".join(parts[:depth])
        folder = f"{root}/{above}" if above else root
        for twin in files.twins(folder, part):
            below = files.paths(f"{folder}/{twin}")
            if not (below and twin == part and depth < len(parts) - 1):
                standing = below[:1] or [f"{folder}/{twin}"]
                check_new_key(key, [path.removeprefix(f"{root}/") for path in standing])


def changed(old: bytes | None, text: str | None, told: Told, writer: Writer) -> bytes:
    """The bytes of a memory (None: there is none yet) once `text` and what is told of it are written."""
    before = None if old is None else text_in(old)
    if old is not None and before is None and text is None:
        raise InvalidInput("it is no text, so nothing can be told of it", "give it a text")
    was = parse_memory(before) if before is not None else MemoryText(front_matter=FrontMatter(), body="")
    given = parse_memory(_ended(text)) if text is not None else None
    now = was if given is None else _with_text(was, given)
    now = replace(now, front_matter=_with_told(now.front_matter, told))
    if old is not None and now == was:
        return old
    stamp = format_time(writer.now())
    if old is None:
        author = now.front_matter.author or writer.author
        created = now.front_matter.created or stamp
        now = replace(
            now, front_matter=replace(now.front_matter, created=created, updated=stamp, author=author)
        )
    elif was.head or (given is not None and given.head) or not told.is_nothing:
        author = (
            told.author or (given and given.front_matter.author) or writer.author or now.front_matter.author
        )
        now = replace(now, front_matter=replace(now.front_matter, updated=stamp, author=author))
    return format_memory(now).encode()


def _with_text(was: MemoryText, given: MemoryText) -> MemoryText:
    """The given text under the front matter that there was; what the text says of itself counts."""
    if not given.head:
        return replace(was, body=given.body)
    said = {
        name: value
        for name in FrontMatter.LEFT_OUT
        if (value := getattr(given.front_matter, name)) not in ("", ())
    }
    unknown = {**was.front_matter.unknown, **given.front_matter.unknown}
    merged = replace(was.front_matter, **said, unknown=unknown)
    return MemoryText(front_matter=merged, body=given.body, head=was.head or given.head)


def _with_told(said: FrontMatter, told: Told) -> FrontMatter:
    tags = tuple(tag for tag in dict.fromkeys((*said.tags, *told.tags)) if tag not in told.untags)
    return replace(
        said,
        tags=tags,
        description=said.description if told.description is None else told.description,
        author=said.author if told.author is None else told.author,
    )


def _ended(text: str) -> str:
    """`text` with a newline at its end, as every text file has it."""
    return text if not text or text.endswith("\n") else f"{text}\n"
