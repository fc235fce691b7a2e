"""What is told to whoever still waits for an answer when the server ends."""

import asyncio
import json

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from presentation.server.refusal import Refusal, error_body, refuse

_CLOSING = Refusal(503, "UNIUN is closing, so this was not answered to its end. Ask again.", "cancelled")


class Closing:
    """ASGI middleware: a request that is cancelled, which only the end of the server does, is answered with that.

    503 where nothing was sent yet; a stream of events, whose status is sent, gets an event and ends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        ended = False

        async def told(message: Message) -> None:
            nonlocal start, ended
            if message["type"] == "http.response.start":
                start = message
            else:
                ended = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, told)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise
            if start is None:
                await refuse(scope, send, _CLOSING)
            elif not ended and _is_events(start):
                event = f"data: {json.dumps(error_body(_CLOSING))}\n\n".encode()
                await send({"type": "http.response.body", "body": event, "more_body": False})
            elif not ended:
                raise  # half an answer of another kind can only be cut off


def _is_events(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "").startswith("text/event-stream")
