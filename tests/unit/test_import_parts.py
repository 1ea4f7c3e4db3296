"""What every importer makes of the bytes and texts that come off a record."""

from __future__ import annotations

import hashlib

import pytest
from msgspec import Raw

from raddle.actions.importing.parts import ASSISTANT, USER, Aside, MessagePart, joined
from raddle.model.threads.message import NOTICE


def test_bytes_become_an_attachment_and_the_blob_that_it_names() -> None:
    aside = Aside()
    attachment = aside.attach(b"hello", "image/png", "shot.png")
    assert (attachment.name, attachment.media_type, attachment.size) == ("shot.png", "image/png", 5)
    assert [(blob.sha256, blob.body) for blob in aside.blobs] == [(attachment.sha256, b"hello")]
    assert attachment.sha256 == hashlib.sha256(b"hello").hexdigest()


@pytest.mark.parametrize(
    ("text", "body", "is_whole"),
    [("aGVsbG8=", b"hello", True), ("aGVsbG8", b"hello", True), ("aGVsb", b"hel", False), ("", b"", True)],
)
def test_of_base64_that_lost_its_end_the_bytes_that_are_there_stay(
    text: str, body: bytes, is_whole: bool
) -> None:
    aside = Aside()
    assert aside.from_base64(text) == body
    assert (aside.repairs == []) == is_whole


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("data:image/png;base64,aGVsbG8=", (b"hello", "image/png")),
        ("data:text/plain;charset=utf-8,50%25%20off", (b"50% off", "text/plain")),
        ("data:,100%", (b"100%", "")),
        ("data:,\ud800", (b"?", "")),
        ("https://example.org/a.png", None),
        ("data:nothing", None),
    ],
)
def test_a_data_url_is_bytes_and_what_they_are(url: str, found: tuple[bytes, str] | None) -> None:
    assert Aside().from_data_url(url) == found


def test_json_that_is_not_quite_that_is_mended_and_told() -> None:
    aside = Aside()
    assert aside.plain(Raw(b'{"a":{"b":[1]}}')) == {"a": {"b": [1]}}
    assert aside.plain(Raw(b'"text"')) == "text"
    assert aside.repairs == []
    assert aside.plain(Raw(b'{"a":"\\ud800"}')) == {"a": "\ufffd"}
    assert aside.repairs == ["a lone surrogate"]


def test_texts_that_say_nothing_leave_no_gap() -> None:
    assert joined(["one", None, " \n", "", "two"]) == "one\n\ntwo"
    assert joined(["one", "two"], "\n") == "one\ntwo"


def test_only_a_persons_turn_is_typed() -> None:
    assert MessagePart(role=USER, content="hi").is_typed
    assert not MessagePart(role=USER, kind=NOTICE, content="hi").is_typed
    assert not MessagePart(role=ASSISTANT, content="hi").is_typed


def test_the_answer_to_a_call_is_something_even_without_words() -> None:
    assert MessagePart(role=USER).is_empty
    assert not MessagePart(role="tool", tool_call_id="c1").is_empty
