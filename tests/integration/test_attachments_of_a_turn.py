"""What of a turn's files who answers does not get, and what cannot be attached at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.actions.answering.settings import Kind, ResponderSettings
from raddle.config import load_config
from raddle.model.errors import InvalidInput
from raddle.wiring import Stores, open_stores
from raddle.wiring.attaching import attachments_of, check_attachable, not_sent

PNG = b"\x89PNG\r\n\x1a\n0000"


@pytest.fixture
def stores() -> Iterator[Stores]:
    """The stores of this test's home."""
    with open_stores(load_config()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("openai", ["fake.png", "shot.bin"]),
        ("anthropic", ["fake.png", "shot.bin"]),
        ("command", ["fake.png", "shot.bin", "shot.png"]),
        ("orchestrator", ["a.txt", "fake.png", "shot.bin", "shot.png"]),
    ],
)
def test_what_is_not_sent_is_known(stores: Stores, tmp_path: Path, kind: Kind, missing: list[str]) -> None:
    files = {"a.txt": b"kiln", "shot.png": PNG, "fake.png": b"no picture", "shot.bin": b"\0\1"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    kept = attachments_of(stores, [str(tmp_path / name) for name in files])
    found = not_sent(stores, kept, ResponderSettings(name="who", kind=kind))
    assert sorted(attachment.name for attachment, _ in found) == missing
    assert all(why.startswith("who takes ") for _, why in found)


def test_a_file_that_is_not_there_is_said_to_be_so(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("kiln")
    with pytest.raises(InvalidInput, match="there is no file"):
        check_attachable(str(tmp_path / "nothing"))
    with pytest.raises(InvalidInput, match="is a folder"):
        check_attachable(str(tmp_path))
    with pytest.raises(InvalidInput):
        attachments_of(stores, [str(tmp_path / "a.txt"), str(tmp_path / "nothing")])
    assert list(stores.blobs.ids()) == []
