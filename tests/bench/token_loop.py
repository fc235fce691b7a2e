"""The token loop in a process of its own without the pipe's JSON and the event loop: what the engine could do at most.

As a program, `python -m tests.bench.token_loop GGUF THREADS` answers JSON lines until its standard input ends.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from data.clock import SystemClock
from data.inference.llama_backend import LlamaBackend
from data.inference.options import EngineOptions
from data.inference.process import ENGINE
from data.inference.token_loop import TokenLoop
from domain.entities.llm import Sampling
from domain.errors import EngineError
from domain.repositories.inference_runner import RunnerJob
from tests.bench.child import child

__all__ = ["Speed", "job", "running"]

LIMIT_S = 300.0


@dataclass(frozen=True)
class Speed:
    """Tokens per second, as seen by whoever reads the stream. The prefill includes the first token's own step."""

    prompt_tokens: int
    prefill_tps: float
    decode_tps: float

    @classmethod
    def of(cls, prompt_tokens: int, tokens: int, first_s: float, last_s: float) -> "Speed":
        """From the times of the first and the last token since the request."""
        return cls(prompt_tokens, prompt_tokens / first_s, (tokens - 1) / (last_s - first_s))


def job(number: int, prompt: str, tokens: int) -> RunnerJob:
    key = f"speed-{number}"
    return RunnerJob(id=key, cache_key=key, prompt=prompt, max_tokens=tokens, sampling=Sampling(seed=1))


@dataclass(frozen=True)
class Alone:
    """The parent's end."""

    process: asyncio.subprocess.Process

    async def complete(self, number: int, prompt: str, tokens: int) -> Speed:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([number, prompt, tokens]).encode() + b"\n")
        async with asyncio.timeout(LIMIT_S):
            line = await self.process.stdout.readline()
        if not line:
            raise EngineError("The process with the token loop ended.")
        return Speed(**json.loads(line))


@asynccontextmanager
async def running(gguf: Path, threads: int) -> AsyncIterator[Alone]:
    async with child(
        "tests.bench.token_loop", str(gguf), str(threads), environment=ENGINE.environment
    ) as process:
        yield Alone(process)


def _serve(gguf: Path, threads: int) -> None:
    # Native code prints to file descriptor 1; the answers get a descriptor of their own.
    out = os.dup(1)
    os.dup2(2, 1)
    options, clock = EngineOptions(threads=threads), SystemClock()
    loop = TokenLoop(LlamaBackend(gguf, options, clock), options, clock)
    for line in sys.stdin:
        number, prompt, tokens = json.loads(line)
        times: list[float] = []
        start = clock.monotonic()

        def at_boundary(
            prefilled: int,
            prompt: int,
            done: int,
            token: int | None,
            text: str,
            times: list[float] = times,
            start: float = start,
        ) -> None:
            if token is not None:
                times.append(clock.monotonic() - start)

        outcome = loop.run(job(number, prompt, tokens), [], at_boundary, lambda: False)
        speed = Speed.of(outcome.usage.prompt_tokens, len(times), times[0], times[-1])
        os.write(out, json.dumps(asdict(speed)).encode() + b"\n")


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
