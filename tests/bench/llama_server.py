"""llama-server (wheel `xllamacpp`) in a process of its own, asked over HTTP on loopback.

As a program, `python -m tests.bench.llama_server GGUF THREADS CONTEXT SLOTS` serves until its standard input ends.
"""

import asyncio
import ctypes.util
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from data.clock import Clock
from domain.errors import EngineError
from tests.bench.child import child
from tests.bench.token_loop import Speed

START_LIMIT_S = 60.0
ANSWER_LIMIT_S = 300.0


class Peer:
    """A client that reads the stream as plainly as can be, so that it costs the server nothing."""

    def __init__(self, url: str, clock: Clock) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._clock = clock

    async def complete(self, number: int, prompt: str, tokens: int) -> Speed:
        """Greedy, nothing cached, exactly so many tokens."""
        body = json.dumps(
            {
                "prompt": prompt,
                "n_predict": tokens,
                "stream": True,
                "cache_prompt": False,
                "ignore_eos": True,
                "samplers": ["top_k"],
                "top_k": 1,
            }
        ).encode()
        head = (
            f"POST /completion HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        start = self._clock.monotonic()
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(head.encode() + body)
            first = last = 0.0
            async with asyncio.timeout(ANSWER_LIMIT_S):
                while line := await reader.readline():
                    if not line.startswith(b"data: {"):
                        continue
                    now = self._clock.monotonic() - start
                    event = json.loads(line[6:])
                    if event["stop"]:
                        timings = event["timings"]
                        return Speed.of(timings["prompt_n"], timings["predicted_n"], first, last)
                    first, last = first or now, now
        finally:
            writer.close()
        raise EngineError("llama-server closed the stream before its end.")


@asynccontextmanager
async def serving(
    gguf: Path, threads: int, context_tokens: int, clock: Clock, environment: Mapping[str, str]
) -> AsyncIterator[Peer]:
    """`gguf` is absolute. Raises `EngineError` if the server cannot be started."""
    async with server(gguf, threads, context_tokens, environment) as url:
        yield Peer(url, clock)


@asynccontextmanager
async def server(
    gguf: Path, threads: int, context_tokens: int, environment: Mapping[str, str], *, slots: int = 1
) -> AsyncIterator[str]:
    """The address of a server that runs while entered; the slots share the context. Raises as `serving` does."""
    arguments = (str(gguf), str(threads), str(context_tokens), str(slots))
    with _openmp() as folder:
        libraries = {"LD_LIBRARY_PATH": folder} if folder else {}
        async with child(
            "tests.bench.llama_server", *arguments, environment={**environment, **libraries}
        ) as process:
            assert process.stdout is not None
            async with asyncio.timeout(START_LIMIT_S):
                url = (await process.stdout.readline()).decode().strip()
            if not url:
                raise EngineError(
                    "llama-server could not be started. Install xllamacpp, which the dependency group bench holds."
                )
            yield url


@contextmanager
def _openmp() -> Iterator[str | None]:
    """xllamacpp wants the system's OpenMP library; where there is none, a folder with the one that cyllama brings."""
    spec = importlib.util.find_spec("cyllama")
    if ctypes.util.find_library("gomp") or spec is None or spec.origin is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        for library in Path(spec.origin).parents[1].glob("cyllama.libs/libgomp*"):
            (Path(folder) / "libgomp.so.1").symlink_to(library)
        yield folder


def _serve(gguf: str, threads: int, context_tokens: int, slots: int) -> None:
    import xllamacpp

    # Native code prints to file descriptor 1; the address gets a descriptor of its own.
    out = os.dup(1)
    os.dup2(2, 1)
    params: Any = xllamacpp.CommonParams()
    params.model.path = gguf
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_ctx = context_tokens
    params.n_parallel = slots
    server = xllamacpp.Server(params)
    os.write(out, f"{server.listening_address}\n".encode())
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
