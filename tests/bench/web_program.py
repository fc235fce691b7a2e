"""The served app for `web_pages`: `web_program.py PORT LAGS clock|model`.

With `clock` every token is the time at which it was made, 40 a second. How late the event loop woke up goes to the file
LAGS at the end: on each line when it should have, by the monotonic clock that all programs share, and the seconds.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer

import uniun
from data.clock import SystemClock
from data.inference.fake import FakeRunner
from domain.repositories.inference_runner import RunnerJob, RunnerOutcome, RunnerProgress
from presentation.cli.serve import serve
from tests.fakes import MemoryStore

STEP_S = 0.005
TOKEN_S = 0.025
TOKENS = 200


class ClockRunner(FakeRunner):
    """Says what time it is, in milliseconds since 1970."""

    def __init__(self) -> None:
        super().__init__(("tiny",), answer_tokens=TOKENS, prefill_chunk=512)

    async def run(self, job: RunnerJob, emit: Callable[[RunnerProgress], None]) -> RunnerOutcome:
        clock = SystemClock()

        def tell(progress: RunnerProgress) -> None:
            text = f" {clock.now().timestamp() * 1000:.1f}" if progress.text else ""
            emit(progress.model_copy(update={"text": text}))

        return await super().run(job, tell)

    async def _boundary_allowed(self) -> None:
        await super()._boundary_allowed()
        await asyncio.sleep(TOKEN_S)


def _over(build: Callable[..., DeclarativeContainer]) -> Callable[..., DeclarativeContainer]:
    def built(*given: object) -> DeclarativeContainer:
        container = build(*given)
        container.runner.override(providers.Object(ClockRunner()))
        container.store.override(providers.Object(MemoryStore("tiny")))
        return container

    return built


async def main(port: int, engine: str, late: list[tuple[float, float]]) -> None:
    if engine == "clock":
        uniun.build_container = _over(uniun.build_container)
    sampler = asyncio.ensure_future(_sample(late))
    try:
        await serve(uniun.open_server, "127.0.0.1", port, show=False)
    finally:
        sampler.cancel()


async def _sample(late: list[tuple[float, float]]) -> None:
    clock = SystemClock()
    while True:
        due = clock.monotonic() + STEP_S
        await asyncio.sleep(STEP_S)
        late.append((due, max(0.0, clock.monotonic() - due)))


if __name__ == "__main__":
    late_s: list[tuple[float, float]] = []
    try:
        asyncio.run(main(int(sys.argv[1]), sys.argv[3], late_s))
    finally:
        Path(sys.argv[2]).write_text("".join(f"{at} {late}\n" for at, late in late_s), encoding="utf-8")
