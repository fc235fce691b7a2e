"""Text to vector; a lane of its own that never touches the scheduler."""

from collections.abc import Callable, Sequence
from typing import Protocol


class Embedder(Protocol):
    """Sentence embeddings, normalised to length 1."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    async def embed(self, text: str) -> Sequence[float]:
        """One vector for one text. Long texts are truncated to the model's window."""
        ...


class EmbeddingBacklog(Protocol):
    """Notes that wait for their vector; what works on them."""

    async def work_off(self, progress: Callable[[int], None] = lambda stored: None) -> int:
        """Embeds until nothing waits any more, also what another process has begun; returns how many vectors were stored,
        and tells it after each.

        May be cancelled at any moment; what was not stored still waits. Raises what the embedder raises.
        """
        ...
