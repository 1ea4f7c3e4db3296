"""Where a server keeps blobs: what names such a place, what is said when it fails, and ranges over HTTP."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from obstore.store import MemoryStore, S3Store

from raddle.adapters.blobs.bucket import Bucket
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.blobs.object_store import ObjectBlobs
from raddle.config import load_config
from raddle.model.clock import system_clock
from raddle.model.errors import InvalidInput, StorageError, UserError
from raddle.server.blobs.keeping import check_blobs, open_blobs
from raddle.server.serving import blobs_of
from tests import s3_servers
from tests.builders_served import Served, a_token, serving
from tests.builders_server import connected, prepare
from tests.postgres import NewDatabase
from tests.s3_servers import BUCKET, KEY_ID, SECRET

pytest_plugins = ("tests.postgres",)

A_DAY = 86_400 * 1_000_000
CREDENTIAL = "AKIANOBODYMAYSEE"
BYTES = bytes(range(256)) * 40_000


def environ_of(folder: Path, **variables: str) -> dict[str, str]:
    return {"HOME": "/home/ada", "RADDLE_CONFIG_DIR": str(folder), "RADDLE_DATA_DIR": "/data", **variables}


def test_blobs_lie_in_the_data_folder_unless_told_otherwise(tmp_path: Path) -> None:
    assert blobs_of(load_config(environ_of(tmp_path))) == Path("/data/server/blobs")
    (tmp_path / "config.toml").write_text('[server]\nblobs = "~/blobs"\n')
    assert blobs_of(load_config(environ_of(tmp_path))) == Path("/home/ada/blobs")
    config = load_config(environ_of(tmp_path, RADDLE_BLOBS="s3://bucket/a/prefix"))
    assert blobs_of(config) == "s3://bucket/a/prefix"


@pytest.mark.parametrize(
    "text",
    [
        f"s3://{CREDENTIAL}:secret@bucket/prefix",
        f"az://container/prefix?sig={CREDENTIAL}",
        f"s3://bucket/prefix#{CREDENTIAL}",
        "s3://",
        "s3:///prefix",
        "ftp://bucket/prefix",
        "s3://bucket/a b",
        "s3://bucket/a\n",
    ],
)
def test_what_is_no_bucket_is_refused_without_being_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match="RADDLE_BLOBS is no bucket and prefix") as caught:
        load_config(environ_of(tmp_path, RADDLE_BLOBS=text))
    with pytest.raises(InvalidInput) as caught_later:
        open_blobs(text)
    for error in (caught.value, caught_later.value):
        assert CREDENTIAL not in error.message + error.hint


def test_a_folder_that_depends_on_where_one_stands_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="neither a whole path nor a URL"):
        load_config(environ_of(tmp_path, RADDLE_BLOBS="blobs"))


def test_a_server_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("obstore", "obstore.exceptions", "obstore.store"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match="not installed") as caught:
        open_blobs("s3://bucket/prefix")
    assert "raddle[cloud]" in caught.value.hint


def test_a_folder_needs_nothing_of_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    check_blobs(tmp_path / "blobs")
    assert isinstance(open_blobs(tmp_path / "blobs"), BlobDirectory)


def all_words_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_a_store_that_nobody_reaches_is_named_and_no_credential_is(caplog: pytest.LogCaptureFixture) -> None:
    store = S3Store(
        "bucket",
        config={
            "endpoint": "http://127.0.0.1:1",
            "access_key_id": CREDENTIAL,
            "secret_access_key": "never shown",
        },
        client_options={"allow_http": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=1)},
    )
    blobs = ObjectBlobs(Bucket(store, "s3://bucket/prefix"))
    writer = blobs.writer()
    writer.write(b"x")
    name = hashlib.sha256(b"x").hexdigest()
    with caplog.at_level(logging.DEBUG):
        for ask in (
            blobs.check,
            writer.finish,
            lambda: blobs.size(name),
            lambda: blobs.delete(name),
            lambda: list(blobs.ids()),
            lambda: list(blobs.chunks(name)),
            lambda: list(blobs.range(name, 0, 1)),
            blobs.sweep,
        ):
            with pytest.raises(
                StorageError, match="s3://bucket/prefix: the store cannot be reached"
            ) as caught:
                ask()
            assert "\n" not in caught.value.message
            assert CREDENTIAL not in all_words_of(caught.value)
    writer.discard()
    assert CREDENTIAL not in caplog.text


def test_what_a_killed_server_left_half_made_is_swept_a_day_later() -> None:
    store = MemoryStore()
    bucket = Bucket(store, "the bucket")
    sha256 = ObjectBlobs(bucket).writer().finish()
    upload = bucket.upload("tmp/abandoned")
    upload.write(b"half of it")
    upload.close()
    assert ObjectBlobs(bucket).sweep() == 0
    later = ObjectBlobs(bucket, clock=lambda: system_clock() + A_DAY + 1_000_000)
    assert later.sweep() == 1
    assert [entry["path"] for page in store.list() for entry in page] == [f"{sha256[:2]}/{sha256}"]


def test_a_range_at_the_end_of_a_huge_blob_reads_nothing_before_it(tmp_path: Path) -> None:
    blobs = BlobDirectory(tmp_path)
    sha256 = "ab" * 32  # nobody could hash so much here
    path, _ = blobs.paths_of(sha256)
    path.parent.mkdir()
    size = 1 << 40
    with path.open("wb") as file:
        file.truncate(size - 3)
        file.seek(0, os.SEEK_END)
        file.write(b"end")
    assert b"".join(blobs.range(sha256, size - 4, size + 5)) == b"\0end"


class Asker:
    """Somebody with a device, at the server's blobs."""

    def __init__(self, served: Served, token: str) -> None:
        self._client = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(served.socket_path)),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
        )
        self.close = self._client.close

    def put(self, sha256: str, data: bytes) -> int:
        return self._client.put(f"/api/blobs/{sha256}", content=data).status_code

    def get(self, sha256: str, wanted: str = "") -> httpx.Response:
        return self._client.get(f"/api/blobs/{sha256}", headers={"Range": wanted} if wanted else {})


@pytest.fixture
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path | str]:
    """A folder, or a bucket of a server that speaks S3."""
    if request.param == "folder":
        yield tmp_path / "blobs"
        return
    with s3_servers.moto() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        yield f"s3://{BUCKET}/blobs"


@pytest.mark.parametrize("place", ["folder", pytest.param("moto", marks=pytest.mark.soak)], indirect=True)
def test_a_blob_comes_back_whole_and_in_ranges(place: Path | str, new_database: NewDatabase) -> None:
    conninfo = new_database(prepare)
    with connected(conninfo) as connection:
        token = a_token(connection)
    sha256 = hashlib.sha256(BYTES).hexdigest()
    check_blobs(place)
    with serving(conninfo, place) as served:
        asker = Asker(served, token)
        assert asker.get(sha256).status_code == 404
        assert asker.put(hashlib.sha256(b"else").hexdigest(), BYTES) == 422
        assert list(open_blobs(place).ids()) == []
        assert asker.put(sha256, BYTES) == 204
        assert asker.put(sha256, BYTES) == 204
        assert asker.get(sha256).content == BYTES
        for wanted, part in (
            ("bytes=0-0", BYTES[:1]),
            ("bytes=6000000-6000009", BYTES[6_000_000:6_000_010]),
            ("bytes=-7", BYTES[-7:]),
            ("bytes=9999990-", BYTES[9_999_990:]),
        ):
            answer = asker.get(sha256, wanted)
            assert (answer.status_code, answer.content) == (206, part)
        assert asker.get(sha256, f"bytes={len(BYTES)}-").status_code == 416
        asker.close()


@pytest.mark.soak
def test_a_bucket_that_is_not_there_is_told_before_the_server_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_servers.moto() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        with pytest.raises(StorageError, match="s3://no-such-bucket/x: there is no such bucket"):
            check_blobs("s3://no-such-bucket/x")


@pytest.mark.soak
def test_a_wrong_key_is_told_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_servers.rclone(tmp_path) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mistyped")
        with pytest.raises(
            StorageError, match=re.escape("permission denied (SignatureDoesNotMatch)")
        ) as caught:
            check_blobs(f"s3://{BUCKET}/x")
        assert KEY_ID not in all_words_of(caught.value)
        assert "mistyped" not in all_words_of(caught.value)
