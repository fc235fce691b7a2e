import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from data.models.reachability import HubReachability


@asynccontextmanager
async def hub(answer: bytes | None) -> AsyncIterator[str]:
    """Answers each request so, or never."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is not None:
            writer.write(answer)
        else:
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def answers(reply: bytes | None, limit_s: float = 3.0) -> bool:
    async def ask() -> bool:
        async with hub(reply) as url:
            return await HubReachability(url, limit_s=limit_s).answers()

    return asyncio.run(ask())


def test_it_is_there_if_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert answers(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert not answers(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
    assert not answers(b"nonsense\r\n\r\n")
    assert not answers(None, limit_s=0.05)
    assert not asyncio.run(HubReachability("http://127.0.0.1:1").answers())
    assert not asyncio.run(HubReachability("nowhere at all").answers())


def test_offline_means_that_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not answers(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
