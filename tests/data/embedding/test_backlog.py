"""The process that embeds a backlog, on the real weights."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from data.embedding.backlog import BacklogEmbedder
from data.embedding.minilm import MiniLm
from data.embedding.queue import EmbeddingQueue
from data.embedding.weights import EmbedderWeights
from domain.entities.models import PullProgress
from domain.errors import ModelDamaged, ModelUnavailable

pytestmark = pytest.mark.model


def test_it_gives_the_values_of_the_lane_beside_everything_else(
    embedder_weights: EmbedderWeights, minilm: MiniLm
) -> None:
    async def scenario() -> None:
        queue = EmbeddingQueue(2)
        async with BacklogEmbedder(embedder_weights, queue) as backlog:
            texts = ["one note", "another\nnote", "\U0001f331 \ud800 grüne Notiz", "long " * 3_000, ""]
            found = await asyncio.gather(*map(backlog.embed, texts))
            assert [list(vector) for vector in found] == [minilm.embed(text).tolist() for text in texts]
            pid = backlog.pid
            assert pid is not None
            assert psutil.Process(pid).nice() == 19
            if sys.platform == "linux":
                assert os.sched_getscheduler(pid) == os.SCHED_IDLE
                # Linux compares niceness only within a session.
                assert os.getsid(pid) == os.getsid(0)
            assert os.getpgid(pid) != os.getpgid(0)  # a Ctrl-C in the terminal is the parent's to handle
        assert backlog.pid is None
        assert not psutil.pid_exists(pid)
        assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(scenario())


def test_a_process_that_is_killed_is_told_and_replaced(embedder_weights: EmbedderWeights) -> None:
    async def scenario() -> None:
        async with BacklogEmbedder(embedder_weights, EmbeddingQueue(2)) as backlog:
            before = await backlog.embed("a note")
            assert backlog.pid is not None
            psutil.Process(backlog.pid).suspend()
            waiting = asyncio.create_task(backlog.embed("another note"))
            await asyncio.sleep(0)
            psutil.Process(backlog.pid).kill()
            with pytest.raises(ModelUnavailable, match=r"embedding process .* ended .*SIGKILL"):
                await waiting
            assert await backlog.embed("a note") == before

    asyncio.run(scenario())


def test_a_cancelled_call_leaves_no_answer_for_the_next(embedder_weights: EmbedderWeights) -> None:
    async def scenario() -> None:
        async with BacklogEmbedder(embedder_weights, EmbeddingQueue(2)) as backlog:
            wanted = await backlog.embed("a note")
            cancelled = asyncio.create_task(backlog.embed("long " * 256))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert await backlog.embed("a note") == wanted

    asyncio.run(scenario())


def test_without_work_the_process_ends(embedder_weights: EmbedderWeights) -> None:
    async def scenario() -> None:
        async with BacklogEmbedder(embedder_weights, EmbeddingQueue(2), idle_s=0.0) as backlog:
            wanted = await backlog.embed("a note")
            process = backlog._process
            assert process is not None
            await process._process.wait()
            assert backlog.pid is None
            assert await backlog.embed("a note") == wanted

    asyncio.run(scenario())


class Elsewhere(EmbedderWeights):
    """Weights that are thought to be whole."""

    def __init__(self, folder: Path) -> None:
        self._found = folder

    async def ensure(self, progress: Callable[[PullProgress], None] = lambda step: None) -> Path:
        return self._found


def test_weights_that_do_not_load_are_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with BacklogEmbedder(Elsewhere(tmp_path), EmbeddingQueue(2)) as backlog:
            for _ in range(2):
                with pytest.raises(ModelDamaged, match="cannot be loaded"):
                    await backlog.embed("a note")
            assert backlog.pid is None

    asyncio.run(scenario())
