"""Where the key of who answers comes from on this machine, and that it goes to nobody who is to get none."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.wiring.answering import key_of, key_source
from tests.builders_import import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.configure(
        '[responders.far]\nkind = "openai"\n'
        '[responders.lan]\nkind = "openai"\nurl = "http://model.lan/v1"\nkey_env = "none"\n'
        '[responders.script]\nkind = "command"\nprogram = ["x"]\n'
    )
    machine.variables = {"OPENAI_API_KEY": "sk-made-up", "none": "sk-odd"}
    return machine


def test_a_key_goes_to_its_kind_but_not_to_who_is_to_get_none(machine: Machine) -> None:
    with machine.stores() as stores:
        found = {
            name: (key_of(stores, one), key_source(stores, one))
            for name, one in stores.config.responders.items()
        }
    assert found == {"far": ("sk-made-up", "OPENAI_API_KEY"), "lan": (None, ""), "script": (None, "")}
