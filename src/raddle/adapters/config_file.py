"""`config.toml` as values: read whole, each key known or named, before anything is done with them.

Owns what a mistake in the file costs. A rule that is not understood, or not there, must never be taken for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from raddle.model.errors import InvalidInput, StorageError

_RULES = ("import.", "private.")


def read_settings(
    file: Path, keys: AbstractSet[str], tables: AbstractSet[str] = frozenset()
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the file sets, by `section.key`, and a warning for each key that is no setting.

    `tables`: sections that hold tables of names a person chooses; each comes whole, under its own name.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if file.is_symlink():  # rules that are not there must not be taken for none
            raise StorageError(
                f"{file} is a link that leads nowhere", "mend the link, or remove it to go without settings"
            ) from error
        return {}, ()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{file} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8"
        ) from error
    except OSError as error:
        raise StorageError(
            f"cannot read {file}: {error.strerror}", "check who owns it and its mode"
        ) from error
    import tomllib  # noqa: PLC0415  # most people have no such file

    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{file} is not valid TOML: {error}", "mend that line, or move the file away"
        ) from error
    settings: dict[str, Any] = {}
    warnings: list[str] = []
    for key, value in _flattened(document, file, keys, tables):
        if key in keys or key in tables:
            settings[key] = value
            continue
        near = _near(key, keys | tables)
        told = f"{file}: {key} is not a setting" + (f"; did you mean {near}?" if near else "")
        if f"{near or key}.".startswith(
            _RULES
        ):  # a rule that is not understood must not let anything through
            raise InvalidInput(told, "mend that line: what it was to keep out is not known")
        warnings.append(told)
    return settings, tuple(warnings)


def _flattened(
    document: Mapping[str, Any], file: Path, keys: AbstractSet[str], tables: AbstractSet[str]
) -> Iterator[tuple[str, Any]]:
    """Each value by `section.key`; an unknown section or a value outside any by its own name."""
    sections = {key.partition(".")[0] for key in keys}
    for name, value in document.items():
        if name not in sections | tables or (name in tables and isinstance(value, dict)):
            yield name, value
        elif isinstance(value, dict):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            raise InvalidInput(
                f"{file}: {name} must be a table, not {type_name(value)}", f"write it as [{name}]"
            )


def _near(key: str, keys: AbstractSet[str]) -> str:
    """The setting or section that was meant, as far as one can tell."""
    import difflib  # only for somebody who mistyped  # noqa: PLC0415

    found = difflib.get_close_matches(key, [*keys, *{known.partition(".")[0] for known in keys}], n=1)
    return found[0] if found else ""


def type_name(given: Any) -> str:
    """As TOML calls it."""
    names = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "table"}
    return f"a {names.get(type(given), 'date or time')}"
