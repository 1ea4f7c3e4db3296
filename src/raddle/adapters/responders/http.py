"""A server of models, asked over HTTP: a key that goes into one header and nowhere else, and every failure told apart.

The only module of this room that imports httpx, and only when something is asked. What a server sends is a stranger's:
how much of it is kept and what of it may be shown is bounded here, so that no kind of responder can forget the key in
an error.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from raddle import __version__
from raddle.adapters.event_stream import Event, EventParser
from raddle.adapters.hosts import host_of, is_loopback, is_safe
from raddle.adapters.responders.strangers import code_in, is_event_data, said_in, told, wait_of
from raddle.model.errors import BrokenFormat, NetworkError, Rejected
from raddle.model.protocol.wire import json_bytes
from raddle.model.tolerant_json import decode_tolerantly

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
MOST_ANSWER_BYTES = 64 << 20
"""More is no answer to a question of ours."""
_MOST_REFUSAL_BYTES = 1 << 20
_REFUSAL_SECONDS = 30.0
"""For the words of a refusal, however slowly they come."""
_LONGEST_KEY = 8192
_KEY = re.compile(rf"[!-~]{{1,{_LONGEST_KEY}}}\Z")
_NOISE = re.compile(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)")
"""What Python adds to the system's words: the number of an error, a line of its own source."""
_NEVER_BETTER = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes that come with a 429 and do not go away by waiting."""

DONE = "[DONE]"
"""The data of the event that ends a stream."""
IsWhole = Callable[[dict[str, Any]], bool]
Key = Callable[[], str | None]
"""The key of an API, asked for when a request is made; None: there is none."""
Header = Callable[[str], tuple[str, str]]
"""Name and value of the header that carries a key."""


def bearer(key: str) -> tuple[str, str]:
    """As most APIs take a key."""
    return "Authorization", f"Bearer {key}"


class Refused(Rejected):
    """The server said no, and will say so again. `status`: its HTTP status."""

    def __init__(self, message: str, hint: str, *, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


class Failing(NetworkError):
    """It did not work, and may when it is tried again.

    `status`: None where nothing was answered. `wait_seconds`: how long the server says to wait; None: it does not.
    `was_sent`: the request may have reached the server, so that something may be going on there.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        status: int | None = None,
        wait_seconds: float | None = None,
        was_sent: bool = True,
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.wait_seconds = wait_seconds
        self.was_sent = was_sent


class Reply(NamedTuple):
    """What was answered: the status, headers by lower-case name, and the JSON value (None: no body)."""

    status: int
    headers: Mapping[str, str]
    plain: Any


class Endpoint:
    """Where one responder's API is, and how it is asked. Nothing is connected until `connected`.

    `url`: its base; paths are put behind it. `name`: the responder's, for messages. `key_hint`: how a person gives it
    a key. `needs_key`: it is asked for only with one; None: where it is https and not this machine.
    `timeout_seconds`: without a sign of life. `socket_path`: the server listens there, not at its address.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        key: Key,
        key_hint: str,
        header: Header = bearer,
        needs_key: bool | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 600.0,
        most_bytes: int = MOST_ANSWER_BYTES,
        socket_path: Path | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.name = name
        self.key_hint = key_hint
        self.timeout_seconds = timeout_seconds
        self.most_bytes = most_bytes
        self._key = key
        self._header = header
        self._needs_key = needs_key
        self._headers = dict(headers or {})
        self._socket_path = socket_path

    @property
    def host(self) -> str:
        """What a person calls it; empty where the address is none."""
        with contextlib.suppress(ValueError):
            return host_of(self.url).rpartition("@")[2]
        return ""

    @contextlib.contextmanager
    def connected(self) -> Iterator[Connection]:
        """Ask it, over connections that are gone when the block ends. Rejected where it cannot be asked at all."""
        self._check_url()
        key = self._usable_key()
        client = self._client(key)
        try:
            yield Connection(self, client, key)
        finally:
            client.close()

    def _check_url(self) -> None:
        hint = f"write `url` of [responders.{self.name}] like https://api.example.org/v1"
        try:
            parts = urlsplit(self.url)
            is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            is_one = False
        else:
            is_one = is_one and self.url.isprintable() and not re.search(r"[\s\\@?#]", self.url)
        if not is_one:
            raise Rejected(f"the address of {self.name} is none that can be asked", hint)

    def _usable_key(self) -> str:
        key = (self._key() or "").strip()
        is_needed = self._needs_key
        if is_needed is None:
            parts = urlsplit(self.url)
            is_needed = parts.scheme == "https" and not is_loopback(parts.hostname or "")
        if not key:
            if is_needed:
                raise Rejected(f"no key for {self.name}", self.key_hint)
            return ""
        if _KEY.match(key) is None:
            raise Rejected(f"the key for {self.name} is none: it holds what no key does", self.key_hint)
        if not is_safe(self.url):
            raise Rejected(
                f"{self.host} is not encrypted: anybody on the way could read the key for {self.name}",
                f'use https, or say `key_env = "none"` in [responders.{self.name}]: then it gets no key',
            )
        return key

    def _client(self, key: str) -> httpx.Client:
        import httpx  # 160 ms, for who asks  # noqa: PLC0415

        headers = {"User-Agent": f"raddle/{__version__}", "Accept-Encoding": "identity", **self._headers}
        if key:
            name, value = self._header(key)
            headers[name] = value
        return httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(self.timeout_seconds, connect=CONNECT_SECONDS),
            transport=None if self._socket_path is None else httpx.HTTPTransport(uds=str(self._socket_path)),
            # Proxies and certificates are the system's business; what goes to this machine goes past any proxy.
            trust_env=self.url.startswith("https:"),
            follow_redirects=False,
        )


class Connection:
    """An endpoint while it is asked. Whatever goes wrong is Refused, Failing, Rejected, or a plain NetworkError."""

    def __init__(self, endpoint: Endpoint, client: httpx.Client, key: str) -> None:
        self._endpoint = endpoint
        self._client = client
        self._key = key

    def ask(
        self,
        method: str,
        path: str,
        plain: Any = None,
        *,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """The JSON answer to one request; `plain` goes as JSON. NetworkError where the answer cannot be read."""
        asked = {"Accept": "application/json", **(headers or {})}
        with self._sent(method, path, plain, query, asked) as response:
            data = b"".join(self._pieces(response))
            try:
                value = decode_tolerantly(data)[0] if data.strip() else None
            except BrokenFormat as error:
                raise self.nonsense(error.message) from error
            return Reply(response.status_code, dict(response.headers), value)

    @contextlib.contextmanager
    def events(
        self,
        method: str,
        path: str,
        plain: Any = None,
        *,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        is_whole: IsWhole | None = None,
    ) -> Iterator[Iterator[Event]]:
        """The events of a stream as they come; the iterator ends where the stream does, whether it is whole or not.

        `is_whole`: is this JSON value all that a stream would tell? Some servers stream nothing; then it comes as one
        event, and the mark of the end behind it.
        """
        asked = {"Accept": "text/event-stream", "Cache-Control": "no-store", **(headers or {})}
        with self._sent(method, path, plain, query, asked) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind.endswith("json") and is_whole is not None:
                yield iter(self._told_at_once(response, is_whole))
                return
            if kind != "text/event-stream":
                said = self.told(said_in(_beginning(response)))
                raise self.nonsense(f"no stream of events but {said or 'nothing'}")
            yield self._events(response)

    def _told_at_once(self, response: httpx.Response, is_whole: IsWhole) -> list[Event]:
        data = b"".join(self._pieces(response))
        plain: Any = data.decode("utf-8", "replace")
        with contextlib.suppress(BrokenFormat):
            plain = decode_tolerantly(data)[0]
        if not (isinstance(plain, dict) and is_whole(plain)):
            raise self.nonsense(f"no stream of events but {self.told(said_in(plain)) or 'nothing'}")
        return [Event(kind="message", data=said) for said in (data.decode("utf-8", "replace"), DONE)]

    def told(self, text: Any) -> str:
        """A stranger's text as one short line without the key; empty where it is none."""
        return told(text, self._key)

    def without_key(self, text: str) -> str:
        """A model's words as they are, but for the key, should the server repeat it among them."""
        return text.replace(self._key, "***") if self._key else text

    def nonsense(self, reason: str) -> NetworkError:
        """What to raise for an answer that cannot be read."""
        return NetworkError(
            f"what {self._endpoint.host} answered cannot be read: {self.told(reason)}",
            f"check `url` of [responders.{self._endpoint.name}]",
        )

    def _events(self, response: httpx.Response) -> Iterator[Event]:
        parser = EventParser(self._endpoint.most_bytes)
        try:
            for piece in self._pieces(response):
                yield from parser.feed(piece)
        except BrokenFormat as error:
            raise self.nonsense(error.message) from error
        # A server may end without the blank line that ends an event; half an event is none.
        yield from (event for event in parser.feed(b"\n\n") if is_event_data(event.data))

    def _pieces(self, response: httpx.Response) -> Iterator[bytes]:
        size = 0
        if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
            raise self.nonsense("it is coded, though nobody asked for that")
        for piece in response.iter_raw():
            size += len(piece)
            if size > self._endpoint.most_bytes:
                raise self.nonsense(f"it is larger than {self._endpoint.most_bytes:,} bytes")
            yield piece

    @contextlib.contextmanager
    def _sent(
        self,
        method: str,
        path: str,
        plain: Any,
        query: Mapping[str, str | int] | None,
        headers: Mapping[str, str],
    ) -> Iterator[httpx.Response]:
        """The successful response, its body still to come; whatever goes wrong in the block is an error of ours."""
        import httpx  # noqa: PLC0415

        content = None if plain is None else json_bytes(plain)
        coded = {**headers, "Content-Type": "application/json"} if content is not None else dict(headers)
        try:
            request = self._client.build_request(
                method, self._endpoint.url + path, params=query, content=content, headers=coded
            )
            response = self._client.send(request, stream=True)
            try:
                if not 200 <= response.status_code < 300:
                    raise self._failure(response)
                yield response
            finally:
                response.close()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> Exception:
        import httpx  # noqa: PLC0415

        host = self._endpoint.host
        if isinstance(error, httpx.ConnectTimeout):
            return Failing(f"{host} does not answer", "check your network", was_sent=False)
        if isinstance(error, httpx.TimeoutException):
            seconds = self._endpoint.timeout_seconds
            hint = f"`timeout_seconds` of [responders.{self._endpoint.name}] says how long to wait"
            return NetworkError(f"{host} gave no sign of life for {seconds:g} s", hint)
        if isinstance(error, httpx.ConnectError):
            return self._unreachable(str(error))
        if isinstance(error, httpx.NetworkError | httpx.ProtocolError):
            return Failing(f"the connection to {host} broke")
        return Rejected(
            f"{host} cannot be asked: {self.told(str(error)) or type(error).__name__}",
            f"check `url` of [responders.{self._endpoint.name}]",
        )

    def _unreachable(self, reason: str) -> Exception:
        host = self._endpoint.host
        said = self.told(_NOISE.sub("", reason)) or "no connection"
        if "CERTIFICATE" in reason.upper():
            hint = "a certificate of your own authority is trusted where SSL_CERT_FILE names its file"
            return Rejected(f"{host} cannot be trusted: {said}", hint)
        hint = f"check that it runs, and `url` of [responders.{self._endpoint.name}]"
        return Failing(f"{host} cannot be reached: {said}", hint, was_sent=False)

    def _failure(self, response: httpx.Response) -> Exception:
        status, host = response.status_code, self._endpoint.host
        plain = _beginning(response)
        said = self.told(said_in(plain))
        shown = f"{status}: {said}" if said else f"{status}"
        if _may_pass(status) and code_in(plain) not in _NEVER_BETTER:
            wait = wait_of(response.headers)
            return Failing(f"{host} cannot answer now ({shown})", status=status, wait_seconds=wait)
        return Refused(f"{host} refuses ({shown})", self._hint(status), status=status)

    def _hint(self, status: int) -> str:
        name = self._endpoint.name
        if status in {401, 403}:
            return f"check the key: {self._endpoint.key_hint}"
        if status in {402, 429}:
            return "check what your account there may still use"
        if status < 400:
            return f"it sends raddle elsewhere, where the key does not go by itself: check `url` of {name}"
        if status == 404:
            return f"check `url` and `model` of [responders.{name}]"
        if status == 413:
            return f"send less of the conversation: `budget_tokens` of [responders.{name}]"
        return f"check `model` and what else [responders.{name}] says; `budget_tokens` sends less"


def _may_pass(status: int) -> bool:
    return status in {408, 429} or status >= 500


def _beginning(response: httpx.Response) -> Any:
    """The JSON value of a body that is not wanted, or else the beginning of its text."""
    data, started = bytearray(), time.monotonic()
    for piece in response.iter_raw():
        data += piece
        if len(data) > _MOST_REFUSAL_BYTES or time.monotonic() - started > _REFUSAL_SECONDS:
            # Not into the middle of a key, which would not be known for one.
            return data[: max(0, _MOST_REFUSAL_BYTES - _LONGEST_KEY)].decode("utf-8", "replace")
    with contextlib.suppress(BrokenFormat):
        return decode_tolerantly(bytes(data))[0]
    return data.decode("utf-8", "replace")
