"""Another agent's memory folder brought in: every text becomes a memory, by its path; the folder is only read.

The one place that makes a name portable. Brought in again, the same folder comes to the same names, so that nothing
is there twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from msgspec import Struct

from raddle.actions.memory.memories import MemoryFiles, check_spelling
from raddle.actions.memory.memory_search import text_in
from raddle.actions.memory.secrets_seen import seen_secrets
from raddle.model.errors import InvalidInput
from raddle.model.memory.names import LONGEST_NAME, check_name, folded, shown
from raddle.model.memory.repo_layout import MEMORY_FOLDER, check_key, check_namespace

_MOST_TRIES = 1_000


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file of the folder. `path`: below it, with `/`. `data`: None where it is not taken, and `why`."""

    path: str
    data: bytes | None = None
    why: str = ""


class ImportReport(Struct, frozen=True, kw_only=True):
    """What became of a folder; keys of the namespace. `kept`: are there with another text, which stays. `renamed`:
    path in the folder -> key, where it is another. `skipped`: path -> why. `secrets`: key -> kinds of what looks like
    one."""

    namespace: str
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    renamed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    secrets: dict[str, tuple[str, ...]] = {}


def import_texts(
    files: MemoryFiles,
    namespace: str,
    sources: Iterable[SourceFile],
    *,
    overwrite: bool = False,
    is_dry_run: bool = False,
) -> ImportReport:
    """Make a memory of each text. One that is there with another text stays, unless `overwrite`."""
    namespace = check_namespace(namespace)
    root = f"{MEMORY_FOLDER}/{namespace}"
    skipped: dict[str, str] = {}
    taken: dict[str, bytes] = {}
    for source in sources:
        why = source.why or _why_not(source.data)
        if why or source.data is None:
            skipped[source.path] = why
        else:
            taken[source.path] = source.data
    with files.locked():
        check_spelling(files, namespace)
        names = _Names(path.removeprefix(f"{root}/") for path in files.paths(root))
        keys: dict[str, str] = {}
        # Those that keep their name first: no other may take it.
        for path in sorted(taken, key=lambda path: (portable(path) != path, path)):
            try:
                keys[path] = names.key_for(path)
            except InvalidInput as error:
                skipped[path] = error.message
        there = {key: files.read(f"{root}/{key}") for key in keys.values()}
        texts = {key: taken[path] for path, key in keys.items()}
        added = [key for key in texts if there[key] is None]
        other = [key for key in texts if there[key] not in (None, texts[key])]
        if not is_dry_run:
            files.add({f"{root}/{key}": texts[key] for key in added})
            for key in other if overwrite else ():
                files.change(f"{root}/{key}", lambda _, key=key: texts[key])  # type: ignore[misc]
    written = [*added, *(other if overwrite else ())]
    seen = {key: tuple(seen_secrets(texts[key].decode(errors="replace"))) for key in written}
    return ImportReport(
        namespace=namespace,
        added=tuple(sorted(added)),
        replaced=tuple(sorted(other)) if overwrite else (),
        kept=() if overwrite else tuple(sorted(other)),
        same=tuple(sorted(texts.keys() - set(added) - set(other))),
        renamed={path: key for path, key in sorted(keys.items()) if key != path},
        skipped=dict(sorted(skipped.items())),
        secrets={key: kinds for key, kinds in sorted(seen.items()) if kinds},
    )


def _why_not(data: bytes | None) -> str:
    if data is None or text_in(data) is not None:
        return ""
    return "it is no text"


def portable(path: str) -> str:
    """The path as a key that every system can hold: each part as it is, or with `-` for what cannot be."""
    return "/".join(map(_portable_name, path.split("/")))


def _portable_name(name: str) -> str:
    try:
        fit = check_name(name, "name")
    except InvalidInput:
        fit = _mended(name)
    return fit.replace(".conflict-", "-conflict-")


def _mended(name: str) -> str:
    """`name` with `-` for what some system cannot hold; the same for the same name."""
    name = unicodedata.normalize("NFC", name.encode(errors="replace").decode())
    name = "".join("-" if unicodedata.category(character)[0] == "C" else character for character in name)
    name = re.sub(r'[<>:"|?*\\~\u2028\u2029]', "-", name).strip().rstrip(".")
    stem, dot, suffix = name.rpartition(".")
    room = LONGEST_NAME - 2 - len((dot + suffix).encode())
    if stem and len(name.encode()) > LONGEST_NAME and room > 0:
        name = stem.encode()[:room].decode(errors="ignore") + dot + suffix
    name = name.encode()[: LONGEST_NAME - 2].decode(errors="ignore").strip().rstrip(".")
    for candidate in (name, name.lstrip("."), f"{name}-", f"_{name}"):
        try:
            return check_name(candidate, "name")
        except InvalidInput:
            continue
    return "unnamed"


class _Names:
    """Which keys and folders a namespace has, by what a file system may take them for, and which were given out."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._given: set[str] = set()
        for key in keys:
            self._note(key)

    def key_for(self, path: str) -> str:
        """The key for a path of the folder: free, or the one that it was brought in as before. InvalidInput where it
        can have none."""
        for key in _tries(self._in_known_folders(portable(path))):
            check_key(key)
            fold = folded(key)
            is_new = fold not in self._keys and fold not in self._folders and not self._is_below_a_key(key)
            if is_new or (self._keys.get(fold) == key and key not in self._given):
                self._note(key)
                self._given.add(key)
                return key
        raise InvalidInput(f"no name is left for {shown(path)}")

    def _in_known_folders(self, key: str) -> str:
        """With its folders in the letters that they have; one that is a memory already gets another name."""
        *parts, name = key.split("/")
        above = ""
        for part in parts:
            for candidate in _tries(part):
                folder = f"{above}{candidate}"
                if folded(folder) not in self._keys:
                    above = f"{self._folders.get(folded(folder), folder)}/"
                    break
        return above + name

    def _is_below_a_key(self, key: str) -> bool:
        return any(folded(folder) in self._keys for folder in _folders_above(key))

    def _note(self, key: str) -> None:
        self._keys.setdefault(folded(key), key)
        for folder in _folders_above(key):
            self._folders.setdefault(folded(folder), folder)


def _tries(key: str) -> Iterator[str]:
    """`a.md`, `a-2.md`, `a-3.md`, …"""
    yield key
    folder, slash, name = key.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    for number in range(2, _MOST_TRIES):
        yield f"{folder}{slash}{stem}-{number}{dot}{suffix}"


def _folders_above(key: str) -> Iterator[str]:
    parts = key.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
