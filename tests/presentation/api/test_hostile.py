"""Hostile requests: each is refused or bounded, the server goes on, and its log holds nothing of what was sent."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from data.inference.fake import FakeRunner
from presentation.api import live
from presentation.server import connection
from tests.presentation.api.served import Api
from tests.presentation.api.test_generation import CHAT, HELLO, on, until

SECRET = "my-secret-diary"
JSON = "Content-Type: application/json\r\nContent-Length: {length}"
POST = f"POST {CHAT} HTTP/1.1\r\nHost: {{host}}\r\n{JSON}"


def chat(**change: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": SECRET}], **change}).encode()


def nested(depth: int) -> bytes:
    return b'{"messages":' + b"[" * depth + b"]" * depth + b"}"


def deep_schema(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def format_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


REFUSED: dict[str, tuple[str, bytes, tuple[int, ...]]] = {
    "a body of 11 MB": (POST, chat(pad="x" * 11_000_000), (413,)),
    "10 MB of one field": (POST, chat(user="x" * 9_900_000), (400,)),
    "a chunked body without end": (
        f"POST {CHAT} HTTP/1.1\r\nHost: {{host}}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked",
        (b"100000\r\n" + b" " * 0x100000 + b"\r\n") * 11,
        (413,),
    ),
    "100 levels": (POST, nested(100), (400,)),
    "100,000 levels": (POST, nested(100_000), (400,)),
    "a schema of 100 levels": (POST, chat(response_format=format_of(deep_schema(100))), (200, 400)),
    "NaN": (POST, chat(temperature=float("nan")), (400,)),
    "infinity": (POST, chat(top_p=float("inf")), (400,)),
    "1e999": (POST, chat(temperature="T").replace(b'"T"', b"1e999"), (400,)),
    "invalid UTF-8": (POST, chat().replace(b"diary", b"\xff\xfe"), (400,)),
    "half a surrogate pair": (POST, chat().replace(b"diary", b"\\ud800"), (400,)),
    "a number of 5,000 digits": (POST, chat(seed=0).replace(b": 0", b": " + b"9" * 5_000), (400,)),
    "no JSON": (POST, b"messages=" + SECRET.encode(), (400,)),
    "a list": (POST, b"[" + chat() + b"]", (400,)),
    "a form, as another site's page can send it": (
        POST.replace("application/json", "text/plain"),
        chat(),
        (400,),
    ),
    "another host's name": (POST.replace("{host}", "evil.example"), chat(), (403,)),
    "another site's page": (f"{POST}\r\nOrigin: https://evil.example", chat(), (403,)),
    "another site, as the browser says": (f"{POST}\r\nSec-Fetch-Site: cross-site", chat(), (403,)),
    "no host": (POST.replace("Host: {host}\r\n", ""), chat(), (400,)),
    "two lengths": (f"{POST}\r\nContent-Length: 1", chat(), (400,)),
    "a length and chunks": (f"{POST}\r\nTransfer-Encoding: chunked", chat(), (400,)),
    "a space before the colon": (f"{POST}\r\nX-Secret : {SECRET}", chat(), (400,)),
    "a header on two lines": (f"{POST}\r\nX-Secret: a\r\n {SECRET}\x00", chat(), (400,)),
    "1 MB of headers": (f"{POST}\r\nX-Pad: {'x' * 1_000_000}", chat(), (400, 431)),
    "10,000 messages more than allowed": (POST, chat(messages=HELLO * 20_000), (400,)),
    "129 tools": (
        POST,
        chat(tools=[{"type": "function", "function": {"name": f"f{at}"}} for at in range(129)]),
        (400,),
    ),
    "17 stops": (POST, chat(stop=["x"] * 17), (400,)),
    "a model's path": (POST, chat(model="../../etc/passwd"), (404,)),
    "3,000 texts": (
        POST.replace(CHAT, "/v1/embeddings"),
        json.dumps({"input": ["a"] * 3_000}).encode(),
        (400,),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_the_server_goes_on(tmp_path: Path, name: str) -> None:
    head, body, allowed = REFUSED[name]

    async def test(api: Api) -> None:
        reader, writer = await api.raw(head, body)
        status = int((await reader.readline()).split()[1])
        writer.close()
        assert status in allowed
        async with api.client() as client:
            assert (await client.get("/health")).status_code == 200
        assert not api.dispatcher.snapshot().tiers
        log = api.log_file.read_text() if api.log_file.exists() else ""
        assert SECRET not in log
        assert "Traceback" not in log

    on(tmp_path, test)


def test_a_smuggled_request_is_not_answered(tmp_path: Path) -> None:
    """What follows a body that has two lengths is not taken for a request."""

    async def test(api: Api) -> None:
        inner = b"0\r\n\r\nGET /scheduler HTTP/1.1\r\nHost: x\r\n\r\n"
        reader, writer = await api.raw(
            f"{POST}\r\nTransfer-Encoding: chunked".replace("{length}", "4"), inner
        )
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1
        writer.close()

    on(tmp_path, test)


def test_a_slow_loris_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEADERS_S", 0.2)

    async def test(api: Api) -> None:
        idle = [await asyncio.open_connection(api.host, api.port) for _ in range(50)]
        for _, writer in idle:
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nX-")
        assert [await reader.read() for reader, _ in idle] == [b""] * 50
        for _, writer in idle:
            writer.close()
        async with api.client() as client:
            assert (await client.get("/health")).status_code == 200

    on(tmp_path, test)


@pytest.mark.parametrize("path", [CHAT, "/scheduler/events"])
def test_a_reader_that_never_reads_costs_a_buffer_and_then_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(live, "STUCK_S", 0.3)
    monkeypatch.setattr(connection, "UNREAD_S", 0.6)
    runner = FakeRunner(("tiny",), answer=lambda job: "word " * 200_000)

    async def test(api: Api) -> None:
        before = psutil.Process().memory_info().rss
        if path == CHAT:
            _, writer = await api.post(CHAT, {"messages": HELLO, "stream": True, "model": "tiny"})
        else:
            _, writer = await api.raw(f"GET {path} HTTP/1.1\r\nHost: {{host}}")
        reader = writer.transport
        reader.pause_reading()  # type: ignore[attr-defined]
        if path != CHAT:
            async with api.client() as client:
                await asyncio.gather(*(client.get("/scheduler") for _ in range(3)))
        else:
            await until(lambda: api.runner.running is not None)
            await until(_is_over(api))
        assert psutil.Process().memory_info().rss - before < 60_000_000
        writer.close()

    on(tmp_path, test, runner)


def _is_over(api: Api) -> Callable[[], bool]:
    return lambda: api.dispatcher.snapshot().running is None


def test_more_connections_than_allowed_are_told_so(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        waiting = [await api.post(CHAT, {"messages": HELLO, "model": "tiny"}) for _ in range(20)]
        await until(lambda: api.runner.running is not None)
        await asyncio.sleep(0.1)
        async with api.client() as client:
            assert (await client.get("/v1/models")).status_code == 503
            for _, writer in waiting:
                writer.close()
            async with asyncio.timeout(120):
                while (await client.get("/v1/models")).status_code != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True), max_connections=15)
