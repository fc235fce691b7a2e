"""What a browser is told about every answer."""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from presentation.server.headers import Headers


def ask(app: ASGIApp) -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app=Headers(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8118") as asking:
            return await asking.get("/", headers={"Accept-Encoding": "gzip"})

    return asyncio.run(main())


PAGE = '<html><script>1</script><script type="module" src="/x.js"></script><p>&lt;script&gt;</p></html>'


def test_scripts_that_the_server_wrote_get_a_nonce_and_no_others_run() -> None:
    first, second = (ask(HTMLResponse(PAGE)) for _ in range(2))
    policy = first.headers["content-security-policy"]
    nonce = re.search(r"'nonce-([\w-]{22})'", policy)
    assert nonce is not None
    assert first.text.count(f'<script nonce="{nonce[1]}"') == 2
    assert int(first.headers["content-length"]) == len(first.content)
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert second.headers["content-security-policy"] != policy
    for directive in (
        "default-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self' ws://localhost:8118 wss://localhost:8118",
        "object-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ):
        assert directive in policy.split("; ")


def test_what_is_no_page_may_do_nothing_at_all() -> None:
    answer = ask(JSONResponse({"a": 1}))
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "sandbox" in answer.headers["content-security-policy"]
    for name, value in (
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ):
        assert answer.headers[name] == value


def test_a_page_is_never_compressed_below_and_a_stream_is_not_held_back() -> None:
    seen: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(name for name, _ in scope["headers"])

        async def pieces() -> AsyncIterator[str]:
            yield "data: 1\n\n"
            yield "data: 2\n\n"

        await StreamingResponse(pieces(), media_type="text/event-stream")(scope, receive, send)

    answer = ask(app)
    assert b"accept-encoding" not in seen
    assert answer.text == "data: 1\n\ndata: 2\n\n"
