"""Text to vector for the rest of the program. The numerics are imported with the first text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from data.clock import Clock
from data.embedding.queue import EmbeddingQueue
from data.embedding.weights import EmbedderWeights
from data.models.threads import in_thread
from domain.entities.models import PullProgress
from domain.errors import ModelError

if TYPE_CHECKING:
    from data.embedding.minilm import MiniLm

_PAUSE_AFTER_FAILURE_S = 30.0


def _opened(folder: Path) -> MiniLm:
    from data.embedding.minilm import MiniLm

    return MiniLm(folder)


class EmbeddingService:
    """Implements `Embedder`: the lane's queue, a thread for the arithmetic, the weights fetched on first use."""

    def __init__(
        self,
        weights: EmbedderWeights,
        lane: EmbeddingQueue,
        clock: Clock,
        progress: Callable[[PullProgress], None] = lambda step: None,
    ) -> None:
        self.weights = weights
        self.lane = lane
        self._clock = clock
        self._progress = progress
        self._loading = asyncio.Lock()
        self._model: MiniLm | None = None
        self._failed: tuple[float, ModelError] | None = None

    @property
    def dimensions(self) -> int:
        from data.embedding.minilm import DIMENSIONS

        return DIMENSIONS

    async def embed(self, text: str) -> Sequence[float]:
        """384 numbers. Raises `QueueFull`; `ModelUnavailable`, `ModelDamaged` or `StoreBusy` if the weights are not
        to be had, and the same again without a new attempt for the next 30 seconds."""
        return await self.lane.run(lambda: self._embed(text))

    async def _embed(self, text: str) -> Sequence[float]:
        model = await self._loaded()
        vector: list[float] = await in_thread(
            lambda step: model.embed(text, step).tolist(), lambda layer: None
        )
        return vector

    async def _loaded(self) -> MiniLm:
        async with self._loading:
            if self._model is not None:
                return self._model
            if (
                self._failed is not None
                and self._clock.monotonic() - self._failed[0] < _PAUSE_AFTER_FAILURE_S
            ):
                error = self._failed[1]
                raise type(error)(str(error)) from error
            try:
                folder = await self.weights.ensure(self._progress)
                self._model = await in_thread(lambda step: _opened(folder), lambda done: None)
            except ModelError as failure:
                self._failed = (self._clock.monotonic(), failure)
                raise
            return self._model
