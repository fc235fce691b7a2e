"""What is sent instead of an answer, to whoever is not let in."""

import html
import json
import logging
from dataclasses import dataclass

from starlette.types import Scope, Send

_LOG = logging.getLogger("uniun.server")
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>UNIUN</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:1.1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1rem;
color-scheme:light dark}}</style></head><body><main><h1>UNIUN</h1><p>{}</p></main></body></html>"""
_CODES = {
    400: "invalid_request",
    401: "invalid_api_key",
    403: "forbidden",
    408: "timeout",
    413: "too_large",
    503: "too_many_requests",
}


@dataclass(frozen=True)
class Refusal:
    """`why` says it to people, `code` to programs: without one it follows from the status."""

    status: int
    why: str
    code: str | None = None


async def refuse(scope: Scope, send: Send, refusal: Refusal, *, end: bool = True) -> None:
    """A page for a browser, OpenAI's shape of an error for a program; a WebSocket is not opened.

    Without `end` the last piece is left to the caller. Logged with the address, never with what was sent.
    """
    client = scope.get("client") or ("?", 0)
    _LOG.warning("refused %s from %s: %s", refusal.status, client[0], refusal.why)
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"connection", b"close"), (b"cache-control", b"no-store")]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status == 503:
        headers.append((b"retry-after", b"5"))
    if b"text/html" in header(scope, b"accept"):
        kind, body = b"text/html; charset=utf-8", _PAGE.format(html.escape(refusal.why)).encode()
    else:
        kind, body = b"application/json", json.dumps(error_body(refusal)).encode()
    headers += [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": not end})


def error_body(refusal: Refusal) -> dict[str, object]:
    """In OpenAI's shape."""
    error = {
        "message": refusal.why,
        "type": "server_error" if refusal.status >= 500 else "invalid_request_error",
        "param": None,
        "code": refusal.code or _CODES[refusal.status],
    }
    return {"error": error}


def header(scope: Scope, name: bytes) -> bytes:
    """The last one of this name; empty if there is none."""
    return next((value for key, value in reversed(scope["headers"]) if key == name), b"")
