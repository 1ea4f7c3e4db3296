"""What `/openapi.json` says of the API is so: made-up requests of every kind are answered as it describes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.builders import THREAD_ID, a_message
from tests.builders_routes import Asker, all_calls, an_application, push_body
from tests.builders_served import ADDRESS, a_token, serving
from tests.builders_server import connected, prepare
from tests.contract.remote_laws import OTHER_ID, THIRD_ID, new
from tests.postgres import NewDatabase

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports, which is not ours to mend
    import schemathesis
    from schemathesis.checks import CHECKS, load_all_checks
    from schemathesis.core.result import Ok
    from schemathesis.core.transport import Response

pytest_plugins = ("tests.postgres",)

ASKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
ENDLESS = {"/api/events"}
FEW, MANY = 6, 400


@pytest.fixture
def asker(new_database: NewDatabase, tmp_path: Path) -> Iterator[Asker]:
    """Somebody with threads."""
    conninfo = new_database(prepare)
    with (
        connected(conninfo) as connection,
        serving(conninfo, tmp_path / "blobs") as served,
        Asker(served, a_token(connection)) as asker,
    ):
        yield asker


def the_schema() -> dict[str, Any]:
    plain: dict[str, Any] = an_application().openapi_schema.to_schema()
    return plain


def test_every_call_of_the_api_is_described() -> None:
    paths = the_schema()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    calls = {
        (call.method, call.path.replace(":str", ""))
        for call in all_calls()
        if call.path.startswith("/api/") or call.path in {"/health", "/metrics"}
    }
    assert described == calls
    for methods in paths.values():
        for method, call in methods.items():
            assert call["description"], call
            assert "default" in call["responses"]
            takes_body = method in {"put", "post", "patch"} and call["operationId"] not in BODILESS
            assert ("requestBody" in call) == takes_body, call["operationId"]


BODILESS = {"ApiAuthLogoutLogOut", "ApiThreadsThreadIdRestoreRestoreThread"}


def test_every_name_in_the_schema_is_defined_and_used() -> None:
    schema = the_schema()
    text = json.dumps(schema)
    names = set(schema["components"]["schemas"])
    used = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used == names


def test_what_a_device_sends_for_its_token_is_described() -> None:
    assert the_schema()["components"]["schemas"]["TokenRequest"]["required"] == ["grant_type", "device_code"]


def test_the_page_shows_each_call_and_each_value(asker: Asker) -> None:
    page = asker.ask("GET", "/docs").text
    schema = asker.ask("GET", "/openapi.json").json()
    for path in schema["paths"]:
        assert path in page
    for name in schema["components"]["schemas"]:
        assert f'id="{name}"' in page


def check_all(asker: Asker, examples: int) -> None:
    """Ask each operation so many things, and hold the answers against the schema."""
    load_all_checks()
    checks = [CHECKS.get_one(name) for name in ASKED]
    for thread_id in (THREAD_ID, OTHER_ID):
        asker.ask("POST", f"/api/threads/{thread_id}/delta", push_body(new(a_message())))
    schema = schemathesis.openapi.from_dict(the_schema())
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.path in ENDLESS or operation.path == "/api/auth/logout":
            continue

        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), thread=st.sampled_from([THREAD_ID, OTHER_ID, THIRD_ID, ""]))
        def holds(case: Any, thread: str) -> None:
            if thread and "thread_id" in case.path_parameters:
                case.path_parameters["thread_id"] = thread
            if thread and isinstance(case.body, dict) and "id" in case.body:
                case.body["id"] = thread
            answer = send(asker, case)
            case.validate_response(Response.from_httpx(answer, verify=False), checks=checks)

        holds()


def send(asker: Asker, case: Any) -> httpx.Response:
    """Ask it, over the socket, as who we are."""
    sent = case.as_transport_kwargs(base_url=ADDRESS)
    sent["headers"] = {name: value for name, value in sent["headers"].items() if name != "Authorization"}
    cookies = sent.pop("cookies", None) or {}
    if cookies:
        sent["headers"]["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    if isinstance(sent.get("data"), str | bytes):
        sent["content"] = sent.pop("data")
    return asker.client.request(**sent)


def test_made_up_requests_are_answered_as_the_schema_says(asker: Asker) -> None:
    check_all(asker, FEW)


@pytest.mark.soak
def test_many_made_up_requests_are_answered_as_the_schema_says(asker: Asker) -> None:
    check_all(asker, MANY)
