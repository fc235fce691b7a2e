"""What a browser is told about every answer.

NiceGUI compiles its templates in the browser and runs what the server sends over its socket with `eval`, so scripts
need 'unsafe-eval'. Inline scripts do not: the ones that it writes into a page get a nonce here, so that a script, an
event handler or a `javascript:` link in a text that was not cleaned still does nothing.
"""

import secrets

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from presentation.server.refusal import header

_ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=(), payment=()",
}
_NO_PAGE = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; sandbox"
)
_LARGEST_PAGE = 16_000_000


class Headers:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Pages are read here, so nothing below may compress them.
        plain = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]}
        await self._app(plain, receive, _Sender(scope, send))


class _Sender:
    """Holds a page back until it is whole; lets everything else through piece by piece."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._host = header(scope, b"host").decode("latin-1")
        self._send = send
        self._start: Message | None = None
        self._page = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in _ALWAYS.items():
                headers[name] = value
            if headers.get("content-type", "").startswith("text/html"):
                self._start = message
                return
            headers["content-security-policy"] = _NO_PAGE
        elif message["type"] == "http.response.body" and self._start is not None:
            self._page += message.get("body", b"")
            if len(self._page) > _LARGEST_PAGE:
                raise RuntimeError("a page is too large to be sent")
            if message.get("more_body", False):
                return
            await self._send_page(self._start)
            return
        await self._send(message)

    async def _send_page(self, start: Message) -> None:
        nonce = secrets.token_urlsafe(16)
        page = bytes(self._page).replace(b"<script", f'<script nonce="{nonce}"'.encode())
        headers = MutableHeaders(raw=start["headers"])
        headers["content-security-policy"] = content_policy(nonce, self._host)
        headers["content-length"] = str(len(page))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": page})


def content_policy(nonce: str, host: str) -> str:
    """For a page: everything from here, nothing to anywhere else."""
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' 'nonce-{nonce}' 'unsafe-eval'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "font-src 'self' data:",
            f"connect-src 'self' ws://{host} wss://{host}",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-src 'none'",
            "frame-ancestors 'none'",
        )
    )
