"""The device flow of RFC 8628 over a real database: one code, one token, whatever is sent and however often."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from raddle.model.errors import InvalidInput
from raddle.model.protocol.signing_in import DEVICE_GRANT, THREADS_READ
from raddle.server.accounts import device_flow, users
from raddle.server.http.web import WebSettings
from tests.builders_accounts import Site, a_site
from tests.builders_server import connected, new_id

pytest_plugins = ("tests.sites",)


def test_a_device_is_let_in_by_a_person_and_then_asks_as_them(ada: Site) -> None:
    asked = ada.ask(client_name="Ada's laptop")
    code = asked["user_code"]
    assert len(code) == 9
    assert code[4] == "-"
    assert set(code.replace("-", "")) <= set("BCDFGHJKLMNPQRSTVWXZ")
    assert asked["verification_uri"] == "http://raddle.test/device"
    assert asked["verification_uri_complete"] == f"http://raddle.test/device?user_code={code}"
    assert (asked["expires_in"], asked["interval"]) == (900, 5)
    waiting = ada.poll(asked["device_code"])
    assert (waiting.status_code, waiting.json()["error"]) == (400, "authorization_pending")
    assert "Ada&#39;s laptop" in ada.get(f"/device?user_code={code}").text
    assert ada.decide(code).status_code == 200
    minted = ada.poll(asked["device_code"])
    assert minted.status_code == 200
    assert minted.headers["cache-control"] == "no-store"
    answer = minted.json()
    assert answer["token_type"] == "Bearer"
    assert answer["access_token"].startswith("rdl_")
    assert ada.poll(asked["device_code"]).json()["error"] == "invalid_grant"
    ada.client.cookies.clear()
    me = ada.bearer("GET", "/api/me", answer["access_token"]).json()
    assert (me["name"], me["device_name"], me["scopes"]) == ("ada", "Ada's laptop", ["threads"])
    assert me["device_id"] == answer["device_id"]
    assert me["spaces"] == [me["space"]]


def test_no_code_and_no_token_stands_in_the_database(ada: Site) -> None:
    fetched, asked = ada.ask(), ada.ask()
    ada.decide(fetched["user_code"])
    token = ada.poll(fetched["device_code"]).json()["access_token"]
    cookie = ada.client.cookies["raddle"]
    for table in ("device_codes", "devices", "sessions"):
        rows = ada.connection.execute(
            sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(table))
        ).fetchall()
        assert rows
        for secret in (asked["device_code"], asked["user_code"], token, cookie):
            assert secret not in str(rows)
            assert secret.encode().hex() not in str(rows)


def test_a_device_that_is_denied_is_told_so(ada: Site) -> None:
    asked = ada.ask()
    assert ada.decide(asked["user_code"], "deny").status_code == 200
    assert ada.poll(asked["device_code"]).json()["error"] == "access_denied"
    assert ada.connection.execute("SELECT count(*) FROM devices").fetchone() == (0,)


def test_a_device_that_asks_too_often_is_told_to_slow_down_by_five_seconds_each_time(ada: Site) -> None:
    code = ada.ask()["device_code"]
    assert ada.poll(code).json()["error"] == "authorization_pending"
    for interval in (10, 15):
        slower = ada.poll(code)
        assert (slower.status_code, slower.json()["error"]) == (400, "slow_down")
        assert slower.json()["interval"] == interval
        assert slower.headers["retry-after"] == str(interval)
    ada.wind("device_codes", "polled_at", 10)
    assert ada.poll(code).json()["error"] == "slow_down"
    ada.wind("device_codes", "polled_at", 20)
    assert ada.poll(code).json()["error"] == "authorization_pending"


def test_a_code_that_ran_out_lets_nobody_in_even_if_it_was_said_yes_to(ada: Site) -> None:
    asked, late = ada.ask(), ada.ask()
    assert ada.decide(asked["user_code"]).status_code == 200
    ada.wind("device_codes", "expires_at", 900)
    assert ada.poll(asked["device_code"]).json()["error"] == "expired_token"
    assert ada.poll(late["device_code"]).json()["error"] == "expired_token"
    assert ada.get(f"/device?user_code={late['user_code']}").status_code == 422
    assert device_flow.approve(ada.connection, late["user_code"], ada.user) is None
    assert ada.connection.execute("SELECT count(*) FROM devices").fetchone() == (0,)


def test_of_many_who_ask_with_one_code_at_once_one_gets_a_token(ada: Site, conninfo: str) -> None:
    asked = ada.ask()
    ada.decide(asked["user_code"])
    barrier = threading.Barrier(6)

    def fetch(_: int) -> bool:
        with connected(conninfo) as connection:
            barrier.wait()
            found = device_flow.poll(connection, asked["device_code"], new_id=new_id)
            return isinstance(found, device_flow.Minted)

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(fetch, range(6))) == 1
    assert ada.connection.execute("SELECT count(*) FROM devices").fetchone() == (1,)


def test_a_device_is_decided_upon_once(ada: Site) -> None:
    asked = ada.ask()
    assert ada.decide(asked["user_code"], "deny").status_code == 200
    user = ada.user
    assert device_flow.approve(ada.connection, asked["user_code"], user) is None


def test_who_was_disabled_after_saying_yes_lets_nothing_in(ada: Site) -> None:
    asked = ada.ask()
    ada.decide(asked["user_code"])
    user = ada.user
    users.disable_user(ada.connection, user)
    assert ada.poll(asked["device_code"]).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("typed", ["{}", "{} ", "{:l}", "x{}", "-{}-"])
def test_a_code_is_read_however_it_is_typed(typed: str) -> None:
    code = "BCDF-GHJK"
    text = code.lower().replace("-", " ") if typed == "{:l}" else typed.replace("{}", code)
    if "x" in typed:
        with pytest.raises(InvalidInput):
            device_flow.parse_user_code(text)
    else:
        assert device_flow.parse_user_code(text) == code


def test_a_token_is_refused_in_the_words_of_the_rfc(site: Site) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "invalid_request"),
        ({"grant_type": DEVICE_GRANT}, "invalid_request"),
        ({"grant_type": "password", "device_code": "x"}, "unsupported_grant_type"),
        ({"grant_type": DEVICE_GRANT, "device_code": "x"}, "invalid_grant"),
        ({"grant_type": DEVICE_GRANT, "device_code": "x" * 10_000}, "invalid_grant"),
        ({"grant_type": DEVICE_GRANT, "device_code": "\0"}, "invalid_grant"),
        ({"grant_type": [DEVICE_GRANT], "device_code": 1}, "invalid_request"),
        ({"grant_type": DEVICE_GRANT, "device_code": None}, "invalid_request"),
    ]
    for fields, error in cases:
        answer = site.client.post("/api/auth/token", json=fields)
        assert (answer.status_code, answer.json()["error"]) == (400, error)
        assert answer.headers["cache-control"] == "no-store"


def test_a_device_may_ask_in_json_and_for_reading_alone(ada: Site) -> None:
    asked = ada.client.post("/api/auth/device", json={"client_name": "ci", "scopes": [THREADS_READ]}).json()
    ada.decide(asked["user_code"])
    token = ada.poll(asked["device_code"]).json()["access_token"]
    assert ada.bearer("GET", "/api/probe", token).text == "ada"
    refused = ada.bearer("POST", "/api/probe", token)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert ada.bearer("POST", "/api/auth/logout", token).status_code == 204


def test_a_scope_that_is_unknown_is_refused(site: Site) -> None:
    cases: list[dict[str, Any]] = [{"scope": "root"}, {"scopes": ["root"]}, {"scopes": [1]}, {"scope": 1}]
    for fields in cases:
        answer = site.client.post("/api/auth/device", json=fields)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)
_FIELDS = st.dictionaries(
    st.sampled_from(["client_name", "client_id", "scope", "scopes", "grant_type", "device_code"]), _JSON
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=_FIELDS | _JSON, path=st.sampled_from(["/api/auth/device", "/api/auth/token"]))
def test_whatever_json_is_sent_the_answer_is_one_of_the_rfcs(site: Site, body: Any, path: str) -> None:
    site.connection.execute("DELETE FROM rate_limits")
    data = json.dumps(body).encode()
    answer = site.client.post(path, content=data, headers={"Content-Type": "application/json"})
    assert answer.status_code in {200, 400}
    if answer.status_code == 400:
        assert answer.json()["error"] in {
            "invalid_request",
            "invalid_scope",
            "unsupported_grant_type",
            "invalid_grant",
        }


def test_a_body_that_does_not_fit_is_refused(site: Site) -> None:
    for body, kind in [
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
        (b"client_name=%ff", "application/x-www-form-urlencoded"),
        (b"client_name=%00", "application/x-www-form-urlencoded"),
        (b"&".join(b"a%d=1" % n for n in range(1_000)), "application/x-www-form-urlencoded"),
        (b"[" * 50_000, "application/json"),
        (b'{"client_name": "\\ud800"}', "application/json"),
        (b"{}", "text/plain"),
        (b"{}", "multipart/form-data; boundary=x"),
        (b"{", "application/json"),
    ]:
        answer = site.client.post("/api/auth/device", content=body, headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body[:60]


def test_a_huge_body_is_refused_as_too_large(site: Site) -> None:
    body = b'{"client_name": "' + b"x" * 1_000_000 + b'"}'
    answer = site.client.post("/api/auth/device", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_host_header_that_is_no_host_is_refused(site: Site) -> None:
    answer = site.client.post("/api/auth/device", headers={"Host": "evil.test/x?"})
    assert answer.status_code in {400, 422}, answer.text


def test_the_address_that_a_device_is_told_is_the_one_that_people_use(conninfo: str) -> None:
    with a_site(conninfo, WebSettings(public_url="https://raddle.example.org/")) as site:
        assert site.ask()["verification_uri"] == "https://raddle.example.org/device"
    with a_site(conninfo, WebSettings(is_behind_proxy=True)) as site:
        headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "front.test"}
        asked = site.client.post("/api/auth/device", headers=headers).json()
        assert asked["verification_uri"] == "https://front.test/device"


def test_the_description_of_the_api_says_what_a_device_sends(site: Site) -> None:
    schema = site.client.app.openapi_schema.to_schema()
    body = schema["paths"]["/api/auth/token"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    assert body["application/json"]["schema"]["$ref"] == "#/components/schemas/TokenRequest"
