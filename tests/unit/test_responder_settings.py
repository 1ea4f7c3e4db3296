"""What a table of who answers may say: no secret, and whether a key goes there."""

from __future__ import annotations

from typing import Any

import pytest

from raddle.actions.answering.settings import key_hint_of, settings_of
from raddle.model.errors import InvalidInput


def lan(**table: Any) -> dict[str, Any]:
    return {"kind": "openai", "url": "http://model.lan/v1", "model": "m", **table}


@pytest.mark.parametrize(
    "url",
    [
        "http://bob:hunter2@model.lan/v1",
        "https://hunter2@model.lan",
        "https://model.lan/v1?api_key=hunter2",
        "https://model.lan/v1#hunter2",
        "bob:hunter2@model.lan",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings_of("lan", lan(url=url), "config.toml: responders.lan")
    assert "responders.lan.url" in refused.value.message
    assert "hunter2" not in refused.value.message + refused.value.hint
    assert "raddle responders key" in refused.value.hint


def test_an_address_alone_is_taken() -> None:
    assert settings_of("lan", lan(url="http://[::1]:8080/v1/"), "x").url == "http://[::1]:8080/v1"


def test_a_key_goes_to_every_api_that_is_not_said_to_get_none() -> None:
    by_default, without = settings_of("lan", lan(), "x"), settings_of("lan", lan(key_env="none"), "x")
    assert (by_default.key_env, by_default.takes_key) == ("OPENAI_API_KEY", True)
    assert not without.takes_key
    assert "OPENAI_API_KEY" in key_hint_of(by_default)
    assert "OPENAI_API_KEY" not in key_hint_of(without)
    assert not settings_of("script", {"kind": "command", "program": ["x"]}, "x").takes_key
