"""Vectors of notes, and the durable queue of notes that need one."""

from collections.abc import Sequence
from typing import Protocol


class VectorRepository(Protocol):
    """One vector per note, in the database, and nearest-neighbour search over all of them."""

    async def waiting(
        self, limit: int, *, others_too: bool = False, oldest: bool = False
    ) -> tuple[tuple[str, str, str], ...]:
        """(note id, content hash, text to embed) of notes whose vector is missing or of older content, newest or `oldest` first;
        those that another process embeds are among them only if asked for."""
        ...

    async def waiting_count(self) -> int:
        """How many notes wait for their vector."""
        ...

    async def store(self, note_id: str, content_hash: str, vector: Sequence[float]) -> bool:
        """False, and nothing stored, if the note has changed since or is gone."""
        ...

    async def nearest(
        self,
        vector: Sequence[float],
        *,
        tag: str | None = None,
        manas_id: str | None = None,
        limit: int = 10,
    ) -> tuple[tuple[str, float], ...]:
        """(note id, cosine), best first, without notes that have no text; with a tag, of those that have it or one nested below it."""
        ...
