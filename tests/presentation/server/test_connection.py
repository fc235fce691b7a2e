"""Connections that say nothing, too slowly, or do not listen; on a real port, with little patience."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from presentation.server import connection
from presentation.server.limits import BodyLimit
from presentation.server.listen import bound, serve
from presentation.server.options import ServerOptions

LIMIT_S = 240
PIECE = b"x" * 16_384
Stage = tuple[int, dict[str, int]]


def play(folder: Path, scene: Callable[[Stage], Awaitable[None]], max_connections: int = 100) -> None:
    async def main() -> None:
        seen = {"made": 0, "left": 0}
        app = FastAPI()

        @app.get("/ping")
        async def ping() -> str:
            return "pong"

        @app.post("/take")
        async def take(request: Request) -> int:
            return len(await request.body())

        @app.get("/flood")
        async def flood() -> StreamingResponse:
            async def pieces() -> AsyncIterator[bytes]:
                try:
                    while True:
                        seen["made"] += 1
                        yield PIECE
                        await asyncio.sleep(0)
                finally:
                    seen["left"] += 1

            return StreamingResponse(pieces(), media_type="text/event-stream")

        app.add_middleware(BodyLimit, max_bytes=1_000_000, idle_s=0.3)
        with bound("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
            options = ServerOptions(
                "127.0.0.1", port, "s", "c", folder, folder / "server.log", max_connections=max_connections
            )
            stop, ready = asyncio.Event(), asyncio.Event()
            serving = asyncio.create_task(serve(app, listener, options, stop, ready.set))
            await ready.wait()
            try:
                await asyncio.wait_for(scene((port, seen)), LIMIT_S)
            finally:
                stop.set()
                await serving

    asyncio.run(main())


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEADERS_S", 0.3)
    monkeypatch.setattr(connection, "UNREAD_S", 0.3)


async def said(port: int, text: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    await writer.drain()
    return reader, writer


async def rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.parametrize("beginning", [b"", b"GET /ping HTT", b"GET /ping HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_headers_that_do_not_come_end_the_connection(beginning: bytes, tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        reader, writer = await said(stage[0], beginning)
        assert await rest(reader) == b""
        writer.close()

    play(tmp_path, scene)


def test_so_do_those_of_a_second_request(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        reader, writer = await said(stage[0], b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"pong" in await reader.readuntil(b'"pong"')
        writer.write(b"GET /ping HTTP/1.1\r\n")
        assert await rest(reader) == b""
        writer.close()

    play(tmp_path, scene)


def test_a_body_that_does_not_come_is_answered_and_ended(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        head = b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123"
        reader, writer = await said(stage[0], head)
        assert (await rest(reader)).startswith(b"HTTP/1.1 408")
        writer.close()

    play(tmp_path, scene)


def test_headers_without_end_are_refused(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        reader, writer = await said(stage[0], b"GET /ping HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 200_000)
        assert (await rest(reader))[:12] in (b"HTTP/1.1 400", b"")
        writer.close()

    play(tmp_path, scene)


def test_a_request_that_is_being_answered_is_not_hurried(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        port, seen = stage
        reader, writer = await said(port, b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        loop = asyncio.get_running_loop()
        until = loop.time() + 1.0
        while loop.time() < until:
            assert await reader.read(65_536)
        assert seen["left"] == 0
        writer.close()

    play(tmp_path, scene)


def test_a_reader_that_never_reads_fills_a_buffer_and_is_dropped(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        port, seen = stage
        _, writer = await said(port, b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(LIMIT_S * 50):
            if seen["left"]:
                break
            await asyncio.sleep(0.02)
        assert seen["left"]
        # What the two kernels and the client's own buffer hold, not what could have been made meanwhile.
        assert seen["made"] * len(PIECE) < 32_000_000
        writer.close()

    play(tmp_path, scene)


def test_more_connections_than_are_taken_are_told_so(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        port, _ = stage
        held = [await said(port, b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
        await asyncio.sleep(0.05)
        reader, writer = await said(port, b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await rest(reader)).startswith(b"HTTP/1.1 503")
        for _, other in [*held, (reader, writer)]:
            other.close()

    play(tmp_path, scene, max_connections=4)


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    @asynccontextmanager
    async def broken(app: FastAPI) -> AsyncIterator[None]:
        raise ZeroDivisionError("secret words")
        yield

    async def main() -> None:
        with bound("127.0.0.1", 0) as listener:
            options = ServerOptions("127.0.0.1", 1, "s", "c", tmp_path, tmp_path / "server.log")
            with pytest.raises(RuntimeError, match=r"server\.log"):
                await serve(FastAPI(lifespan=broken), listener, options, asyncio.Event(), lambda: None)
        log = (tmp_path / "server.log").read_text()
        assert "ZeroDivisionError" in log
        assert "broken" in log
        assert "secret words" not in log

    asyncio.run(main())
