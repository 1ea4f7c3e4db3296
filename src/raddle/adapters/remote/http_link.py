"""One server, asked over HTTP: connections kept open, bodies coded, and every failure as one error of ours.

The only module of this room that imports httpx, and so imported itself only when something is asked. Every answer is a
stranger's: how large it may grow, how slowly it may come and what it may say is bounded here, once.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import httpx

from raddle import __version__
from raddle.adapters.hosts import host_of, is_loopback, is_safe
from raddle.adapters.remote.expanding import ACCEPTED, compressed, expanded
from raddle.adapters.remote.refusals import LATER, Wanted, refusal, words_of
from raddle.model.errors import BrokenFormat, InvalidInput, NetworkError, UserError
from raddle.model.protocol.wire import json_bytes, json_value

MOST_EXPANDED_BYTES = 256 << 20
_LEAST_WORTH_CODING = 1 << 10
_IDLE_SECONDS = 4.0
"""A connection is kept for so long; uvicorn closes after five, and a request must not meet that."""
_LEAST_BYTES_A_SECOND = 1_000
"""Slower than this is standing still: a server that sends a byte a minute never runs into a time limit."""
_LOST = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)
_NOISE = re.compile(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)")
"""What Python adds to the system's words: the number of an error, a line of its own source."""
_TOKEN = re.compile(r"[!-~]{1,1000}\Z")

Trace = Callable[[str, Mapping[str, Any]], object]
"""Told of each step of a connection, as httpcore has it."""


class Patience(NamedTuple):
    """How long one waits, in seconds: for a connection, and for the next bytes."""

    connect_seconds: float = 5.0
    read_seconds: float = 60.0


PATIENT = Patience()
HURRIED = Patience(connect_seconds=3.0, read_seconds=10.0)
"""Of who waits at a terminal for something that may as well happen later."""
_SOMETHING = Wanted("such thing", "")


class Lost(NetworkError):
    """The connection ended before the answer did."""


class Silent(Lost):
    """Nothing came any more."""


class Reply(NamedTuple):
    """What was answered: the status, and the JSON value, None where there is no body."""

    status: int
    plain: Any


class HttpLink:
    """A server and who asks it; for several threads. Use as a context manager, or `close` it.

    `socket_path`: the server listens there, not at its address. UserError where the way would show the token to
    anybody on it and nobody said that this is all right (`is_insecure`).
    """

    def __init__(
        self,
        server: str,
        token: str = "",
        *,
        is_insecure: bool = False,
        patience: Patience = PATIENT,
        most_bytes: int = MOST_EXPANDED_BYTES,
        socket_path: Path | None = None,
    ) -> None:
        if not is_insecure and not is_safe(server):
            raise UserError(
                f"{server} is not encrypted: anybody on the way could read your threads",
                "use https, or say `raddle login --insecure` where the way is safe (a VPN)",
            )
        if token and _TOKEN.match(token) is None:
            raise InvalidInput(
                "the token is none: it holds what no token does", "sign in anew: `raddle login`"
            )
        self.server = server
        self.host = host_of(server)
        self.patience = patience
        self._token = token
        self._most_bytes = most_bytes
        self._socket_path = socket_path
        self._client = self.new_client()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def new_client(self, *, read_seconds: float | None = None) -> httpx.Client:
        """Connections of their own to this server, for whoever closes them."""
        headers = {
            "User-Agent": f"raddle/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": ACCEPTED,
        }
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        limits = httpx.Limits(max_connections=8, max_keepalive_connections=4, keepalive_expiry=_IDLE_SECONDS)
        transport = None
        if self._socket_path is not None:
            transport = httpx.HTTPTransport(uds=str(self._socket_path), limits=limits)
        return httpx.Client(
            base_url=self.server,
            headers=headers,
            timeout=httpx.Timeout(
                read_seconds or self.patience.read_seconds, connect=self.patience.connect_seconds
            ),
            limits=limits,
            transport=transport,
            # Proxies and certificates are the system's business; what goes to this machine goes past any proxy.
            trust_env=self.server.startswith("https:"),
        )

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        plain: Any = None,
        accepted: Container[int] = (200,),
        wanted: Wanted = _SOMETHING,
        is_repeatable: bool | None = None,
    ) -> Reply:
        """The answer to one request; `plain` goes as JSON. The error that `refusal` names for any other status.

        A connection that breaks is asked once more where a request may be repeated (None: where it only reads).
        """
        content, headers = _coded(plain)
        tries = 2 if (method in {"GET", "HEAD"} if is_repeatable is None else is_repeatable) else 1
        while True:
            tries -= 1
            try:
                request = self._client.build_request(
                    method, path, params=query, content=content, headers=headers
                )
                with self._sent(self._client, request) as response:
                    return self._read(response, accepted, wanted)
            except Silent:
                raise
            except Lost:
                if not tries:
                    raise

    def send(self, path: str, pieces: Iterable[bytes], size: int, *, wanted: Wanted) -> None:
        """PUT `size` bytes."""
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        request = self._client.build_request("PUT", path, content=pieces, headers=headers)
        with self._sent(self._client, request) as response:
            self._read(response, (200, 201, 204), wanted)

    def receive(
        self, path: str, *, wanted: Wanted, most_bytes: int, part: tuple[int, int] | None = None
    ) -> Iterator[bytes]:
        """The bytes that are there, in pieces as they come; NetworkError where they are more than `most_bytes`.

        `part`: those from one place up to another, as a slice has them, and it is not empty.
        """
        headers = {"Accept-Encoding": "identity", "Accept": "*/*"}
        if part is not None:
            headers["Range"] = f"bytes={part[0]}-{part[1] - 1}"
        request = self._client.build_request("GET", path, headers=headers)
        with self._sent(self._client, request) as response:
            if part is not None and response.status_code == 416:
                return  # all of it lies before the part
            if response.status_code != (200 if part is None else 206):
                self._read(response, (), wanted)
            yield from self._pieces(response, most_bytes)

    def look(self, path: str, *, wanted: Wanted) -> Mapping[str, str] | None:
        """The headers that tell of what is there; None where it is not, or not for us."""
        request = self._client.build_request("HEAD", path)
        with self._sent(self._client, request) as response:
            self._read(response, (200, 404), wanted)
            return response.headers if response.status_code == 200 else None

    @contextlib.contextmanager
    def listening(
        self, client: httpx.Client, path: str, *, query: Mapping[str, str], trace: Trace
    ) -> Iterator[Iterator[bytes]]:
        """What a stream of events sends, in pieces as they come, without an end that would be ours to set."""
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity", "Cache-Control": "no-store"}
        request = client.build_request(
            "GET", path, params=query, headers=headers, extensions={"trace": trace}
        )
        with self._sent(client, request) as response:
            if response.status_code != 200:
                self._read(response, (), Wanted("feed", path))
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "text/event-stream" or response.headers.get("content-encoding"):
                raise self.nonsense("it is no stream of events")
            yield response.iter_raw()

    def nonsense(self, reason: str) -> NetworkError:
        """What to raise for an answer that cannot be read."""
        return NetworkError(
            f"what {self.host} answered cannot be read: {words_of(reason, self._token)}",
            "check that it is a raddle server, and that this raddle is as new as it",
        )

    def _read(self, response: httpx.Response, accepted: Container[int], wanted: Wanted) -> Reply:
        data = b"".join(self._pieces(response, self._most_bytes))
        status = response.status_code
        is_wanted = status in accepted
        plain = None
        try:
            plain = json_value(data) if data.strip() else None
        except BrokenFormat as error:
            if is_wanted:
                raise self.nonsense(error.message) from error
        if not is_wanted:
            raise refusal(self.host, status, response.headers, plain, wanted, token=self._token)
        return Reply(status, plain)

    def _pieces(self, response: httpx.Response, most_bytes: int) -> Iterator[bytes]:
        size = 0
        coding = response.headers.get("content-encoding", "")
        try:
            for piece in expanded(self._from_wire(response, most_bytes), coding):
                size += len(piece)
                if size > most_bytes:
                    raise self.nonsense(f"it is larger than {most_bytes:,} bytes")
                yield piece
        except BrokenFormat as error:
            raise self.nonsense(error.message) from error

    def _from_wire(self, response: httpx.Response, most_bytes: int) -> Iterator[bytes]:
        size, started = 0, time.monotonic()
        for piece in response.iter_raw():
            size += len(piece)
            seconds = time.monotonic() - started
            if size > most_bytes:
                raise self.nonsense(f"it is larger than {most_bytes:,} bytes")
            if seconds > self.patience.read_seconds + size / _LEAST_BYTES_A_SECOND:
                raise NetworkError(f"{self.host} answers so slowly that it would not end", LATER)
            yield piece

    @contextlib.contextmanager
    def _sent(self, client: httpx.Client, request: httpx.Request) -> Iterator[httpx.Response]:
        """The response, its body still to come; whatever goes wrong until the block ends is an error of ours."""
        try:
            response = client.send(request, stream=True, follow_redirects=False)
            try:
                yield response
            finally:
                response.close()
        except httpx.TimeoutException as error:
            raise Silent(f"{self.host} does not answer in time", LATER) from error
        except _LOST as error:
            raise Lost(f"the connection to {self.host} broke", LATER) from error
        except httpx.ConnectError as error:
            raise self._unreachable(str(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise self._unreachable(str(error) or type(error).__name__) from error

    def _unreachable(self, reason: str) -> NetworkError:
        told = words_of(_NOISE.sub("", reason), self._token) or "no connection"
        hint = "check the server's address and your network"
        name = urlsplit(self.server).hostname or ""
        if "CERTIFICATE" in reason.upper():
            hint = "a certificate of your own authority is trusted where SSL_CERT_FILE names its file"
        elif "[SSL" in reason:
            told = f"it does not speak https there ({told})"
            hint = (
                f"if it is plain http: `raddle login --server http://{self.host}`, with --insecure where the way "
                "is safe (a VPN)"
            )
        elif is_loopback(name):
            hint = "start it: `raddle up` where that runs it, else `raddle serve`"
        return NetworkError(f"{self.host} cannot be reached: {told}", hint)


def _coded(plain: Any) -> tuple[bytes | None, dict[str, str]]:
    """(Body, headers) of a request."""
    if plain is None:
        return None, {}
    body, headers = json_bytes(plain), {"Content-Type": "application/json"}
    if len(body) <= _LEAST_WORTH_CODING:
        return body, headers
    return compressed(body), {**headers, "Content-Encoding": "zstd"}
