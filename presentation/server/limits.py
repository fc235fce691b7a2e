"""How much may be sent to the server, and how slowly."""

import asyncio
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from presentation.server.refusal import Refusal, header, refuse

IDLE_S = 20.0
"""A body may pause for so long …"""
WHOLE_S = 300.0
"""… and come for so long."""
_UPLOAD = re.compile(r"/_nicegui/client/[^/]+/upload/\d+")
"""Where a page takes files."""
_LINGER_S = 2.0
"""A client that is still sending sees the refusal only if what it sends is read for a while."""
_LINGER_BYTES = 32_000_000


def _too_large(max_bytes: int) -> Refusal:
    return Refusal(413, f"The request is too large: at most {max_bytes // 1_000_000} MB are taken.")


class BodyLimit:
    """ASGI middleware: 413 before a body that says that it is too large, or in the middle of one that does not."""

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int,
        *,
        max_upload_bytes: int | None = None,
        idle_s: float = IDLE_S,
        whole_s: float = WHOLE_S,
    ) -> None:
        """`max_upload_bytes` is for the files that a page takes; without it they are as any other body."""
        self._app = app
        self._max_bytes = max_bytes
        self._max_upload_bytes = max_upload_bytes or max_bytes
        self._idle_s = idle_s
        self._whole_s = whole_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._max_upload_bytes if _UPLOAD.fullmatch(scope["path"]) else self._max_bytes
        body = _Body(self, most, scope, receive, send)
        length = header(scope, b"content-length")
        if length and int(length) > most:
            await body.refuse(_too_large(most))
            return
        await self._app(scope, body.receive, body.send)

    async def piece(self, receive: Receive, deadline: float) -> Message:
        """Raises `TimeoutError`."""
        now = asyncio.get_running_loop().time()
        async with asyncio.timeout(max(0.0, min(self._idle_s, deadline - now))):
            return await receive()

    @property
    def whole_s(self) -> float:
        return self._whole_s


class PlacesForPages:
    """ASGI middleware: a program that opens all the connections there may be would keep the user out of their own app."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        """`most`: requests of programs that may be in work at once."""
        self._app = app
        self._most = most
        self._taken = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        if self._taken >= self._most:
            await refuse(
                scope, send, Refusal(503, f"{self._taken} requests are in work already. Try again soon.")
            )
            return
        self._taken += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._taken -= 1


class _Body:
    """Of one request. Once refused, the application below is told that the client has gone, and is not heard."""

    def __init__(self, limit: BodyLimit, max_bytes: int, scope: Scope, receive: Receive, send: Send) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._scope = scope
        self._receive = receive
        self._send = send
        self._deadline = asyncio.get_running_loop().time() + limit.whole_s
        self._bytes = 0
        self._more = True
        self._answering = False
        self._refused = False

    async def receive(self) -> Message:
        if self._refused:
            return {"type": "http.disconnect"}
        if not self._more:
            return await self._receive()
        try:
            message = await self._limit.piece(self._receive, self._deadline)
        except TimeoutError:
            return await self.refuse(Refusal(408, "The rest of the request did not come."))
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._more = message.get("more_body", False)
            if self._bytes > self._max_bytes:
                return await self.refuse(_too_large(self._max_bytes))
        return message

    async def send(self, message: Message) -> None:
        if self._refused:
            return
        self._answering = True
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> Message:
        self._refused = True
        if not self._answering:
            await refuse(self._scope, self._send, refusal, end=False)
            await self._linger()
            await self._send({"type": "http.response.body", "body": b""})
        return {"type": "http.disconnect"}

    async def _linger(self) -> None:
        read = 0
        try:
            async with asyncio.timeout(_LINGER_S):
                while self._more and read < _LINGER_BYTES:
                    message = await self._receive()
                    self._more = message.get("more_body", False)
                    read += len(message.get("body", b""))
        except TimeoutError:
            return
