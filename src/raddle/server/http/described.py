"""What the API takes and answers, in words that `/openapi.json` and `/docs` show: each body is described here, once.

Handlers read bytes and answer bytes, so that a field which does not fit can be named; what those bytes hold would
be said nowhere if a route did not name it (`operation`). Schemas of values that are structs are made of the structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from litestar import Litestar
from litestar.openapi.spec import (
    Components,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    Reference,
    RequestBody,
    Schema,
    SecurityScheme,
)

from raddle.model.protocol.signing_in import DeviceAuthorization, DeviceShown, Me, TokenAnswer, TokenRefusal
from raddle.model.protocol.sources import DeviceSources, SourceList
from raddle.model.threads.search_answer import SearchAnswer
from raddle.model.threads.summary import ThreadSummary

JSON, FORM, BYTES = "application/json", "application/x-www-form-urlencoded", "application/octet-stream"
TEXT, STREAM = "text/plain", "text/event-stream"
_PROBLEM = "application/problem+json"
_REF = "#/components/schemas/{name}"
SECURITY: list[dict[str, list[str]]] = [{"bearer": []}, {"cookie": []}]
DESCRIPTION = (
    "Threads of one person's devices, kept in step and found. JSON both ways; bodies may be coded with gzip or zstd, "
    "and have at most 64 MiB, expanded (blobs excepted). Errors are RFC 9457 problem+json: `code` stays the same, "
    "`detail` names the field. What somebody else has is 404, whether it is there or not."
)

_Plain = dict[str, Any]


class Says(NamedTuple):
    """One answer: in a sentence, and the name of its schema (empty: no body)."""

    words: str
    schema: str = ""
    kind: str = JSON


NOT_THERE = Says("None that I may read.", "Problem", _PROBLEM)
GONE = Says("Its words were erased for good.", "Problem", _PROBLEM)
NOT_MINE = Says("I may read it, and not do this with it.", "Problem", _PROBLEM)
CONFLICT = Says("The hub holds another version; what the pusher lacks.", "Conflict", _PROBLEM)
NO_DEVICE = Says("None of mine.", "Problem", _PROBLEM)
NOT_NOW = Says("The hub holds another version of the thread.", "Problem", _PROBLEM)
_NOBODY = Says("Nobody is signed in, or nobody any more, by that token.", "Problem", _PROBLEM)
_REST = Says("Anything else that stands in the way: the status, and `code`, say what.", "Problem", _PROBLEM)


def operation(
    answers: Mapping[int, Says],
    *,
    takes: str = "",
    kinds: tuple[str, ...] = (JSON,),
    is_open: bool = False,
) -> type[Operation]:
    """The class of an operation that answers so.

    `takes`: the name of the schema of its body, of these media `kinds`. `is_open`: also to who is not signed in.
    """

    @dataclass
    class Described(Operation):
        def __post_init__(self) -> None:
            responses: dict[str, OpenAPIResponse | Reference] = {
                str(status): _response(says) for status, says in answers.items()
            }
            if not is_open:
                responses["401"] = _response(_NOBODY)
            responses["default"] = _response(_REST)
            self.responses = responses
            self.summary = (self.description or "").partition("\n")[0].rstrip(".")
            if is_open:
                self.security = [{}, *SECURITY]
            if takes:
                content = {kind: OpenAPIMediaType(schema=Reference(_ref(takes))) for kind in kinds}
                self.request_body = RequestBody(content=content, required=True)
            for parameter in self.parameters or ():
                pattern = _PATTERNS.get(getattr(parameter, "name", ""))
                if pattern is not None and not isinstance(parameter, Reference):
                    parameter.schema = Schema(type="string", pattern=pattern)  # type: ignore[arg-type]  # a member of it

    return Described


def _response(says: Says) -> OpenAPIResponse:
    if not says.schema:
        return OpenAPIResponse(description=says.words)
    content = {says.kind: OpenAPIMediaType(schema=Reference(_ref(says.schema)))}
    return OpenAPIResponse(description=says.words, content=content)


def _ref(name: str) -> str:
    return _REF.format(name=name)


_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PATTERNS = {
    "thread_id": f"^T-{_UUID}$",
    "device_id": f"^{_UUID}$",
    "sha256": "^[0-9a-f]{64}$",
    "device": "^[0-9a-f]{8}$",
}


SIGNING_IN = Components(
    security_schemes={
        "bearer": SecurityScheme(
            type="http", scheme="bearer", description="The token of a device: `raddle login`."
        ),
        "cookie": SecurityScheme(
            type="apiKey",
            name="raddle",
            security_scheme_in="cookie",
            description="A browser's session; to change anything, with the form token in X-CSRF-Token.",
        ),
    },
)


def describe(app: Litestar) -> None:
    """Put the schemas of all values into what the application says of itself."""
    values: Any = {**_WRITTEN, **_of_structs()}  # plain JSON Schema, which is passed on as it is
    described = app.openapi_schema.components
    if described is None:
        raise TypeError("the application has no components")
    described.schemas = values


def _of_structs() -> dict[str, _Plain]:
    kinds = [
        *(SearchAnswer, ThreadSummary, SourceList, DeviceSources),
        *(DeviceAuthorization, TokenAnswer, TokenRefusal, DeviceShown, Me),
    ]
    _, made = msgspec.json.schema_components(kinds, ref_template=_REF)
    return made


def _object(words: str, required: str = "", **properties: _Plain) -> _Plain:
    plain: _Plain = {"type": "object", "description": words, "properties": properties}
    return {**plain, "required": required.split()} if required else plain


def _list(of: _Plain, words: str = "") -> _Plain:
    return {"type": "array", "items": of, **({"description": words} if words else {})}


def _text(words: str = "") -> _Plain:
    return {"type": "string", **({"description": words} if words else {})}


def _number(words: str = "") -> _Plain:
    return {"type": "integer", "minimum": 0, **({"description": words} if words else {})}


def _same(name: str) -> _Plain:
    return {"$ref": _ref(name)}


_FLAG: _Plain = {"type": "boolean"}
_EPOCH = _text("Which life of the hub: another one after a restore from a backup.")
_DELTA_FIELDS: dict[str, _Plain] = {
    "base_version": _number("The version that it was made on; 0: a whole state."),
    "version": _number("The thread's version with it."),
    "append": _list(_same("Message"), "Messages that are new, or another form now."),
    "set": {
        "type": "object",
        "additionalProperties": _same("Register"),
        "description": "Path -> register: all that is not a message (`title`, `tag/x`, `is_private`, …).",
    },
}
_PROBLEM_FIELDS: dict[str, _Plain] = {
    "type": _text(),
    "title": _text("The status in words."),
    "status": {"type": "integer"},
    "code": _text("For programs: it stays the same."),
    "detail": _text("What is wrong; it names the field or the id."),
    "hint": _text("What to do."),
}
_WRITTEN: dict[str, _Plain] = {
    "Problem": _object("An error, as RFC 9457 has it.", "type title status code", **_PROBLEM_FIELDS),
    "Conflict": _object(
        "A push on another version than the newest: take the delta in, and push again on `server_version`.",
        "type title status code server_version client_version hub_epoch delta more",
        **_PROBLEM_FIELDS,
        server_version=_number(),
        client_version=_number(),
        hub_epoch=_EPOCH,
        delta=_same("Delta"),
        more=_FLAG,
    ),
    "Message": {
        **_object(
            "One turn. Whatever a device sends is kept and given back, also fields that nobody here knows.",
            "id role",
            id=_text("Unique in its thread; at most 1,000 bytes."),
            role=_text("user, assistant, tool, system, …"),
            parent_id={"description": "The turn that it follows; none: it begins the thread."},
            content={"description": "Its words."},
            ts={"description": "When, as RFC 3339."},
            seq={"description": "Its place in the order of turns."},
            rev={"description": "Which form of it: the greatest stands."},
        ),
        "additionalProperties": True,
    },
    "Register": {
        "description": "A value that devices set: its writes that stand, and which others they had seen.",
        "oneOf": [
            _list(_same("Write"), "The writes; each has seen itself alone."),
            _object(
                "",
                "is",
                **{"is": _list(_same("Write")), "saw": {"type": "object", "additionalProperties": _number()}},
            ),
        ],
    },
    "Write": {
        "type": "array",
        "description": "`[n, device, value]`: the n-th moment of a device's clock, and any JSON value.",
        "prefixItems": [{"type": "integer"}, _text(), {}],
        "minItems": 3,
        "maxItems": 3,
    },
    "Delta": _object(
        "Part of a thread; to join one twice, or late, is safe.", "base_version version", **_DELTA_FIELDS
    ),
    "Push": _object(
        "A Delta, and the epoch of the hub that its base is of.", "", **_DELTA_FIELDS, hub_epoch=_EPOCH
    ),
    "Pushed": _object(
        "It was taken.", "version hub_epoch", version=_number("The thread's version now."), hub_epoch=_EPOCH
    ),
    "Answer": _object(
        "What came after a version. `more`: ask again with `since` = the delta's version.",
        "hub_epoch delta more",
        hub_epoch=_EPOCH,
        delta=_same("Delta"),
        more=_FLAG,
    ),
    "ThreadFile": {
        **_object(
            "A thread as its file: readable fields, the messages, and `stamps`, which say who set what when.",
            "id",
            id=_text("T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c, say."),
            version={},
            conversation=_object("", messages=_list(_same("Message"))),
            metadata={"type": "object"},
            stamps={"type": "object"},
        ),
        "additionalProperties": True,
    },
    "ThreadOrAnswer": {
        "description": "The file; with `since`, the answer.",
        "anyOf": [_same("ThreadFile"), _same("Answer")],
    },
    "Erased": _object("With `purge`: its words are erased.", "id purged", id=_text(), purged=_FLAG),
    "Deleted": {
        "description": "It was taken; with `purge`, it is erased.",
        "anyOf": [_same("Pushed"), _same("Erased")],
    },
    "Visibility": _object(
        "Who may read it.", "visibility", visibility={"enum": ["private", "organization", "public"]}
    ),
    "Change": _object(
        "The newest change of a thread.",
        "id version kind space deleted",
        id=_text(),
        version=_number(),
        kind={"enum": ["put", "gone"]},
        space=_text("Where it lies, or lay."),
        deleted=_FLAG,
    ),
    "Changes": _object(
        "A page of the feed, in the order of commits. `cursor`: where the next begins.",
        "changes cursor hub_epoch more",
        changes=_list(_same("Change")),
        cursor=_text(),
        hub_epoch=_EPOCH,
        more=_FLAG,
    ),
    "Events": _text("Server-sent events: `changes`, each with a page of the feed as its data."),
    "ThreadList": _object(
        "A page of the list. `cursor`: of the next page; empty after the last.",
        "threads cursor",
        threads=_list(_same("ThreadSummary")),
        cursor=_text(),
    ),
    "Sources": _object("Of all my devices.", "sources", sources=_list(_same("DeviceSources"))),
    "Missing": _object("Blobs that I have not given yet.", "missing", missing=_list(_text("SHA-256"))),
    "Bytes": {"type": "string", "format": "binary"},
    "Health": _object(
        "", "status version database", status=_text(), version=_text(), database={"enum": ["ok", "away"]}
    ),
    "Metrics": _text("As Prometheus reads them."),
    "DeviceList": _list(_same("DeviceShown"), "The newest first."),
    "DeviceName": _object("", "name", name=_text("What the device is to be called.")),
    "DeviceRequest": _object(
        "", client_name=_text("What the device is called."), scope=_text("Words with a space between them.")
    ),
    "TokenRequest": _object(
        "",
        "grant_type device_code",
        grant_type=_text("urn:ietf:params:oauth:grant-type:device_code"),
        device_code=_text("As /api/auth/device answered it."),
    ),
}
