"""Bodies that are too large or do not come."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from presentation.server.limits import BodyLimit, PlacesForPages

NEVER = object()
MB = 1_000_000


class Exchange:
    """Sends these pieces, then says nothing more; keeps what comes back."""

    def __init__(self, *pieces: object, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.scope: Scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
        self.sent: list[Message] = []
        self.read = 0
        self.inside: list[str] = []
        self._pieces = list(pieces)

    async def receive(self) -> Message:
        if not self._pieces or self._pieces[0] is NEVER:
            await asyncio.Event().wait()
        piece = self._pieces.pop(0)
        assert isinstance(piece, bytes)
        self.read += len(piece)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            self.inside.append("gone")
            body = b""
        await PlainTextResponse(f"{len(body)}")(scope, receive, send)

    def run(self, *, idle_s: float = 20, whole_s: float = 20) -> "Exchange":
        limit = BodyLimit(self.app, 10 * MB, idle_s=idle_s, whole_s=whole_s)
        asyncio.run(asyncio.wait_for(limit(self.scope, self.receive, self.send), 20))
        return self

    @property
    def status(self) -> Any:
        return self.sent[0]["status"]

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


def test_a_body_within_the_limit_comes_through() -> None:
    done = Exchange(b"x" * MB, b"y" * MB).run()
    assert (done.status, done.body) == (200, b"2000000")


def test_a_body_that_says_that_it_is_too_large_is_refused_before_it_is_read_by_anybody() -> None:
    done = Exchange(b"x", headers=[(b"content-length", b"10000001")]).run()
    assert done.status == 413
    assert json.loads(done.body)["error"]["code"] == "too_large"
    assert done.inside == []
    assert done.sent[-1].get("more_body", False) is False


def test_a_body_that_does_not_say_so_is_refused_in_the_middle() -> None:
    done = Exchange(*[b"x" * MB] * 20).run()
    assert done.status == 413
    assert done.inside == ["gone"]
    assert len([message for message in done.sent if message["type"] == "http.response.start"]) == 1


def test_a_body_that_stops_coming_is_given_up() -> None:
    done = Exchange(b"x", NEVER).run(idle_s=0.02)
    assert done.status == 408
    assert done.inside == ["gone"]


def test_a_body_that_trickles_is_given_up() -> None:
    done = Exchange(b"x", NEVER).run(whole_s=0.02)
    assert done.status == 408


def test_a_client_that_goes_on_sending_is_not_read_without_end() -> None:
    done = Exchange(*[b"x" * MB] * 200, headers=[(b"content-length", b"200000000")]).run()
    assert done.status == 413
    assert done.read <= 34 * MB


def test_programs_leave_places_for_pages_and_give_theirs_back() -> None:
    async def scenario() -> None:
        free = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"].startswith("/v1/"):
                await free.wait()
            await PlainTextResponse("in")(scope, receive, send)

        places = PlacesForPages(slow, 2)

        def ask(path: str) -> tuple[Exchange, "asyncio.Task[None]"]:
            exchange = Exchange(b"")
            exchange.scope["path"] = path
            return exchange, asyncio.create_task(places(exchange.scope, exchange.receive, exchange.send))

        (first, going), (_, cut) = ask("/v1/chat/completions"), ask("/v1/embeddings")
        await asyncio.sleep(0)
        over, refusing = ask("/v1/models")
        page, drawing = ask("/notes")
        await asyncio.gather(refusing, drawing)
        assert (over.status, page.status) == (503, 200)
        assert (b"retry-after", b"5") in over.sent[0]["headers"]
        assert json.loads(over.body)["error"]["code"] == "too_many_requests"
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        again, asking = ask("/v1/models")
        free.set()
        await asyncio.gather(going, asking)
        assert (first.status, again.status) == (200, 200)

    asyncio.run(scenario())
