"""The pages of an account, as a browser without scripts meets them: forms, cookies, headers, and what is refused."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from raddle.model.protocol.signing_in import THREADS
from raddle.server.accounts import devices, setup, users
from raddle.server.accounts.sessions import form_token
from raddle.server.http.web import WebSettings
from tests.builders_accounts import PASSWORD, Site, a_site, a_user
from tests.builders_server import new_id

pytest_plugins = ("tests.sites",)

_VOID = {"input", "link", "meta"}


class _Page(HTMLParser):
    """What a reader of the screen asks of a page, and what a policy without scripts forbids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each such element."""
        return [attributes for name, attributes in self.found if name == tag]


def _check(html: str) -> None:
    page = _Page(html)
    assert page.open == []
    assert page.of("html") == [{"lang": "en"}]
    assert len(page.of("h1")) == len(page.of("title")) == len(page.of("main")) == 1
    assert "width=device-width" in str(page.of("meta"))
    assert not page.of("script")
    assert not page.of("style")
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for described in (attributes.get("aria-describedby") or "").split():
            assert described in ids
    labelled = {attributes.get("for") for attributes in page.of("label")}
    for attributes in page.of("input"):
        assert attributes.get("type") == "hidden" or attributes["id"] in labelled


def test_every_page_is_whole_labelled_without_scripts_and_kept_to_itself(site: Site) -> None:
    link = setup.new_link(site.connection)
    pages = [site.get(f"/setup?token={link}"), site.get("/sign-in"), site.get("/setup?token=x")]
    user = a_user(site.connection)
    pages += [site.sign_in(password="wrong password")]
    site.sign_in()
    pages += [site.get("/devices"), site.get("/device"), site.get("/device?user_code=x")]
    code = site.ask()["user_code"]
    pages += [site.get(f"/device?user_code={code}"), site.decide(code), site.get(f"/device?user_code={code}")]
    devices.mint(site.connection, user, "laptop", [THREADS], new_id=new_id)
    pages += [site.get("/devices?done=revoked"), site.decide(site.ask()["user_code"], "deny")]
    for page in pages:
        _check(page.text)
        policy = page.headers["content-security-policy"]
        for part in ("default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert part in policy
        assert "form-action 'self'" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["content-type"] == "text/html; charset=utf-8"


def test_the_style_sheet_of_a_page_is_there_and_may_be_kept(site: Site) -> None:
    link = re.search(r'href="(/static/[^"]+)"', site.get("/sign-in").text)
    assert link is not None
    sheet = site.get(link[1])
    assert sheet.headers["content-type"].startswith("text/css")
    assert "immutable" in sheet.headers["cache-control"]
    assert "prefers-color-scheme: dark" in sheet.text


def test_the_link_of_a_new_server_makes_its_first_account_and_signs_it_in(site: Site) -> None:
    link = setup.new_link(site.connection)
    path = f"/setup?token={link}"
    short = site.submit(
        path, "/setup", {"token": link or "", "name": "Ada", "password": "x", "password_again": "x"}
    )
    assert short.status_code == 422
    assert 'value="Ada"' in short.text
    fields = {"token": link or "", "name": "Ada", "password": PASSWORD, "password_again": PASSWORD}
    unlike = site.submit(path, "/setup", {**fields, "password_again": "another one"})
    assert "not the same" in unlike.text
    made = site.submit(path, "/setup", fields)
    assert (made.status_code, made.headers["location"]) == (303, "/devices")
    assert "raddle login --server http://raddle.test" in site.get("/devices").text
    assert site.get(path).status_code == 403
    assert site.client.get("/api/me").json()["is_admin"] is True


def test_a_stranger_with_a_made_up_link_makes_no_account(site: Site) -> None:
    setup.new_link(site.connection)
    fields = {"token": "x", "name": "eve", "password": PASSWORD, "password_again": PASSWORD}
    assert site.submit("/sign-in", "/setup", fields).status_code == 403
    assert users.count_users(site.connection) == 0


def test_a_wrong_name_and_a_wrong_password_are_told_apart_by_nothing(site: Site) -> None:
    a_user(site.connection)
    users.disable_user(site.connection, a_user(site.connection, "gone"))
    a_user(site.connection, "no-password", None)
    said = set()
    for name, password in (
        ("ada", "wrong password"),
        ("nobody", PASSWORD),
        ("gone", PASSWORD),
        ("no-password", PASSWORD),
        ("\u200b", PASSWORD),
    ):
        answer = site.sign_in(name, password)
        text = re.sub(r'value="[^"]*"', "", answer.text)
        said.add((answer.status_code, text, tuple(sorted(answer.headers.keys()))))
    assert len(said) == 1


def test_signing_in_gives_another_cookie_than_the_one_that_a_browser_came_with(site: Site) -> None:
    a_user(site.connection)
    planted = "A" * 43
    site.client.cookies.set("raddle", planted)
    answer = site.sign_in()
    assert answer.status_code == 303
    (cookie,) = answer.headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    assert f"Max-Age={30 * 24 * 3600}" in cookie
    assert planted not in cookie
    site.client.cookies.clear()
    site.client.cookies.set("raddle", planted)
    assert site.get("/devices").status_code == 303


def test_signing_in_anew_ends_the_session_that_was(ada: Site) -> None:
    before = ada.client.cookies["raddle"]
    a_user(ada.connection, "eve")
    fields = {"form_token": form_token(before), "name": "eve", "password": PASSWORD}
    assert ada.client.post("/sign-in", data=fields, follow_redirects=False).status_code == 303
    assert ada.client.get("/api/me").json()["name"] == "eve"
    ada.client.cookies.clear()
    ada.client.cookies.set("raddle", before)
    assert ada.get("/devices").status_code == 303


def test_who_signs_out_is_out_though_they_kept_the_cookie(ada: Site) -> None:
    cookie = ada.client.cookies["raddle"]
    assert ada.submit("/devices", "/sign-out", {}).headers["location"] == "/sign-in"
    assert "raddle" not in ada.client.cookies
    ada.client.cookies.set("raddle", cookie)
    assert ada.get("/devices").headers["location"] == "/sign-in?next=%2Fdevices"


def test_a_session_lasts_thirty_days_from_its_last_use(ada: Site) -> None:
    ada.wind("sessions", "expires_at", 29 * 24 * 3600)
    assert ada.get("/devices").status_code == 200
    ada.wind("sessions", "expires_at", 29 * 24 * 3600)
    assert ada.get("/devices").status_code == 200
    ada.wind("sessions", "expires_at", 31 * 24 * 3600)
    assert ada.get("/devices").status_code == 303


def test_a_new_password_signs_every_browser_out(ada: Site) -> None:
    user = users.find_user(ada.connection, "ada")
    assert user is not None
    users.set_password(ada.connection, user, "another password")
    assert ada.get("/devices").status_code == 303


def test_by_https_the_cookie_is_sent_by_https_alone_and_cannot_be_set_by_another_host(conninfo: str) -> None:
    with a_site(conninfo, base_url="https://raddle.test") as site:
        a_user(site.connection)
        answer = site.sign_in()
        (cookie,) = answer.headers.get_list("set-cookie")
        assert cookie.startswith("__Host-raddle=")
        assert "Secure" in cookie
        assert site.get("/devices").status_code == 200
    with a_site(conninfo, WebSettings(public_url="https://raddle.example.org")) as site:
        assert "Secure" in site.get("/sign-in").headers["set-cookie"]


def test_who_has_to_sign_in_first_is_sent_there_and_comes_back(site: Site) -> None:
    a_user(site.connection)
    asked = site.ask()
    to_sign_in = site.get(f"/device?user_code={asked['user_code']}")
    assert to_sign_in.status_code == 303
    path = to_sign_in.headers["location"]
    hidden = re.search(r'name="next" value="([^"]+)"', site.get(path).text)
    assert hidden is not None
    back = site.submit(path, "/sign-in", {"name": "ada", "password": PASSWORD, "next": hidden[1]})
    assert back.headers["location"] == f"/device?user_code={asked['user_code']}"
    assert "laptop" in site.get(back.headers["location"]).text


def test_a_sign_in_goes_on_to_pages_of_ours_alone(site: Site) -> None:
    a_user(site.connection)
    for path in (
        "https://evil.test", "//evil.test", "/\\evil.test", "/device?user_code=x\r\nSet-Cookie: a=b",
        "/sign-out", "javascript:alert(1)", "/devices/../x", "\0", "/device\n",
    ):  # fmt: skip
        site.connection.execute("DELETE FROM rate_limits")
        fields = {"name": "ada", "password": PASSWORD, "next": path}
        assert site.submit("/sign-in", "/sign-in", fields).headers["location"] == "/devices"
        site.client.cookies.clear()


def test_a_form_without_its_token_or_with_somebody_elses_changes_nothing(ada: Site) -> None:
    user = users.find_user(ada.connection, "ada")
    assert user is not None
    devices.mint(ada.connection, user, "laptop", [THREADS], new_id=new_id)
    (device,) = devices.list_devices(ada.connection, user)
    code = ada.ask()["user_code"]
    mine = form_token(ada.client.cookies["raddle"])
    paths = ("/sign-in", "/sign-out", "/setup", "/device", f"/devices/{device.id}/revoke")
    fields = {"name": "ada", "password": PASSWORD, "user_code": code, "decision": "approve"}
    for path in paths:
        for token in (
            {},
            {"form_token": ""},
            {"form_token": form_token("B" * 43)},
            {"form_token": mine[:-1]},
        ):
            refused = ada.client.post(path, data={**fields, **token}, follow_redirects=False)
            assert refused.status_code == 403, path
        elsewhere = {"Sec-Fetch-Site": "cross-site"}
        sent = ada.client.post(
            path, data={**fields, "form_token": mine}, headers=elsewhere, follow_redirects=False
        )
        assert sent.status_code == 403
        kind = {"Content-Type": "text/plain"}
        plain = ada.client.post(
            path, content=f"form_token={mine}".encode(), headers=kind, follow_redirects=False
        )
        assert plain.status_code == 422
    assert ada.get("/devices").status_code == 200
    assert len(devices.list_devices(ada.connection, user)) == 1
    assert ada.get(f"/device?user_code={code}").status_code == 200


def test_the_token_of_a_form_is_another_on_each_page_and_each_is_good(ada: Site) -> None:
    cookie = ada.client.cookies["raddle"]
    assert form_token(cookie) != form_token(cookie)
    assert cookie not in ada.get("/devices").text


def test_a_page_takes_no_bearer_token(ada: Site) -> None:
    user = users.find_user(ada.connection, "ada")
    assert user is not None
    token = devices.mint(ada.connection, user, "laptop", [THREADS], new_id=new_id)
    ada.client.cookies.clear()
    assert ada.bearer("GET", "/devices", token).status_code == 303


def test_a_device_is_signed_out_by_its_own_person_alone(ada: Site) -> None:
    eve = a_user(ada.connection, "eve")
    user = users.find_user(ada.connection, "ada")
    assert user is not None
    for owner, name in ((user, "laptop"), (eve, "eve's")):
        devices.mint(ada.connection, owner, name, [THREADS], new_id=new_id)
    (mine,), (hers,) = devices.list_devices(ada.connection, user), devices.list_devices(ada.connection, eve)
    listed = ada.get("/devices").text
    assert "laptop" in listed
    assert str(hers.id) not in listed
    assert ada.submit("/devices", f"/devices/{hers.id}/revoke", {}).status_code == 404
    assert (
        ada.submit("/devices", f"/devices/{mine.id}/revoke", {}).headers["location"]
        == "/devices?done=revoked"
    )
    assert "laptop" not in ada.get("/devices").text
    assert len(devices.list_devices(ada.connection, eve)) == 1


def test_what_a_device_calls_itself_is_shown_as_text(ada: Site) -> None:
    name = "<script>alert(1)</script>\"' {{ 7*7 }} 👩‍💻".replace("\u200d", "")
    code = ada.ask(client_name=name)["user_code"]
    for page in (ada.get(f"/device?user_code={code}"), ada.decide(code)):
        assert "<script" not in page.text
        assert "&lt;script&gt;" in page.text
        assert "{{ 7*7 }}" in page.text
        _check(page.text)


def test_where_a_device_asked_from_is_shown_to_who_is_asked(conninfo: str) -> None:
    with a_site(conninfo, WebSettings(is_behind_proxy=True)) as site:
        a_user(site.connection)
        site.sign_in()
        asked = site.client.post(
            "/api/auth/device", headers={"X-Forwarded-For": "10.9.8.7, 192.0.2.5"}
        ).json()
        assert "192.0.2.5" in site.get(f"/device?user_code={asked['user_code']}").text


def test_whatever_is_typed_into_a_form_the_answer_is_a_page(ada: Site) -> None:
    token = form_token(ada.client.cookies["raddle"]).encode()
    hostile = (
        b"%00", b"%ed%a0%80", b"%ff", b"%F0%9F%A7%B5", b"x" * 10_000,
        b"%3Cb%3E", b"", b"%E2%80%AE", b"a&name=b", b"=&=&",
    )  # fmt: skip
    for path in ("/sign-in", "/setup", "/device", "/devices/x/revoke", "/devices/%00/revoke"):
        for value in hostile:
            ada.connection.execute("DELETE FROM rate_limits")
            body = b"form_token=%s&name=%s&password=%s&user_code=%s&decision=%s&token=%s&next=%s" % (
                token,
                *[value] * 6,
            )
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            answer = ada.client.post(path, content=body, headers=kind, follow_redirects=False)
            assert answer.status_code in {403, 404, 422}, (path, value[:20])
            assert "<h1>" in answer.text
            assert "traceback" not in answer.text.lower()


def test_whatever_stands_in_an_address_the_answer_is_a_page(ada: Site) -> None:
    for query in (
        "user_code=%00",
        "user_code=%ff",
        "user_code=%ed%a0%80",
        "user_code=a&user_code=b",
        "user_code=" + "x" * 5_000,
    ):
        assert ada.get(f"/device?{query}").status_code in {200, 400, 422}
    for query in ("next=%00", "next=a&next=b", "next=" + "x" * 5_000, "token=%ff"):
        assert ada.get(f"/sign-in?{query}").status_code in {303, 400}
        assert ada.get(f"/setup?{query.replace('next', 'token')}").status_code in {400, 403}


def test_a_form_that_is_too_large_is_refused_before_it_is_read(ada: Site) -> None:
    body = b"name=" + b"x" * 200_000
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ada.client.post("/sign-in", content=body, headers=kind).status_code == 413
