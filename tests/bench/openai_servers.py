"""Servers that speak OpenAI's protocol, each in a process of its own, and one plain client for all of them."""

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from data.clock import Clock
from domain.errors import EngineError
from tests.bench.prompts import note
from tests.bench.setting import Setting

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT_S = 120.0
ANSWER_LIMIT_S = 900.0


@dataclass(frozen=True)
class Answered:
    """In seconds from the request."""

    first_token_s: float
    last_token_s: float
    tokens: int


class Client:
    """Streams chat completions over connections of its own."""

    def __init__(self, url: str, model: str, clock: Clock) -> None:
        self.url = url
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._model = model
        self._clock = clock

    async def ask(self, number: int, tokens: int, sentences: int = 3, **words: Any) -> Answered:
        """Greedy. The number makes a prompt that shares no beginning with another."""
        content = f"Read these notes: {note(number, sentences)} Then write a long story about a fisherman."
        system = f"{number:06d}. You are a friendly assistant who answers at length."
        body = json.dumps(
            {
                "model": self._model,
                "messages": [
                    {"role": "system", "content": system},
                    {"role": "user", "content": content},
                ],
                "max_tokens": tokens,
                "temperature": 0,
                "stream": True,
                **words,
            }
        ).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        start = self._clock.monotonic()
        reader, writer = await asyncio.open_connection(self._host, self._port)
        first: float | None = None
        last, pieces = 0.0, 0
        try:
            writer.write(head.encode() + body)
            async with asyncio.timeout(ANSWER_LIMIT_S):
                while line := await reader.readline():
                    if not line.startswith(b"data: {"):
                        continue
                    event = json.loads(line[6:])
                    if "error" in event:
                        raise EngineError(f"The server says: {event['error']}")
                    if event["choices"] and event["choices"][0]["delta"].get("content"):
                        last = self._clock.monotonic() - start
                        first, pieces = first if first is not None else last, pieces + 1
        finally:
            writer.close()
        if first is None:
            raise EngineError("The answer is empty.")
        return Answered(first, last, pieces)

    async def reachable(self, process: asyncio.subprocess.Process) -> None:
        """Waits until the port answers. Raises `EngineError`."""
        try:
            async with asyncio.timeout(START_LIMIT_S):
                while process.returncode is None:
                    with contextlib.suppress(OSError):
                        _, writer = await asyncio.open_connection(self._host, self._port)
                        writer.close()
                        return
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pass
        raise EngineError("A server could not be started.")


@asynccontextmanager
async def uniun(setting: Setting, store: Path) -> AsyncIterator[tuple[Client, int]]:
    """`uniun serve` as it comes, on an empty database, and its process id."""
    with tempfile.TemporaryDirectory() as folder:
        for weights in ("models", "embedders"):
            (Path(folder) / weights).symlink_to(store / weights)
        environment = {"UNIUN_DATA_DIR": folder, "UNIUN_LOG_DIR": folder}
        port = free_port()
        async with _program(("-m", "uniun", "serve", "--port", str(port)), environment) as process:
            client = Client(f"http://127.0.0.1:{port}", setting.model.name, setting.clock)
            await client.reachable(process)
            yield client, process.pid


@asynccontextmanager
async def mlx_server(setting: Setting) -> AsyncIterator[Client]:
    """`mlx_lm.server` as it comes, with the same model in MLX's format. Raises `EngineError`."""
    if importlib.util.find_spec("mlx_lm") is None or setting.model.mlx_path is None:
        raise EngineError("mlx_lm or the model in its format is missing.")
    path, port = str(setting.model.mlx_path), free_port()
    arguments = ("-m", "mlx_lm.server", "--model", path, "--port", str(port), "--host", "127.0.0.1")
    async with _program(arguments, {}) as process:
        client = Client(f"http://127.0.0.1:{port}", path, setting.clock)
        await client.reachable(process)
        yield client


@asynccontextmanager
async def _program(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(20):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
