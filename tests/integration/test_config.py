"""What raddle is set to, which place wins, and that no secret is ever shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import platformdirs
import pytest

from raddle.config import (
    AGENT_VARIABLES,
    SETTINGS,
    Config,
    ShownSetting,
    is_colorless,
    is_dumb_terminal,
    load_config,
    settings_tables,
)
from raddle.model.errors import InvalidInput, StorageError
from tests.seal import CHECKOUT


def environ_of(folder: Path, **variables: str) -> dict[str, str]:
    """An environment whose config folder is `folder`."""
    return {"HOME": "/home/ada", "RADDLE_CONFIG_DIR": str(folder), **variables}


def config_of(folder: Path, text: str) -> Config:
    """The settings where `folder` has a config.toml of this text."""
    (folder / "config.toml").write_text(text, encoding="utf-8")
    return load_config(environ_of(folder))


def row(config: Config, name: str) -> ShownSetting:
    """The line of `config show` for `name`."""
    return next(shown for shown in config.shown() if shown.name == name)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs itself is asked")
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"XDG_DATA_HOME": "/x/data", "XDG_STATE_HOME": "/x/state"},
        {"XDG_CONFIG_HOME": "/x/config", "XDG_CACHE_HOME": "/x/cache"},
        {"XDG_DATA_HOME": "relative", "XDG_CONFIG_HOME": ""},
        {"HOME": "relative", "XDG_CONFIG_HOME": "/x/config"},
    ],
)
def test_the_default_folders_are_those_of_the_platform(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    config = load_config()
    assert [
        str(folder) for folder in (config.data_dir, config.config_dir, config.state_dir, config.cache_dir)
    ] == [
        platformdirs.user_data_dir("raddle"),
        platformdirs.user_config_dir("raddle"),
        platformdirs.user_state_dir("raddle"),
        platformdirs.user_cache_dir("raddle"),
    ]


def test_a_folder_from_the_environment_is_used_as_given(tmp_path: Path) -> None:
    names = ("data", "config", "state", "cache")
    config = load_config({f"RADDLE_{name.upper()}_DIR": str(tmp_path / name) for name in names})
    assert [getattr(config, f"{name}_dir") for name in names] == [tmp_path / name for name in names]
    assert row(config, "data_dir").where == "RADDLE_DATA_DIR"


def test_a_folder_is_a_whole_path_without_detours(tmp_path: Path) -> None:
    config = load_config(
        environ_of(tmp_path, RADDLE_DATA_DIR=f"{tmp_path}/here/../data", RADDLE_STATE_DIR="~/state")
    )
    assert config.data_dir == tmp_path / "data"
    assert config.state_dir == Path("/home/ada/state")


@pytest.mark.parametrize("variable", [row.variable for row in SETTINGS if row.kind == "folder"])
@pytest.mark.parametrize("value", ["rel", "./rel", "..", "~nobody-of-that-name/rel"])
def test_a_folder_that_depends_on_where_one_stands_is_refused(
    variable: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=variable) as refused:
        load_config(environ_of(tmp_path) | {variable: value})
    assert "whole path" in refused.value.hint


def test_a_flag_goes_before_the_environment_the_file_and_the_default(tmp_path: Path) -> None:
    environ = environ_of(tmp_path, RADDLE_SERVER="https://env.example")
    assert load_config(environ, server="https://flag.example").server == "https://flag.example"
    assert load_config(environ, server=None).server == "https://env.example"
    assert load_config(environ_of(tmp_path)).server is None
    sources = [
        row(load_config(environ, server="https://flag.example"), "server").source,
        row(load_config(environ), "server").source,
        row(load_config(environ_of(tmp_path)), "server").source,
        row(config_of(tmp_path, '[author]\nname = "Ada"'), "author.name").source,
    ]
    assert sources == ["flag", "environment", "default", "file"]


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    variables = {setting.variable: "" for setting in SETTINGS if setting.variable}
    config = load_config({**variables, "HOME": str(tmp_path)})
    assert {shown.source for shown in config.shown()} == {"default"}


@pytest.mark.parametrize(
    ("text", "is_on"), [("1", True), ("yes", True), ("On", True), ("0", False), ("false", False)]
)
def test_offline_is_a_switch(text: str, is_on: bool, tmp_path: Path) -> None:
    assert load_config(environ_of(tmp_path, RADDLE_OFFLINE=text)).is_offline is is_on


def test_a_switch_that_is_neither_on_nor_off_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="RADDLE_OFFLINE"):
        load_config(environ_of(tmp_path, RADDLE_OFFLINE="maybe"))


def test_no_color_counts_with_any_value_that_is_not_empty(tmp_path: Path) -> None:
    assert load_config(environ_of(tmp_path, NO_COLOR="0")).is_colorless
    assert not load_config(environ_of(tmp_path, NO_COLOR="")).is_colorless


@pytest.mark.parametrize("value", ["1", "0", ""])
def test_colour_before_the_config_is_read_goes_by_the_same_rule(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", value)
    assert is_colorless() is load_config(environ_of(tmp_path, NO_COLOR=value)).is_colorless


@pytest.mark.parametrize(("term", "is_dumb"), [("dumb", True), ("", True), ("xterm", False)])
def test_a_dumb_terminal_gets_no_colour(term: str, is_dumb: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    assert (is_dumb_terminal(), is_colorless()) == (is_dumb, is_dumb)


def test_no_secret_is_printed_logged_or_encoded(tmp_path: Path) -> None:
    config = load_config(
        environ_of(
            tmp_path,
            RADDLE_TOKEN="hunter2",
            RADDLE_DATABASE_URL="postgresql://ada:hunter2@db.example/raddle?sslpassword=hunter2",
            RADDLE_SERVER="https://ada:hunter2@raddle.example",
        )
    )
    assert config.token is not None
    assert config.token.reveal() == "hunter2"
    shown = msgspec.json.encode(config.shown()).decode()
    assert "hunter2" not in shown
    assert "hunter2" not in f"{config.token} {config.token!r} {config.database_url!r}"
    assert row(config, "token").value == "set"
    assert row(config, "database_url").value == "postgresql://ada:***@db.example/raddle?sslpassword=***"
    with pytest.raises(TypeError):
        msgspec.json.encode(config.token)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunt@er2/x@db.example/raddle",
        "host=db.example user=ada password=hunter2",
        "host=db.example password = 'hunter2 and \\' more' user=ada",
        "postgresql://db.example/raddle?user=ada&password=hunter2",
    ],
)
def test_a_database_is_shown_without_its_password(url: str, tmp_path: Path) -> None:
    config = load_config(environ_of(tmp_path, RADDLE_DATABASE_URL=url))
    shown = str(row(config, "database_url").value)
    assert "er2" not in shown
    assert "more" not in shown
    assert "db.example" in shown
    assert config.database_url is not None
    assert config.database_url.reveal() == url


def test_the_file_says_what_is_left_out_and_what_is_private(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        """
        [import]
        exclude = ["~/clients/**", "/tmp/*"]
        [private]
        workspaces = ["~/secret"]
        remotes = ["github.com/acme/*", "https://ada:hunter2@Git.Example.org/Team/Plans.git", "*/any/where"]
        [author]
        name = "Ada Lovelace"
        """,
    )
    assert config.import_exclude == ("/home/ada/clients/**", "/tmp/*")
    assert config.private_workspaces == ("/home/ada/secret",)
    assert config.private_remotes == ("github.com/acme/*", "git.example.org/Team/Plans", "*/any/where")
    assert config.author_name == "Ada Lovelace"
    assert config.warnings == ()
    assert row(config, "private.remotes").where == str(tmp_path / "config.toml")


def test_a_missing_file_is_no_error_and_nothing_is_made_by_looking(tmp_path: Path) -> None:
    config = load_config({"HOME": str(tmp_path)})
    assert config.import_exclude == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[import\nexclude = []", "line 1"),
        ('[import]\nexclude = ["a"\n[private]', "line 3"),
        ("a = " + "[" * 5000, "TOML"),
        ("a = " + "9" * 5000, "TOML"),
        ("import = 3", "import must be a table, not a number"),
        ('[import]\nexclude = "~/x"', "import.exclude must be a list of texts, not a text"),
        ('[import]\nexclude = ["a", 2]', "import.exclude[1] must be a text, not a number"),
        ("[private]\nremotes = true", "private.remotes must be a list of texts, not a boolean"),
        ("[author]\nname = 1979-05-27", "author.name must be a text, not a date"),
        ('[author]\nname = "a\\u0000b"', "author.name holds a NUL"),
    ],
)
def test_a_file_that_says_no_sense_is_refused_by_its_name_and_place(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        config_of(tmp_path, text)
    assert said in caught.value.message
    assert str(tmp_path / "config.toml") in caught.value.message
    assert caught.value.hint


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes('[author]\nname = "Zoë"'.encode("latin-1"))
    with pytest.raises(InvalidInput, match="not UTF-8"):
        load_config(environ_of(tmp_path))


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'\xef\xbb\xbf[author]\nname = "Ada"')
    assert load_config(environ_of(tmp_path)).author_name == "Ada"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(StorageError, match=r"config\.toml"):
        load_config(environ_of(tmp_path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zzz = 1", "zzz is not a setting"),
    ],
)
def test_a_key_that_is_no_setting_is_warned_about_with_the_near_one(
    text: str, said: str, tmp_path: Path
) -> None:
    (warning,) = config_of(tmp_path, text).warnings
    assert warning == f"{tmp_path / 'config.toml'}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[private]\nworkspace = ["x"]',
            "private.workspace is not a setting; did you mean private.workspaces?",
        ),
        ('[import]\nexcludes = ["x"]', "import.excludes is not a setting; did you mean import.exclude?"),
        ('[import]\nzzz = ["x"]', "import.zzz is not a setting; did you mean import?"),
        ('[privat]\nremotes = ["x"]', "privat is not a setting; did you mean private?"),
    ],
)
def test_a_rule_that_is_not_understood_lets_nothing_through(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a setting") as caught:
        config_of(tmp_path, text)
    assert caught.value.message == f"{tmp_path / 'config.toml'}: {said}"


def test_settings_behind_a_link_that_leads_nowhere_are_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to(tmp_path / "not mounted")
    with pytest.raises(StorageError, match="leads nowhere"):
        load_config(environ_of(tmp_path))


def test_where_agents_keep_things_is_read_from_declared_variables_only(tmp_path: Path) -> None:
    config = load_config(environ_of(tmp_path, CODEX_HOME="/agents/codex", CLAUDE_CONFIG_DIR="", OTHER="x"))
    assert config.environment("CODEX_HOME") == "/agents/codex"
    assert config.environment("CLAUDE_CONFIG_DIR") is None
    assert config.environment("HOME") == "/home/ada"
    with pytest.raises(LookupError, match="OTHER"):
        config.environment("OTHER")


def test_a_flag_that_is_no_setting_is_a_mistake_of_ours(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="sever"):
        load_config(environ_of(tmp_path), sever="x")


def test_every_setting_is_shown_and_has_a_field() -> None:
    config = load_config()
    assert [shown.name for shown in config.shown()] == [setting.name for setting in SETTINGS]


def test_the_reference_page_is_in_step_with_the_settings() -> None:
    page = (CHECKOUT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    stale = "put the tables of raddle.config.settings_tables() into docs/reference/settings.md"
    for table in settings_tables():
        assert table in page, stale
    assert [name for name in AGENT_VARIABLES if f"`{name}`" not in page] == [], stale


def test_the_example_of_the_reference_page_is_valid(tmp_path: Path) -> None:
    page = (CHECKOUT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    config = config_of(tmp_path, page.split("```toml\n")[1].split("```")[0])
    assert config.warnings == ()
    assert config.private_remotes == ("github.com/acme/*", "git.example.org/team/plans")


def test_reading_the_settings_loads_nothing_that_is_not_needed(home: Path) -> None:
    code = "import sys; from raddle.config import load_config; load_config(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unneeded = {"tomllib", "difflib", "subprocess", "tempfile", "click"}
    if sys.platform == "linux":
        unneeded.add("platformdirs")
    assert unneeded & set(done.stdout.split()) == set()
    assert list(home.iterdir()) == []
