"""What raddle is set to, and by whom: the only reader of the environment and of `config.toml`.

One table names every setting once; reading, `raddle config show` and docs/reference/settings.md all follow
it. A second reader would obey a variable that `config show` does not know of, or print a token.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from raddle.actions.answering.settings import ResponderSettings, settings_of
from raddle.adapters.blobs.object_urls import parse_object_url
from raddle.adapters.config_file import read_settings, type_name
from raddle.adapters.paths import CONFIG_NAME, Paths
from raddle.model.errors import InvalidInput
from raddle.model.secret import Secret
from raddle.model.threads.git_facts import slug

Source = Literal["default", "file", "environment", "flag"]
Kind = Literal[
    "folder", "path", "text", "secret", "database", "place", "switch", "presence", "globs", "slugs"
]

AGENT_VARIABLES = (
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "NSED_THREAD_DIR",
    "OPENCODE_DB",
)
"""Variables of other programs that say where an agent keeps its sessions; no others are read."""


class Setting(Struct, frozen=True):
    """One row of the table."""

    name: str
    kind: Kind
    meaning: str
    default: str = "none"
    """In words, for the reference page."""
    variable: str = ""
    key: str = ""
    """`section.key` in the file."""
    field: str = ""
    """Its name in Config and as a flag of `load_config`."""


def _env(variable: str, kind: Kind, meaning: str, default: str = "none", field: str = "") -> Setting:
    name = variable.removeprefix("RADDLE_").lower()
    return Setting(name, kind, meaning, default, variable=variable, field=field or name)


def _key(key: str, kind: Kind, meaning: str) -> Setting:
    return Setting(key, kind, meaning, key=key, field=key.replace(".", "_"))


SETTINGS = (
    _env("RADDLE_DATA_DIR", "folder", "Where threads and blobs are kept.", "the user's, + `/raddle`"),
    _env("RADDLE_CONFIG_DIR", "folder", f"Where `{CONFIG_NAME}` lies.", "the user's, + `/raddle`"),
    _env("RADDLE_STATE_DIR", "folder", "Where this device's id and the log are.", "the user's, + `/raddle`"),
    _env("RADDLE_CACHE_DIR", "folder", "Where the search index is kept.", "the user's, + `/raddle`"),
    Setting(
        "server",
        "text",
        "The sync server, as a URL.",
        "the one signed in to last",
        variable="RADDLE_SERVER",
        key="sync.server",
        field="server",
    ),
    _env("RADDLE_TOKEN", "secret", "This device's token for the server. Never shown."),
    _env("RADDLE_DATABASE_URL", "database", "PostgreSQL. Shown without its password.", "an embedded one"),
    Setting(
        "blobs",
        "place",
        "Where the server keeps blobs: a folder, or a bucket as `s3://bucket/prefix`.",
        "`server/blobs` in the data folder",
        variable="RADDLE_BLOBS",
        key="server.blobs",
        field="blobs",
    ),
    _env("RADDLE_PG_BIN", "path", "The programs to run an embedded PostgreSQL with.", "looked for"),
    _env("RADDLE_STORE", "text", "The project memory to work in.", "what the workspace names"),
    _env("RADDLE_WORKSPACE", "path", "The folder that counts as the workspace.", "the current one"),
    _env("RADDLE_OFFLINE", "switch", "Ask the network for nothing.", "off", "is_offline"),
    _env("NO_COLOR", "presence", "Print without colour, on a terminal too.", "off", "is_colorless"),
    _key("import.exclude", "globs", "Sessions whose workspace or file matches are not imported."),
    _key("private.workspaces", "globs", "Threads of a workspace that matches are private from their start."),
    _key("private.remotes", "slugs", "Threads of a repository that matches are private from their start."),
    _key("author.name", "text", "The name on the turns and entries you write."),
    _key("memory.hide_host", "switch", "Leave this machine's name out of what is written to a memory."),
    _key("answering.responder", "text", "Who answers, where nothing else says so: one of `responders`."),
)
TABLES = frozenset({"responders"})
"""Sections of the file with a table for each name that a person chooses."""

_FOLDERS = {
    "data_dir": ("XDG_DATA_HOME", ".local/share"),
    "config_dir": ("XDG_CONFIG_HOME", ".config"),
    "state_dir": ("XDG_STATE_HOME", ".local/state"),
    "cache_dir": ("XDG_CACHE_HOME", ".cache"),
}
_YES, _NO = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})
_USERINFO = re.compile(r"://([^:/@?#]*):.*@", re.DOTALL)
_PASSWORD = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^&\s]*)", re.IGNORECASE)
_HIDDEN = "***"


class Origin(Struct, frozen=True, kw_only=True):
    """Where a value came from: which kind of place, and there the variable, the file or the flag."""

    source: Source = "default"
    where: str = ""


class ShownSetting(Struct, frozen=True, kw_only=True):
    """One line of `raddle config show`; secrets read `set`, or None where there is none."""

    name: str
    value: str | bool | tuple[str, ...] | None
    source: Source
    where: str


class Config(Struct, frozen=True, kw_only=True):
    """Every setting, read once; what each means stands in SETTINGS. Folders are absolute."""

    data_dir: Path
    config_dir: Path
    state_dir: Path
    cache_dir: Path
    server: str | None
    token: Secret | None
    database_url: Secret | None
    blobs: Path | str | None
    """A folder, or the URL of a bucket."""
    pg_bin: Path | None
    store: str | None
    workspace: Path | None
    is_offline: bool
    is_colorless: bool
    import_exclude: tuple[str, ...]
    private_workspaces: tuple[str, ...]
    private_remotes: tuple[str, ...]
    author_name: str | None
    memory_hide_host: bool
    answering_responder: str | None
    responders: dict[str, ResponderSettings]
    """Who can answer, by name."""
    keys: dict[str, Secret]
    """By the variable that a responder looks for its key in."""
    origins: dict[str, Origin]
    """By field."""
    warnings: tuple[str, ...]
    """What in the file says nothing to this raddle, one sentence each."""
    agent_variables: dict[str, str]

    @property
    def paths(self) -> Paths:
        """Where everything of this raddle lies."""
        return Paths(
            data_dir=self.data_dir,
            config_dir=self.config_dir,
            state_dir=self.state_dir,
            cache_dir=self.cache_dir,
        )

    def environment(self, name: str) -> str | None:
        """A variable of another program as it was at the start, None where unset or empty.

        LookupError for a name that is not in AGENT_VARIABLES: a new one is declared there.
        """
        if name not in AGENT_VARIABLES:
            raise LookupError(f"{name} is not declared in raddle.config.AGENT_VARIABLES")
        return self.agent_variables.get(name)

    def shown(self) -> tuple[ShownSetting, ...]:
        """Every setting with its value, fit to be printed, and where it came from."""
        return tuple(
            ShownSetting(
                name=setting.name,
                value=_printable(getattr(self, setting.field)),
                source=self.origins[setting.field].source,
                where=self.origins[setting.field].where,
            )
            for setting in SETTINGS
        )


def load_config(environ: Mapping[str, str] | None = None, **flags: str | bool | None) -> Config:
    """Read every setting: from a flag, else the environment, else the file, else the default.

    `environ` is the process's own where None; `flags` go by field name, None: not given. An empty variable
    counts as unset. InvalidInput names the variable, or the file and its line or key, and the reason;
    StorageError where the file is there and cannot be read. A missing file is no error.
    """
    environ = os.environ if environ is None else environ
    by_field = {setting.field: setting for setting in SETTINGS}
    if strangers := flags.keys() - by_field.keys():
        raise TypeError(f"no such setting: {', '.join(sorted(strangers))}")
    config_dir, _ = _Layers(environ, flags, {}, Path()).value(by_field["config_dir"])
    file = config_dir / CONFIG_NAME
    keys = {setting.key for setting in SETTINGS if setting.key}
    from_file, warnings = read_settings(file, keys, TABLES)
    responders = {
        name: settings_of(name, table, f"{file}: responders.{name}")
        for name, table in from_file.get("responders", {}).items()
    }
    layers = _Layers(environ, flags, from_file, file)
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for setting in SETTINGS:
        values[setting.field], origins[setting.field] = layers.value(setting)
    seen = {name: environ[name] for name in AGENT_VARIABLES if environ.get(name)}
    named = {one.key_env for one in responders.values() if one.key_env}
    secrets = {name: Secret(environ[name]) for name in sorted(named) if environ.get(name)}
    return Config(
        **values,
        responders=responders,
        keys=secrets,
        origins=origins,
        warnings=warnings,
        agent_variables=seen,
    )


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where the log goes, known also where the rest of the settings does not read; InvalidInput where it is not."""
    environ = os.environ if environ is None else environ
    setting = next(setting for setting in SETTINGS if setting.field == "state_dir")
    folder: Path = _Layers(environ, {}, {}, Path()).value(setting)[0]
    return folder


def is_colorless() -> bool:
    """Is no colour wished, or none possible? For what is printed before, or without, the whole config."""
    return bool(os.environ.get("NO_COLOR")) or is_dumb_terminal()


def is_dumb_terminal() -> bool:
    """Can the terminal do nothing but print lines (`TERM=dumb`), or is it not known what it can do?"""
    return os.environ.get("TERM", "") in {"", "dumb"}


class _Layers(NamedTuple):
    """The places a value can come from, strongest first."""

    environ: Mapping[str, str]
    flags: Mapping[str, str | bool | None]
    from_file: Mapping[str, Any]
    file: Path

    def value(self, setting: Setting) -> tuple[Any, Origin]:
        """The strongest value that is given, as its kind, and where it came from."""
        flag = self.flags.get(setting.field)
        if flag is not None:
            origin = Origin(source="flag", where="--" + setting.name.replace("_", "-"))
            return self._read(setting, flag, origin.where), origin
        text = self.environ.get(setting.variable) if setting.variable else None
        if text:
            if setting.kind == "folder" and not Path(self._expanded(text)).is_absolute():
                raise InvalidInput(
                    f"{setting.variable} is {text!r}, which is another folder wherever raddle is called",
                    "give the whole path, from / or ~ on",
                )
            origin = Origin(source="environment", where=setting.variable)
            return self._read(setting, text, origin.where), origin
        if setting.key in self.from_file:
            origin = Origin(source="file", where=str(self.file))
            return self._read(setting, self.from_file[setting.key], f"{self.file}: {setting.key}"), origin
        return self._default(setting), Origin()

    def _read(self, setting: Setting, given: Any, where: str) -> Any:
        match setting.kind:
            case "folder" | "path":
                return Path(os.path.abspath(self._expanded(_as_text(given, where))))  # noqa: PTH100  # `..` goes too
            case "text":
                return _as_text(given, where)
            case "secret" | "database":
                text = _as_text(given, where)
                return Secret(text, _without_password(text) if setting.kind == "database" else "set")
            case "place":
                return self._place(_as_text(given, where), where)
            case "switch":
                return given if isinstance(given, bool) else _as_switch(given, where)
            case "presence":
                return bool(given)
            case "globs":
                return tuple(self._expanded(text) for text in _as_texts(given, where))
            case "slugs":
                return tuple(_as_slug(text) for text in _as_texts(given, where))

    def _default(self, setting: Setting) -> Any:
        match setting.kind:
            case "folder":
                return _user_folder(setting.field, self.environ)
            case "switch" | "presence":
                return False
            case "globs" | "slugs":
                return ()
            case _:
                return None

    def _place(self, text: str, where: str) -> Path | str:
        if "://" in text:
            return parse_object_url(text, where)
        path = Path(self._expanded(text))
        if not path.is_absolute():
            raise InvalidInput(
                f"{where} is {text!r}, neither a whole path nor a URL", "start it with /, ~ or s3://"
            )
        return path

    def _expanded(self, path: str) -> str:
        """A leading `~` as the home folder: many who set a path have no shell to do it for them."""
        home = self.environ.get("HOME")
        if home and (path == "~" or path.startswith("~/")):
            return home + path[1:]
        return os.path.expanduser(path)  # noqa: PTH111  # a glob is no path


def _user_folder(field: str, environ: Mapping[str, str]) -> Path:
    """Where the platform keeps such things for this user, + `raddle`."""
    variable, below_home = _FOLDERS[field]
    if sys.platform == "linux":
        # platformdirs' own rule for Linux (a test holds the two together), without the 8 ms of its import.
        base, home = Path(environ.get(variable, "")), Path(environ.get("HOME", ""))
        if base.is_absolute():
            return base / "raddle"
        if home.is_absolute():
            return home / below_home / "raddle"
    import platformdirs  # noqa: PLC0415  # heavy, and not needed where the environment says enough

    try:
        return Path(getattr(platformdirs, f"user_{field}")("raddle", appauthor=False))
    except RuntimeError as error:
        raise InvalidInput(
            f"no home folder is known: {error}", "set HOME, or the RADDLE_…_DIR variables"
        ) from error


def _as_text(given: Any, where: str) -> str:
    if not isinstance(given, str):
        raise InvalidInput(f"{where} must be a text, not {type_name(given)}", "write it in double quotes")
    if "\0" in given:
        raise InvalidInput(f"{where} holds a NUL character", "take it out")
    return given


def _as_texts(given: Any, where: str) -> list[str]:
    if not isinstance(given, list):
        raise InvalidInput(
            f"{where} must be a list of texts, not {type_name(given)}", 'write it as ["…", "…"]'
        )
    return [_as_text(text, f"{where}[{place}]") for place, text in enumerate(given)]


def _as_switch(given: Any, where: str) -> bool:
    word = str(given).strip().lower()
    if word not in _YES | _NO:
        raise InvalidInput(f"{where} is {given!r}, which is neither on nor off", "set it to 1 or 0")
    return word in _YES


def _as_slug(text: str) -> str:
    """A remote in the form threads are compared by: somebody who pastes its URL means the same repository."""
    return slug(text) or slug(f"https://{text}") or text


def _without_password(url: str) -> str:
    return _PASSWORD.sub(rf"\1{_HIDDEN}", _USERINFO.sub(rf"://\1:{_HIDDEN}@", url))


def _printable(value: Any) -> str | bool | tuple[str, ...] | None:
    if value is None or isinstance(value, bool | tuple):
        return value
    return repr(value) if isinstance(value, Secret) else _without_password(str(value))


def settings_tables() -> tuple[str, str]:
    """The tables of docs/reference/settings.md: of the environment, and of the file."""
    variables = ["| variable | setting | meaning | default |", "|---|---|---|---|"]
    keys = ["| key | type | meaning |", "|---|---|---|"]
    for row in SETTINGS:
        if row.variable:
            variables.append(f"| `{row.variable}` | `{row.name}` | {row.meaning} | {row.default} |")
        if row.key:
            keys.append(f"| `{row.key}` | {row.kind} | {row.meaning} |")
    return "\n".join(variables) + "\n", "\n".join(keys) + "\n"
