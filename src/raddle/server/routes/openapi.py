"""`/openapi.json`, and the same to read: `/docs`. Made from the routes, so that neither can say what is not so."""

from __future__ import annotations

import html
import re
from typing import Any

import msgspec
from litestar import Response, get

from raddle.server.http.given import AnyRequest
from raddle.server.routes.json_bodies import json_response

_CODE = re.compile(r"`([^`]+)`")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@get("/openapi.json", sync_to_thread=False, include_in_schema=False)
def show_schema(request: AnyRequest) -> Response[bytes]:
    """The API in OpenAPI 3.1."""
    return json_response(request.app.openapi_schema.to_schema())


@get("/docs", sync_to_thread=False, include_in_schema=False)
def show_docs(request: AnyRequest) -> Response[str]:
    """The API as a page that loads nothing from anywhere."""
    schema = request.app.openapi_schema.to_schema()
    return Response(_page(schema), media_type="text/html; charset=utf-8", headers=_HEADERS)


def _page(schema: dict[str, Any]) -> str:
    calls = [
        _call(method, path, call)
        for path, methods in sorted(schema["paths"].items())
        for method, call in methods.items()
        if isinstance(call, dict)
    ]
    values = [_value(name, value) for name, value in sorted(schema["components"]["schemas"].items())]
    title = f"raddle {html.escape(schema['info']['version'])}: HTTP API"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"></head><body><main>'
        f"<h1>{title}</h1><p>{_told(schema['info'].get('description', ''))} "
        'The same for programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{''.join(calls)}<h2>Values</h2>{''.join(values)}</main></body></html>"
    )


def _call(method: str, path: str, call: dict[str, Any]) -> str:
    rows = [
        f"<li><code>{html.escape(one['name'])}</code> ({html.escape(one['in'])}"
        f"{', required' if one.get('required') else ''})</li>"
        for one in call.get("parameters", [])
    ]
    content = call.get("requestBody", {}).get("content", {})
    rows += [f"<li>body: {html.escape(kind)}: {_named(one)}</li>" for kind, one in content.items()]
    rows += [
        f"<li>{html.escape(status)}: {_told(answer['description'])} "
        f"{' '.join(_named(one) for one in answer.get('content', {}).values())}</li>"
        for status, answer in call["responses"].items()
    ]
    is_open = any(not each for each in call.get("security", []))
    return (
        f"<section><h2><code>{method.upper()} {html.escape(path)}</code></h2>"
        f"<p>{_told(call.get('description') or '')}{' <em>Open to all.</em>' if is_open else ''}</p>"
        f"<ul>{''.join(rows)}</ul></section>"
    )


def _told(text: str) -> str:
    """A sentence; what stands in backticks is code."""
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def _named(content: dict[str, Any]) -> str:
    name = html.escape(content.get("schema", {}).get("$ref", "").rpartition("/")[2])
    return f'<a href="#{name}">{name}</a>'


def _value(name: str, value: dict[str, Any]) -> str:
    shown = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return f'<section id="{html.escape(name)}"><h3>{html.escape(name)}</h3><pre>{html.escape(shown)}</pre></section>'


HANDLERS = [show_schema, show_docs]
