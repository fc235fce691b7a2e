"""Text to vector for the rest of the program."""

import asyncio
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from data.clock import Clock
from data.embedding.minilm import DIMENSIONS, MiniLm
from data.embedding.queue import EmbeddingQueue
from data.embedding.weights import EmbedderWeights
from data.models.threads import in_thread
from domain.entities.models import PullProgress
from domain.errors import ModelError

_PAUSE_AFTER_FAILURE_S = 30.0

# Where the language model wants all cores, work in such a thread gets about a tenth of one. At the usual priority, a chat
# on two cores kept a tenth of its tokens a second while notes were embedded: its threads wait for each other.
_BACKGROUND_NICENESS = 10
_QOS_CLASS_UTILITY = 0x11


class EmbeddingService:
    """Implements `Embedder`: the lane's queue, a thread for the arithmetic, the weights fetched on first use."""

    def __init__(
        self,
        weights: EmbedderWeights,
        queue: EmbeddingQueue,
        clock: Clock,
        progress: Callable[[PullProgress], None] = lambda step: None,
    ) -> None:
        self._weights = weights
        self._queue = queue
        self._clock = clock
        self._progress = progress
        self._loading = asyncio.Lock()
        self._model: MiniLm | None = None
        self._failed: tuple[float, ModelError] | None = None
        self._background_threads = ThreadPoolExecutor(queue.concurrency, "embedding", initializer=_step_back)

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, text: str) -> Sequence[float]:
        """384 numbers. Raises `QueueFull`; `ModelUnavailable`, `ModelDamaged` or `StoreBusy` if the weights are not
        to be had, and the same again without a new attempt for the next 30 seconds."""
        return await self._queue.run(lambda: self._embed(text))

    async def embed_in_background(self, text: str) -> Sequence[float]:
        """The same in a thread that steps back."""
        return await self._queue.run(lambda: self._embed(text, self._background_threads))

    async def _embed(self, text: str, threads: Executor | None = None) -> Sequence[float]:
        model = await self._loaded()
        vector: list[float] = await in_thread(
            lambda step: model.embed(text, step).tolist(), lambda layer: None, threads
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
                folder = await self._weights.ensure(self._progress)
                self._model = await in_thread(lambda step: MiniLm(folder), lambda done: None)
            except ModelError as failure:
                self._failed = (self._clock.monotonic(), failure)
                raise
            return self._model


class BackgroundEmbedder:
    """Implements `Embedder` for a backlog: the same lane and weights, in threads that let the language model go first."""

    def __init__(self, service: EmbeddingService) -> None:
        self._service = service

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, text: str) -> Sequence[float]:
        """As `EmbeddingService.embed`; later, when the machine is busy."""
        return await self._service.embed_in_background(text)


def _step_back() -> None:
    """For the calling thread only, for good. Linux has a niceness for each thread, macOS a quality of service."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _BACKGROUND_NICENESS)
    elif sys.platform == "darwin":
        ctypes.CDLL(None).pthread_set_qos_class_self_np(_QOS_CLASS_UTILITY, 0)
