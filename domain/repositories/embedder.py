"""Text to vector; a lane of its own that never touches the scheduler."""

from collections.abc import Sequence
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
