"""Two accounts over every route there is: what is one's is not there for the other, in any way that could be told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from psycopg import Connection

from raddle.adapters.remote.http_hub import HttpHub
from raddle.model.protocol.signing_in import THREADS_READ
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Attachment
from raddle.server.accounts.devices import mint, revoke
from raddle.server.accounts.sessions import begin_session, form_token
from raddle.server.http.callers import FORM_HEADER
from tests.builders import THREAD_ID, a_message
from tests.builders_routes import Asker, Call, Ids, all_calls, new_ids, push_body, rows_of_everybody
from tests.builders_served import Served, serving
from tests.builders_server import Person, a_person, connected, new_id, prepare
from tests.contract.remote_laws import new
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

ADAS_WORDS = ("hippogriff", "quagmire")
"""What is said in a thread of hers, and its title."""
CALLS = all_calls()
PUBLIC = {
    "GET /health",
    "GET /metrics",
    "GET /openapi.json",
    "GET /docs",
    "POST /api/auth/device",
    "POST /api/auth/token",
    "GET /",
    "GET /setup",
    "POST /setup",
    "GET /sign-in",
    "POST /sign-in",
    "POST /sign-out",
}
"""What anybody may ask without being signed in."""
OF_PUBLIC_THREADS = {
    "GET /api/threads/{thread_id:str}",
    "GET /api/blobs/{sha256:str}",
    "HEAD /api/blobs/{sha256:str}",
}
"""What anybody may ask, too, and is told of what is public alone: all else is not there."""
ENDS_THE_TOKEN = "POST /api/auth/logout"
OF_CHANCE = "POST /api/auth/device"
"""It answers with a code that is another each time."""


class House(NamedTuple):
    """A server, ada and bob, each on a device of theirs."""

    served: Served
    connection: Connection
    ada: Person
    bob: Person
    as_ada: Asker
    as_bob: Asker
    as_nobody: Asker


@pytest.fixture
def house(new_database: NewDatabase, tmp_path: Path) -> Iterator[House]:
    with ExitStack() as stack:
        conninfo = new_database(prepare)
        connection = stack.enter_context(connected(conninfo))
        served = stack.enter_context(serving(conninfo, tmp_path / "blobs"))
        ada, bob = a_person(connection, "ada"), a_person(connection, "bob")
        as_ada, as_bob = (
            stack.enter_context(
                Asker(served, mint(connection, each.user, "laptop", ["threads"], new_id=new_id))
            )
            for each in (ada, bob)
        )
        nobody = stack.enter_context(Asker(served))
        yield House(served, connection, ada, bob, as_ada, as_bob, nobody)


def of_ada(house: House, visibility: str = "organization") -> Ids:
    """A thread of hers with an attachment, its blob, and a device of hers."""
    ids = new_ids()
    turn = a_message(
        content=f"a {ADAS_WORDS[0]}",
        attachments=(Attachment(name="a picture", sha256=ids.sha256, size=len(ids.data)),),
    )
    delta = new(turn, title=ADAS_WORDS[1], visibility=visibility)
    pushed = house.as_ada.ask("POST", f"/api/threads/{ids.thread}/delta", push_body(delta))
    assert pushed.status_code == 200, pushed.text
    assert house.as_ada.ask("PUT", f"/api/blobs/{ids.sha256}", ids.data).status_code == 204
    mint(house.connection, house.ada.user, "tablet", ["threads"], new_id=lambda: ids.device)
    return ids


def what_shows(answer: httpx.Response, ids: Ids) -> tuple[int, dict[str, str], str]:
    """All of an answer that does not tell the time, with the names asked for taken out."""
    headers = {name: ids.hide(value) for name, value in answer.headers.items() if name != "date"}
    is_read = answer.is_stream_consumed
    return answer.status_code, headers, ids.hide(answer.text) if is_read else ""


def differences(house: House, asker: Asker, calls: list[Call], **headers: str) -> list[str]:
    """The calls that answer another thing for what is ada's than for what is nowhere, or say a word of hers."""
    found = []
    for call in calls:
        hers, nowhere = of_ada(house), new_ids()
        told = what_shows(asker.call(call, hers, **headers), hers)
        expected = what_shows(asker.call(call, nowhere, **headers), nowhere)
        if told != expected and str(call) != OF_CHANCE:
            found.append(f"{call}: {told} and not {expected}")
        if any(word in told[2] for word in ADAS_WORDS):
            found.append(f"{call} says it: {told[2]}")
    return found


def hers_alone(house: House) -> dict[str, list[str]]:
    """The rows of ada's space, and her devices."""
    marks = str(house.ada.space), str(house.ada.user)
    held = rows_of_everybody(house.connection)
    return {
        table: [row for row in lines if any(mark in row for mark in marks)] for table, lines in held.items()
    }


API_CALLS = [call for call in CALLS if not call.is_page and str(call) != ENDS_THE_TOKEN]


def test_what_is_adas_is_to_bob_what_is_nowhere(house: House) -> None:
    assert differences(house, house.as_bob, API_CALLS) == []


def test_what_is_adas_is_to_nobody_what_is_nowhere(house: House) -> None:
    assert differences(house, house.as_nobody, API_CALLS) == []


def test_a_space_that_is_named_opens_nothing(house: House) -> None:
    ids = of_ada(house)
    path = f"/api/threads/{ids.thread}"
    told, expected = (
        house.as_bob.ask("GET", f"{path}?space={space}") for space in (house.ada.space, new_id())
    )
    assert (told.status_code, told.content) == (expected.status_code, expected.content)
    assert told.status_code == 404
    assert house.as_ada.ask("GET", f"{path}?space={house.ada.space}").status_code == 200


def test_whatever_bob_asks_nothing_of_adas_changes(house: House) -> None:
    hers = [of_ada(house, visibility) for visibility in ("private", "organization", "public")]
    before = hers_alone(house)
    for call in API_CALLS:
        for ids in hers:
            for asker in (house.as_bob, house.as_nobody):
                asker.call(call, ids)
    assert hers_alone(house) == before


def test_a_public_thread_is_read_by_all_and_changed_by_its_owner_alone(house: House) -> None:
    ids = of_ada(house, "public")
    path = f"/api/threads/{ids.thread}"
    for asker in (house.as_bob, house.as_nobody):
        assert ADAS_WORDS[0] in asker.ask("GET", path).text
        assert asker.ask("GET", f"/api/blobs/{ids.sha256}").content == ids.data
    for method, below in (("DELETE", ""), ("POST", "/restore"), ("POST", "/visibility")):
        told = house.as_bob.ask(method, f"{path}{below}", b'{"visibility": "private"}')
        assert (told.status_code, told.json()["code"]) == (403, "forbidden"), below
    assert house.as_bob.ask("GET", f"{path}?since=0").json()["delta"]["version"] == 0


def test_without_a_token_nothing_is_answered_but_what_is_public(house: House) -> None:
    found = []
    for call in CALLS:
        if str(call) in PUBLIC | OF_PUBLIC_THREADS or call.path.startswith("/static/"):
            continue
        answer = house.as_nobody.call(call, of_ada(house))
        problem = answer.json() if answer.headers.get("content-type") == "application/problem+json" else {}
        told = answer.status_code, problem.get("code"), answer.headers.get("www-authenticate")
        is_sent_to_sign_in = answer.headers.get("location", "").startswith("/sign-in")
        is_refused = answer.status_code in {403, 422} and call.method == "POST"  # a form that is none of ours
        if told != (401, "not_signed_in", "Bearer") and not (
            call.is_page and (is_sent_to_sign_in or is_refused)
        ):
            found.append(f"{call}: {answer.status_code} {answer.text}")
    assert found == []


@pytest.mark.parametrize("kind", ["unknown", "revoked", "disabled", "no bearer", "no token"])
def test_a_token_that_means_nobody_is_refused_everywhere(house: House, kind: str) -> None:
    carol = a_person(house.connection, "carol")
    token = mint(house.connection, carol.user, "laptop", ["threads"], new_id=new_id)
    device = house.connection.execute("SELECT id FROM devices WHERE user_id = %s", [carol.user]).fetchone()
    assert device is not None
    header = {"unknown": "Bearer rdl_nobody", "no bearer": f"Basic {token}", "no token": "Bearer"}.get(
        kind, f"Bearer {token}"
    )
    if kind == "revoked":
        revoke(house.connection, carol.user, device[0])
    if kind == "disabled":
        house.connection.execute("UPDATE users SET disabled_at = now() WHERE id = %s", [carol.user])
    hers = of_ada(house, "public")
    found = []
    for call in CALLS:
        if call.is_page or str(call) in PUBLIC:
            continue
        answer = house.as_nobody.call(call, hers, Authorization=header)
        if answer.status_code != 401:
            found.append(f"{call}: {answer.status_code}")
    assert found == []


def test_a_token_that_may_only_read_changes_nothing(house: House) -> None:
    reading = mint(house.connection, house.ada.user, "reader", [THREADS_READ], new_id=new_id)
    ids = of_ada(house)
    before = rows_of_everybody(house.connection)
    found = []
    with Asker(house.served, reading) as asker:
        for call in API_CALLS:
            if str(call) in PUBLIC:
                continue
            answer = asker.call(call, ids)
            is_read = call.method in {"GET", "HEAD"}
            if answer.status_code != 403 and not (is_read and answer.status_code == 200):
                found.append(f"{call}: {answer.status_code} {answer.text}")
    assert found == []
    assert rows_of_everybody(house.connection) == before


def test_a_cookie_without_the_proof_of_a_form_changes_nothing(house: House) -> None:
    """What another site could make a browser send: the cookie goes with it, the token of a form does not."""
    cookie = begin_session(house.connection, house.ada.user)
    ids = of_ada(house)
    before = rows_of_everybody(house.connection)
    with Asker(house.served, Cookie=f"raddle={cookie}") as browser:
        for call in CALLS:
            if call.method not in {"GET", "HEAD"} and str(call) not in PUBLIC:
                answer = browser.call(call, ids)
                assert answer.status_code in {401, 403, 422}, call
                if not call.is_page:
                    assert answer.status_code == 401, call
        assert rows_of_everybody(house.connection) == before
        for call in API_CALLS:
            if call.method == "GET" and str(call) not in PUBLIC:
                assert browser.call(call, ids).status_code == 200, call
        renamed = browser.call(
            next(call for call in CALLS if call.handler == "rename_device"),
            ids,
            **{FORM_HEADER: form_token(cookie)},
        )
        assert renamed.status_code == 204


def test_bobs_pages_know_nothing_of_adas_devices(house: House) -> None:
    cookie = begin_session(house.connection, house.bob.user)
    hers, nowhere = of_ada(house), new_ids()
    before = hers_alone(house)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = f"form_token={form_token(cookie)}".encode()
    with Asker(house.served, Cookie=f"raddle={cookie}") as browser:
        told, expected = (
            what_shows(browser.ask("POST", f"/devices/{ids.device}/revoke", body, form), ids)
            for ids in (hers, nowhere)
        )
        assert told == expected
        assert "tablet" not in browser.ask("GET", "/devices").text
    assert hers_alone(house) == before


class Both(NamedTuple):
    """Ada and bob, who imported the same session: one id, two threads."""

    ada: Asker
    bob: Asker

    def get(self, path: str) -> tuple[Any, Any]:
        answers = [asker.ask("GET", path) for asker in self]
        assert [answer.status_code for answer in answers] == [200, 200], [each.text for each in answers]
        return answers[0].json(), answers[1].json()


PATH = f"/api/threads/{THREAD_ID}"
SAID = {"ada": "ada's hippogriff", "bob": "bob's manticore"}


@pytest.fixture
def both(house: House) -> Both:
    both = Both(house.as_ada, house.as_bob)
    for name, asker in zip(SAID, both, strict=True):
        delta = new(a_message(content=SAID[name]), title=f"{name} title")
        pushed = asker.ask("POST", f"{PATH}/delta", push_body(delta))
        assert pushed.json()["version"] == 2
    return both


def contents(file: Any) -> list[str]:
    return [message["content"] for message in file["conversation"]["messages"]]


def test_one_id_of_two_people_is_two_threads(both: Both) -> None:
    for told, name in zip(both.get(PATH), SAID, strict=True):
        assert contents(told) == [SAID[name]]
        assert told["metadata"]["title"] == f"{name} title"
    for told, name in zip(both.get(f"{PATH}?since=0"), SAID, strict=True):
        assert [message["content"] for message in told["delta"]["append"]] == [SAID[name]]


def test_a_push_of_one_is_not_in_the_others_version_feed_or_search(both: Both) -> None:
    pages = both.get("/api/changes")
    epoch = pages[0]["hub_epoch"]
    sent = Delta(base_version=2, version=3, messages=(a_message("m2", "a basilisk", parent_id="m1"),))
    assert both.ada.ask("POST", f"{PATH}/delta", push_body(sent, epoch)).status_code == 200
    news = [
        asker.ask("GET", f"/api/changes?cursor={page['cursor']}").json()["changes"]
        for asker, page in zip(both, pages, strict=True)
    ]
    assert [[line["version"] for line in lines] for lines in news] == [[3], []]
    for word, counts in (
        ("basilisk", (1, 0)),
        ("hippogriff", (1, 0)),
        ("manticore", (0, 1)),
        ("title", (1, 1)),
    ):
        found = both.get(f"/api/threads/search?q={word}")
        assert tuple(len(each["hits"]) for each in found) == counts, word
    assert [len(each["threads"]) for each in both.get("/api/threads")] == [1, 1]


def test_a_blob_that_both_have_stays_with_who_gave_it(house: House, both: Both) -> None:
    ids = new_ids()
    path = f"/api/blobs/{ids.sha256}"
    assert both.ada.ask("PUT", path, ids.data).status_code == 204
    assert [asker.ask("GET", path).status_code for asker in both] == [200, 404]
    named = a_message("m3", attachments=(Attachment(name="x", sha256=ids.sha256, size=len(ids.data)),))
    epoch = both.get("/api/changes")[0]["hub_epoch"]
    sent = Delta(base_version=2, version=3, messages=(named,))
    assert both.bob.ask("POST", f"{PATH}/delta", push_body(sent, epoch)).status_code == 200
    assert both.bob.ask("GET", path).status_code == 404, "to name a hash is not to have the bytes"
    assert both.bob.ask("PUT", path, ids.data).status_code == 204
    assert both.bob.ask("GET", path).content == ids.data


def test_what_one_deletes_opens_or_purges_is_so_for_one(house: House, both: Both) -> None:
    bobs = [
        row
        for rows in rows_of_everybody(house.connection).values()
        for row in rows
        if str(house.bob.space) in row
    ]
    assert both.ada.ask("POST", f"{PATH}/visibility", b'{"visibility": "public"}').status_code == 200
    assert contents(both.bob.ask("GET", PATH).json()) == [SAID["bob"]], "mine comes first"
    assert contents(both.bob.ask("GET", f"{PATH}?space={house.ada.space}").json()) == [SAID["ada"]]
    assert both.ada.ask("DELETE", PATH).status_code == 200
    assert both.bob.ask("GET", f"{PATH}?space={house.ada.space}").status_code == 404
    assert both.ada.ask("DELETE", f"{PATH}?purge=true").status_code == 200
    assert [asker.ask("GET", PATH).status_code for asker in both] == [410, 200]
    assert [asker.ask("GET", f"{PATH}?since=0").status_code for asker in both] == [410, 200]
    now = [
        row
        for rows in rows_of_everybody(house.connection).values()
        for row in rows
        if str(house.bob.space) in row
    ]
    assert now == bobs


def test_each_hears_of_their_own_alone(house: House, both: Both) -> None:
    with HttpHub(house.served.link(token_of(both.bob))) as hub, closing(hub.events("")) as events:
        assert [line.version for line in next(events).changes] == [2]
        epoch = both.get("/api/changes")[0]["hub_epoch"]
        for asker, message_id in ((both.ada, "a2"), (both.bob, "b2")):
            sent = Delta(base_version=2, version=3, messages=(a_message(message_id),))
            body = push_body(sent, epoch)
            assert asker.ask("POST", f"{PATH}/delta", body).status_code == 200
        heard = next(events).changes
        assert [(line.version, line.space) for line in heard] == [(3, str(house.bob.space))]
    with pytest.raises(StopIteration):
        next(events)


def token_of(asker: Asker) -> str:
    return str(asker.client.headers["authorization"].removeprefix("Bearer "))
