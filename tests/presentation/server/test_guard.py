"""Who is let in, as a browser or a program would ask."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from presentation.server.guard import COOKIE, Guard
from presentation.server.options import ServerOptions

TOKEN = "t" * 43
KEY = "uniun-good"


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("in")(scope, receive, send)


async def key_fits(key: str) -> bool:
    return key == KEY


def guarded(**options: Any) -> ASGIApp:
    given: dict[str, Any] = {"host": "127.0.0.1", "port": 8118, **options}
    settings = ServerOptions(
        secret="s" * 43, cookie_secret="c", state_dir=Path("/x"), log_file=Path("/y"), **given
    )
    return Guard(inside, settings, key_fits)


def ask(
    app: ASGIApp,
    headers: dict[str, str] | list[tuple[str, str]],
    *,
    method: str = "GET",
    path: str = "/",
    client: str = "127.0.0.1",
) -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8118") as asking:
            return await asking.request(method, path, headers=headers)

    return asyncio.run(main())


def knock(app: ASGIApp, *headers: tuple[str, str]) -> list[str]:
    """The kinds of messages that answer a WebSocket's opening; `in` when it came through."""
    sent: list[str] = []

    async def through(scope: Scope, receive: Receive, send: Send) -> None:
        sent.append("in")

    async def send(message: Message) -> None:
        sent.append(message["type"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    scope = {
        "type": "websocket",
        "path": "/_nicegui_ws/socket.io/",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": ("127.0.0.1", 1),
    }
    assert isinstance(app, Guard)
    app._app = through
    asyncio.run(app(scope, receive, send))
    return sent


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8118", "localhost:8118", "LOCALHOST", "localhost.", "[::1]:8118", "desk.lan:1"]
)
def test_its_own_names_are_answered(host: str) -> None:
    assert ask(guarded(names=("desk.lan",)), {"Host": host}).text == "in"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8118",
        "192.168.1.5:8118",
        "evil@localhost",
    ],
)
def test_a_name_that_was_bound_to_this_machine_from_outside_is_refused(host: str) -> None:
    answer = ask(guarded(), {"Host": host})
    assert answer.status_code in (400, 403)
    assert "UNIUN_SERVER__NAMES" in answer.text or answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_request_that_says_two_things_is_refused() -> None:
    twice = [("Host", "localhost"), ("Host", "evil.example")]
    assert ask(guarded(), twice).status_code == 400
    smuggled = {"Content-Length": "5", "Transfer-Encoding": "chunked"}
    assert ask(guarded(), smuggled, method="POST").status_code == 400


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:3000", "http://localhost:8118", "null", "file://"]
)
def test_a_page_of_another_site_or_another_port_is_refused(method: str, origin: str) -> None:
    assert ask(guarded(), {"Origin": origin}, method=method).status_code == 403


def test_its_own_pages_programs_and_links_are_let_in() -> None:
    assert ask(guarded(), {"Origin": "http://127.0.0.1:8118"}, method="POST").text == "in"
    assert ask(guarded(), {}, method="POST").text == "in"
    assert ask(guarded(), {"Sec-Fetch-Site": "same-origin"}, method="POST").text == "in"
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(guarded(), link).text == "in"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "dest", "method"),
    [
        ("no-cors", "image", "GET"),
        ("no-cors", "script", "GET"),
        ("navigate", "iframe", "GET"),
        ("navigate", "document", "POST"),
    ],
)
def test_what_another_site_embeds_or_posts_is_refused(site: str, mode: str, dest: str, method: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert ask(guarded(), headers, method=method).status_code == 403


def test_a_websocket_of_another_site_is_not_opened() -> None:
    own, other = ("host", "localhost:8118"), ("host", "evil.example")
    assert knock(guarded(), own, ("origin", "http://localhost:8118")) == ["in"]
    assert knock(guarded(), own) == ["in"]
    assert knock(guarded(), own, ("origin", "http://evil.example")) == ["websocket.close"]
    assert knock(guarded(), other, ("origin", "http://evil.example")) == ["websocket.close"]


def open_to_others() -> ASGIApp:
    return guarded(host="0.0.0.0", token=TOKEN)


def test_off_loopback_nobody_is_let_in_without_the_token() -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Cookie": f"{COOKIE}=wrong"},
        {"Cookie": "\x00;;="},
    ):
        answer = ask(open_to_others(), headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    assert "token is needed" in ask(open_to_others(), {"Accept": "text/html"}).text
    assert knock(open_to_others(), ("host", "127.0.0.1")) == ["websocket.close"]
    assert knock(open_to_others(), ("host", "127.0.0.1"), ("cookie", f"{COOKIE}={TOKEN}")) == ["in"]
    assert ask(open_to_others(), {"Authorization": f"Bearer {TOKEN}"}).text == "in"
    assert (
        ask(open_to_others(), {"Host": "192.168.1.5:8118", "Authorization": f"Bearer {TOKEN}"}).text == "in"
    )
    rebound = {"Host": "evil.example", "Authorization": f"Bearer {TOKEN}"}
    assert ask(open_to_others(), rebound).status_code == 403


def test_our_own_programs_may_ask_how_the_server_is_without_the_token() -> None:
    own = {"Authorization": f"Bearer {'s' * 43}"}
    assert ask(open_to_others(), own, path="/health").text == "in"
    assert ask(open_to_others(), own, path="/health", client="192.168.1.9").status_code == 401
    assert ask(open_to_others(), own, path="/").status_code == 401
    assert ask(open_to_others(), {"Authorization": f"Bearer {'x' * 43}"}, path="/health").status_code == 401


def test_the_token_in_the_address_is_exchanged_for_a_cookie_once() -> None:
    answer = ask(open_to_others(), {}, path=f"/notes?tag=a%20b&token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/notes?tag=a+b"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert ask(open_to_others(), {"Cookie": f"{COOKIE}={TOKEN}"}, path="/notes").text == "in"
    elsewhere = ask(open_to_others(), {}, path=f"http://127.0.0.1:8118//evil.example/?token={TOKEN}")
    assert elsewhere.headers["location"] == "/evil.example/"
    assert ask(open_to_others(), {}, path="/?token=wrong").status_code == 401
    assert ask(open_to_others(), {}, path=f"/?token={TOKEN}", method="POST").status_code == 401


def test_a_key_is_for_programs_and_not_for_pages() -> None:
    key = {"Authorization": f"Bearer {KEY}"}
    assert ask(open_to_others(), key, path="/v1/models").text == "in"
    assert ask(open_to_others(), key, path="/metrics").text == "in"
    assert ask(open_to_others(), key, path="/notes").status_code == 401
    assert ask(open_to_others(), key, path="/scheduler").text == "in"
    # Where an address has both, what is asked for decides.
    page, json = ("Accept", "text/html,*/*"), ("Accept", "application/json")
    for accept in ([page], [page, json], [json, page]):
        asked = ask(open_to_others(), [*key.items(), *accept], path="/scheduler")
        assert asked.status_code == 401
    assert ask(open_to_others(), [*key.items(), page], path="/v1/models").text == "in"
    assert ask(open_to_others(), {"Authorization": "Bearer uniun-bad"}, path="/v1/models").status_code == 401


def test_what_is_for_processes_of_this_user_is_for_nobody_else() -> None:
    secret = {"Authorization": "Bearer " + "s" * 43}
    for app in (guarded(), open_to_others()):
        assert ask(app, secret, path="/internal/snapshot").text == "in"
        assert ask(app, {}, path="/internal/snapshot").status_code == 403
        assert ask(app, secret, path="/internal/snapshot", client="192.168.1.9").status_code == 403
        own_page = {**secret, "Origin": "http://127.0.0.1:8118"}
        assert ask(app, own_page, path="/internal/snapshot").status_code == 403
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert ask(open_to_others(), token, path="/internal/snapshot").status_code == 403
