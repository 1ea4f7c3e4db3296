"""Accounts and devices over a real database: people, tokens, who is told what, and what is counted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import PasswordHasher
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import ConflictError, Forbidden, InvalidInput, NotFound, TooManyRequests
from raddle.model.protocol.signing_in import THREADS
from raddle.server.accounts import devices, pruning, rate_limits, setup, users
from raddle.server.accounts.callers import caller_of_token, is_alive
from raddle.server.accounts.names import parse_user_name
from raddle.server.accounts.rate_limits import Limit, network_of
from raddle.server.accounts.sessions import form_token
from raddle.server.http.web import WebSettings
from tests.builders_accounts import PASSWORD, Site, a_site, a_user
from tests.builders_server import connected, new_id

pytest_plugins = ("tests.sites",)


def _token(site: Site) -> str:
    """The token of a device that was let in."""
    asked = site.ask()
    assert site.decide(asked["user_code"]).status_code == 200
    token: str = site.poll(asked["device_code"]).json()["access_token"]
    return token


def test_a_new_person_has_a_space_of_their_own_and_signs_in_by_any_spelling_of_their_name(site: Site) -> None:
    user = a_user(site.connection, "  Ａda ")
    assert users.find_user(site.connection, "ADA") == user
    assert users.check_password(site.connection, "Ada", PASSWORD) == user
    found = site.connection.execute(
        "SELECT s.kind, s.name, m.role FROM users u JOIN spaces s ON s.id = u.personal_space"
        " JOIN memberships m ON m.space_id = s.id AND m.user_id = u.id"
    ).fetchall()
    assert found == [("personal", "ada", "owner")]


def test_a_name_belongs_to_one_person_and_a_refused_one_leaves_no_space_behind(site: Site) -> None:
    a_user(site.connection, "ada")
    with pytest.raises(ConflictError):
        a_user(site.connection, "ADA")
    assert site.connection.execute("SELECT count(*) FROM spaces").fetchone() == (1,)


@pytest.mark.parametrize(
    "name", ["", "   ", "x" * 65, "x" * 10_000, "a\0b", "a\nb", "a\u202eb", "a\u200bb", "\ud800"]
)
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        parse_user_name(name)


@given(st.text(max_size=80))
def test_a_name_that_was_taken_in_is_its_own_spelling(text: str) -> None:
    try:
        name = parse_user_name(text)
    except InvalidInput:
        return
    assert parse_user_name(name) == name
    assert 1 <= len(name) <= 64


def test_who_has_no_password_or_was_disabled_comes_in_by_none(site: Site) -> None:
    a_user(site.connection, "no-password", None)
    user = a_user(site.connection, "ada")
    users.disable_user(site.connection, user)
    for name in ("no-password", "ada", "nobody", "\0", ""):
        assert users.check_password(site.connection, name, PASSWORD) is None
    users.enable_user(site.connection, user)
    assert users.check_password(site.connection, "ada", PASSWORD) == user


def test_a_password_is_kept_as_argon2id_and_bounded_in_length(site: Site) -> None:
    user = a_user(site.connection)
    (stored,) = site.connection.execute("SELECT password_hash FROM users").fetchone() or ("",)
    assert stored.startswith("$argon2id$")
    for wrong in ("short", "x" * 513, "\ud800" * 9):
        with pytest.raises(InvalidInput) as refused:
            users.set_password(site.connection, user, wrong)
        assert wrong not in refused.value.message
    assert users.check_password(site.connection, "ada", PASSWORD + "x" * 100_000) is None
    users.set_password(site.connection, user, "é" * 8)
    assert users.check_password(site.connection, "ada", "e\u0301" * 8) == user


def test_a_password_that_was_hashed_at_other_costs_is_hashed_anew_when_it_is_used(site: Site) -> None:
    user = a_user(site.connection)
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    site.connection.execute("UPDATE users SET password_hash = %s", [weak])
    assert users.check_password(site.connection, "ada", PASSWORD) == user
    (stored,) = site.connection.execute("SELECT password_hash FROM users").fetchone() or ("",)
    assert stored != weak
    assert users.check_password(site.connection, "ada", PASSWORD) == user


def test_a_set_up_link_is_good_once_and_for_a_day_and_while_nobody_is_here(site: Site) -> None:
    first, second = setup.new_link(site.connection), setup.new_link(site.connection)
    assert first is not None
    assert second is not None
    assert first not in str(site.connection.execute("SELECT * FROM setup_links").fetchall())
    with pytest.raises(InvalidInput):
        setup.use_link(site.connection, first, "ada", "short", new_id=new_id)
    setup.use_link(site.connection, first, "ada", PASSWORD, new_id=new_id)
    for link in (first, second, "", "x", "\ud800"):
        with pytest.raises(Forbidden):
            setup.use_link(site.connection, link, "eve", PASSWORD, new_id=new_id)
    assert setup.new_link(site.connection) is None
    assert site.connection.execute("SELECT name, is_admin FROM users").fetchall() == [("ada", True)]


def test_a_set_up_link_of_yesterday_is_not_good(site: Site) -> None:
    link = setup.new_link(site.connection)
    site.wind("setup_links", "expires_at", 24 * 3600)
    assert link is not None
    assert not setup.is_link_open(site.connection, link)


def test_of_two_who_use_two_links_at_once_one_becomes_the_admin(conninfo: str) -> None:
    with connected(conninfo) as connection:
        links = [setup.new_link(connection) or "" for _ in range(4)]
    barrier = threading.Barrier(4)

    def use(number: int) -> bool:
        with connected(conninfo) as connection:
            barrier.wait()
            try:
                setup.use_link(connection, links[number], f"user{number}", PASSWORD, new_id=new_id)
            except Forbidden:
                return False
            return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(use, range(4))) == [False, False, False, True]


def test_a_revoked_token_is_refused_at_once_by_every_process(conninfo: str, ada: Site) -> None:
    token = _token(ada)
    ada.client.cookies.clear()
    with a_site(conninfo) as other:
        assert other.bearer("GET", "/api/me", token).status_code == 200
        assert other.bearer("POST", "/api/auth/logout", token).status_code == 204
        for process in (ada, other):
            refused = process.bearer("GET", "/api/me", token)
            assert (refused.status_code, refused.json()["code"]) == (401, "not_signed_in")
            assert refused.headers["www-authenticate"] == "Bearer"


def test_a_token_of_who_was_disabled_is_refused(ada: Site) -> None:
    token = _token(ada)
    caller = caller_of_token(ada.connection, token)
    assert caller is not None
    assert is_alive(ada.connection, caller)
    users.disable_user(ada.connection, caller.user)
    assert ada.bearer("GET", "/api/me", token).status_code == 401
    assert not is_alive(ada.connection, caller)
    assert ada.get("/devices").status_code == 303


def test_devices_are_listed_renamed_and_revoked_by_their_own_person_alone(site: Site) -> None:
    ada, eve = a_user(site.connection, "ada"), a_user(site.connection, "eve")
    laptop, desk = (
        devices.mint(site.connection, ada, name, [THREADS], new_id=new_id) for name in ("laptop", "desk")
    )
    other = devices.mint(site.connection, eve, "eve's", [THREADS], new_id=new_id)
    listed = site.bearer("GET", "/api/devices", laptop).json()
    assert [(device["name"], device["is_current"]) for device in listed] == [
        ("desk", False),
        ("laptop", True),
    ]
    path = f"/api/devices/{listed[0]['id']}"
    for method, options in (("PATCH", {"json": {"name": "mine"}}), ("DELETE", {})):
        refused = site.bearer(method, path, other, **options)
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    assert site.bearer("PATCH", path, laptop, json={"name": "Desk 🖥"}).status_code == 204
    assert site.bearer("GET", "/api/me", desk).json()["device_name"] == "Desk 🖥"
    assert site.bearer("DELETE", path, laptop).status_code == 204
    assert site.bearer("GET", "/api/me", desk).status_code == 401
    assert site.bearer("DELETE", path, laptop).status_code == 404
    assert [device["name"] for device in site.bearer("GET", "/api/devices", laptop).json()] == ["laptop"]


def test_a_device_keeps_its_name_if_the_new_one_is_none(site: Site) -> None:
    token = devices.mint(site.connection, a_user(site.connection), "laptop", [THREADS], new_id=new_id)
    device = site.bearer("GET", "/api/me", token).json()["device_id"]
    for name in ["", "\0", "x" * 101, "x" * 10_000, "a\nb", 7, None, ["x"], {"a": 1}, "\u202e"]:
        refused = site.bearer("PATCH", f"/api/devices/{device}", token, json={"name": name})
        assert refused.status_code == 422, name
    assert site.bearer("GET", "/api/me", token).json()["device_name"] == "laptop"


def test_a_device_that_is_not_there_is_not_found(site: Site) -> None:
    token = devices.mint(site.connection, a_user(site.connection), "laptop", [THREADS], new_id=new_id)
    for device in ["x", "%00", "%ff", "..", "00000000-0000-0000-0000-000000000000", "9" * 5_000]:
        assert site.bearer("DELETE", f"/api/devices/{device}", token).status_code in {400, 404, 405}, device


def test_what_is_no_token_is_refused_even_where_anybody_may_ask(site: Site) -> None:
    for header in [
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "rdl_x",
        "Bearer rdl_x",
        "Bearer \xff",
        "Bearer a b",
        "Bearer " + "x" * 9_000,
    ]:
        answer = site.client.get("/api/probe", headers={b"Authorization": header.encode("latin-1")})
        assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in"), header
        assert "rdl_x" not in answer.text


def test_a_visitor_without_a_token_is_nobody(site: Site) -> None:
    assert site.client.get("/api/probe").text == "nobody"
    assert site.client.get("/api/me").status_code == 401


def test_a_browser_may_read_the_api_and_changes_something_only_with_the_token_of_a_form(ada: Site) -> None:
    assert ada.client.get("/api/me").json()["device_id"] is None
    assert ada.client.get("/api/probe").text == "ada"
    assert ada.client.post("/api/probe").status_code == 401
    assert ada.client.post("/api/probe", headers={"x-csrf-token": "x"}).status_code == 401
    mine = {"x-csrf-token": form_token(ada.client.cookies["raddle"])}
    assert ada.client.post("/api/probe", headers=mine).text == "ada"
    assert ada.client.post("/api/auth/logout", headers=mine).status_code == 204
    assert ada.client.get("/api/me").status_code == 401


def test_a_guesser_is_slowed_down_by_name_whatever_address_they_come_from(conninfo: str) -> None:
    with a_site(conninfo, WebSettings(is_behind_proxy=True)) as site:
        a_user(site.connection)
        statuses = [
            site.sign_in(password=f"wrong {n}", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code
            for n in range(11)
        ]
        assert statuses == [422] * 10 + [429]
        refused = site.sign_in(headers={"X-Forwarded-For": "10.0.1.1"})
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        site.wind("rate_limits", "empty_at", 3600)
        assert site.sign_in().status_code == 303


def test_a_guesser_is_slowed_down_by_address_whatever_name_they_try(conninfo: str) -> None:
    with a_site(conninfo, WebSettings(is_behind_proxy=True)) as site:
        for n in range(20):
            spoofed = {"X-Forwarded-For": f"10.1.1.{n}, 2001:db8::{n:x}"}
            assert site.sign_in(f"name{n}", "wrong password", headers=spoofed).status_code == 422
        last = {"X-Forwarded-For": "2001:db8::ffff"}
        assert site.sign_in("name99", "wrong password", headers=last).status_code == 429
        other = {"X-Forwarded-For": "2001:db8:0:1::1"}
        assert site.sign_in("name99", "wrong password", headers=other).status_code == 422


def test_a_server_that_stands_behind_no_proxy_believes_no_forwarded_address(site: Site) -> None:
    statuses = {
        site.sign_in(f"name{n}", "wrong password", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code
        for n in range(21)
    }
    assert statuses == {422, 429}


def test_who_guesses_codes_is_slowed_down(ada: Site) -> None:
    guesses = [ada.get(f"/device?user_code=BCDF-GH{a}{b}").status_code for a in "BCDFGH" for b in "BCDFGH"]
    assert guesses[:30] == [422] * 30
    assert 429 in guesses


def test_a_bucket_that_is_full_says_how_long_to_wait_and_leaks(conninfo: str) -> None:
    limit = Limit("tries", 3, 60)
    with connected(conninfo) as connection:
        for _ in range(3):
            rate_limits.take(connection, limit, "ada\0\ud800")
        with pytest.raises(TooManyRequests) as refused:
            rate_limits.take(connection, limit, "ada\0\ud800")
        assert 50 < refused.value.retry_after <= 60
        rate_limits.take(connection, limit, "eve")
        connection.execute("UPDATE rate_limits SET empty_at = empty_at - interval '61 seconds'")
        rate_limits.take(connection, limit, "ada\0\ud800")
        with pytest.raises(TooManyRequests):
            rate_limits.take(connection, limit, "ada\0\ud800")


def test_of_many_tries_at_once_no_more_are_let_through_than_fit(conninfo: str) -> None:
    limit = Limit("tries", 5, 3600)
    barrier = threading.Barrier(8)

    def tries(_: int) -> int:
        taken = 0
        with connected(conninfo) as connection:
            barrier.wait()
            for _ in range(3):
                try:
                    rate_limits.take(connection, limit, "ada")
                except TooManyRequests:
                    continue
                taken += 1
        return taken

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(tries, range(8))) == 5


def test_addresses_of_one_person_are_one() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::2:3:4") == "2001:db8::"
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") == "10.0.0.1"
    assert network_of("local") == "local"


def test_what_ran_out_is_taken_away_and_what_did_not_stays(ada: Site) -> None:
    ada.ask()
    setup_link = "INSERT INTO setup_links VALUES ('x', now() - interval '1 second')"
    ada.connection.execute(setup_link.encode())
    assert pruning.prune(ada.connection) == 1
    for table, column in (
        ("sessions", "expires_at"),
        ("device_codes", "expires_at"),
        ("rate_limits", "empty_at"),
    ):
        ada.wind(table, column, 60 * 24 * 3600)
    assert pruning.prune(ada.connection) >= 4
    assert ada.get("/devices").status_code == 303


def test_a_device_that_is_not_theirs_cannot_be_renamed_or_revoked_below_the_routes_either(site: Site) -> None:
    ada, eve = a_user(site.connection, "ada"), a_user(site.connection, "eve")
    devices.mint(site.connection, ada, "laptop", [], new_id=new_id)
    (device,) = devices.list_devices(site.connection, ada)
    assert device.scopes == (THREADS,)
    with pytest.raises(NotFound):
        devices.rename(site.connection, eve, device.id, "mine")
    with pytest.raises(NotFound):
        devices.revoke(site.connection, eve, device.id)
