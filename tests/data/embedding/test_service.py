import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.embedding.minilm import MiniLm
from data.embedding.queue import EmbeddingQueue
from data.embedding.service import EmbeddingService
from data.embedding.weights import EmbedderWeights
from domain.entities.models import PullProgress
from domain.errors import ModelUnavailable

TEXTS = [f"Note number {i}: {'water the garden and call the plumber. ' * (i % 4)}" for i in range(12)]


class HandClock:
    """Moves when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 11, 29, tzinfo=UTC)


class Unavailable(EmbedderWeights):
    """A network that is down."""

    attempts = 0

    async def ensure(self, progress: Callable[[PullProgress], None] = lambda step: None) -> Path:
        self.attempts += 1
        raise ModelUnavailable("the package index cannot be reached")


@pytest.mark.model
def test_side_by_side_gives_the_values_of_one_by_one(
    embedder_weights: EmbedderWeights, minilm: MiniLm
) -> None:
    alone = [minilm.embed(text).tolist() for text in TEXTS]

    async def scenario() -> list[list[float]]:
        service = EmbeddingService(embedder_weights, EmbeddingQueue(3), HandClock())
        return [list(vector) for vector in await asyncio.gather(*map(service.embed, TEXTS))]

    assert asyncio.run(scenario()) == alone


@pytest.mark.model
def test_cancelling_stops_the_thread_and_frees_the_place(embedder_weights: EmbedderWeights) -> None:
    async def scenario() -> None:
        queue = EmbeddingQueue(1)
        service = EmbeddingService(embedder_weights, queue, HandClock())
        assert len(await service.embed("warm")) == service.dimensions == 384
        running = asyncio.create_task(service.embed("long " * 256))
        waiting = asyncio.create_task(service.embed("short"))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(await waiting) == 384
        assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(scenario())


def test_a_failure_is_not_tried_again_for_every_note(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock, weights, queue = HandClock(), Unavailable(tmp_path), EmbeddingQueue()
        service = EmbeddingService(weights, queue, clock)
        results = await asyncio.gather(*map(service.embed, TEXTS), return_exceptions=True)
        assert all(isinstance(result, ModelUnavailable) for result in results)
        assert weights.attempts == 1
        clock.seconds = 31
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await service.embed("again")
        assert weights.attempts == 2
        assert queue.running == 0

    asyncio.run(scenario())
