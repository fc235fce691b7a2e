"""What a program reads whose request is not answered to its end when the server ends."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from data.inference.fake import FakeRunner
from presentation.server import listen
from tests.presentation.api.served import served
from tests.presentation.api.test_generation import CHAT, HELLO, until


def test_whoever_waits_when_the_server_ends_is_told_to_ask_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is being answered, the others are in the queue; two of the four are streamed."""
    monkeypatch.setattr(listen, "GRACE_S", 0)

    async def main() -> list[bytes]:
        lines = []
        async with served(tmp_path, FakeRunner(("tiny",), stepped=True)) as api:
            for user, stream in (("a", True), ("b", False), ("c", True), ("d", False)):
                lines.append(await api.post(CHAT, {"messages": HELLO, "stream": stream, "user": user}))
                await until(lambda: api.runner.running is not None)
            await until(lambda: sum(map(len, api.dispatcher.snapshot().tiers.values())) == 3)
            await api.runner.step()
            begun = [await lines[at][0].readuntil(b"\r\n\r\n") for at in (0, 2)]
            assert all(head.startswith(b"HTTP/1.1 200") for head in begun)

            async def read_to_the_end() -> list[bytes]:
                told = [await reader.read() for reader, _ in lines]
                await api.runner.step()  # the engine stops at a boundary only
                return told

            reading = asyncio.create_task(read_to_the_end())
        return await reading

    async def limited() -> list[bytes]:
        async with asyncio.timeout(120):
            return await main()

    running, second, third, fourth = asyncio.run(limited())
    for whole in (second, fourth):
        head, body = whole.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 5" in head.lower()
        _is_told(json.loads(body))
    for stream in (running, third):
        assert stream.endswith(b"\r\n0\r\n\r\n")  # it ends, it is not cut
        (event,) = (line for line in stream.splitlines() if line.startswith(b"data: "))
        _is_told(json.loads(event.removeprefix(b"data: ")))
    assert " ERROR " not in (tmp_path / "server.log").read_text()


def _is_told(body: dict[str, Any]) -> None:
    error = body["error"]
    assert "UNIUN is closing" in error["message"]
    assert "Ask again" in error["message"]
    assert (error["type"], error["param"], error["code"]) == ("server_error", None, "cancelled")
