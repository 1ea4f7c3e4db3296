"""A message or register as the bytes of a row, and back.

JSON, since that is what leaves again, compressed where that pays. jsonb would refuse NUL and put keys in an
order of its own, and a message would come back as another one.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import zstandard

from raddle.model.errors import BrokenFormat
from raddle.model.threads.delta import decode_register, encode_register
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import decode_message, encode_message
from raddle.model.threads.register import Register

_WORTH_IT = 256
_MOST = 256 << 20
_ZSTD = b"\x28\xb5\x2f\xfd"
_local = threading.local()


def packed(data: bytes) -> bytes:
    """`data` compressed, or as it is where that is no shorter."""
    if len(data) < _WORTH_IT:
        return data
    short = _compressor().compress(data)
    return short if len(short) < len(data) else data


def unpacked(data: bytes) -> bytes:
    """What was packed; BrokenFormat where it is damaged."""
    if data[:4] != _ZSTD:
        return data
    try:
        return _decompressor().decompress(data, max_output_size=_MOST)
    except zstandard.ZstdError as error:
        raise BrokenFormat(f"a row of the database is damaged: {error}") from error


def _compressor() -> zstandard.ZstdCompressor:
    """One for each thread: they may not be shared, and making one costs more than a short message."""
    found = getattr(_local, "compressor", None)
    if found is None:
        found = _local.compressor = zstandard.ZstdCompressor(level=3)
    return found


def _decompressor() -> zstandard.ZstdDecompressor:
    found = getattr(_local, "decompressor", None)
    if found is None:
        found = _local.decompressor = zstandard.ZstdDecompressor()
    return found


def message_json(message: Message) -> bytes:
    """The JSON of a message."""
    return msgspec.json.encode(encode_message(message))


def register_json(register: Register) -> bytes:
    """The JSON of a register."""
    return msgspec.json.encode(encode_register(register))


def message_of(body: bytes) -> Message:
    """The message in a row."""
    return decode_message(_plain(body))


def register_of_row(body: bytes) -> Register:
    """The register in a row."""
    return decode_register(_plain(body))


def _plain(body: bytes) -> Any:
    return msgspec.json.decode(unpacked(bytes(body)))
