"""The served app as a program of its own, over an engine that says what it is told, so that tests control it.

`program.py PORT TOKENS_PER_S`, or `program.py PORT model` for the real one. The answer to "Say: X" is X, word for word; every other answer is made of trees and rivers.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer

import uniun
from data.inference.fake import FakeRunner
from domain.repositories.inference_runner import RunnerJob
from presentation.cli.serve import serve as answer
from tests.fakes import MemoryStore

MODELS = ("tiny", "other")
_SAY = "Say: "
GIVEN_UP_S = 1.0
"""So soon a page that was closed is forgotten, from when somebody counts pages."""


class PacedRunner(FakeRunner):
    """One boundary every `pace_s`."""

    def __init__(self, pace_s: float) -> None:
        super().__init__(MODELS, answer=_said, answer_tokens=60, prefill_chunk=64)
        self._pace_s = pace_s

    async def _boundary_allowed(self) -> None:
        await super()._boundary_allowed()
        await asyncio.sleep(self._pace_s)


def _said(job: RunnerJob) -> str:
    asked = job.messages[-1].content if job.messages else job.prompt or ""
    if _SAY in asked:
        return asked[asked.rindex(_SAY) + len(_SAY) :]
    return "The river runs past the old mill, and the willows lean over it as they always have. " * 3


def _over(
    runner: PacedRunner, build: Callable[..., DeclarativeContainer]
) -> Callable[..., DeclarativeContainer]:
    def built(settings: object) -> DeclarativeContainer:
        container = build(settings)
        container.runner.override(providers.Object(runner))
        container.store.override(providers.Object(MemoryStore(*MODELS)))
        return container

    return built


def tell_pages() -> None:
    """How many pages are alive, open or forgotten by everybody but the garbage, and what the largest is made of."""
    from nicegui import Client, app  # the server says where its files go before this is imported

    app.config.reconnect_timeout = GIVEN_UP_S
    gc.collect()
    pages = [each for each in gc.get_objects() if isinstance(each, Client)]
    sys.stdout.write(
        f"pages {len(pages)} elements {max((len(page.elements) for page in pages), default=0)}\n"
    )
    sys.stdout.flush()


async def end_with(parent: int) -> None:
    """Whoever started this may be killed, and then nobody else ends it."""
    while os.getppid() == parent:  # noqa: ASYNC110 - the end of a parent is no event
        await asyncio.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


async def serve(port: int, speed: str) -> None:
    watch = asyncio.ensure_future(end_with(os.getppid()))
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell_pages)
    if speed != "model":
        uniun.build_container = _over(PacedRunner(1 / float(speed)), uniun.build_container)
    try:
        await answer(uniun.open_server, "127.0.0.1", port, show=False)
    finally:
        watch.cancel()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
