"""`VectorRepository` in memory."""

import math
from collections.abc import Sequence

from tests.memory.notes import MemoryNotes


class MemoryVectors:
    def __init__(self, notes: MemoryNotes) -> None:
        self._notes = notes
        self.stored: dict[str, tuple[str, tuple[float, ...]]] = {}

    async def waiting(
        self, limit: int, *, others_too: bool = False, oldest: bool = False
    ) -> tuple[tuple[str, str, str], ...]:
        return tuple(
            (note.id, note.content_hash, f"{note.title}\n{note.text}")
            for note in sorted(
                self._notes.notes.values(), key=lambda note: note.changed_at, reverse=not oldest
            )
            if self.stored.get(note.id, ("", ()))[0] != note.content_hash
        )[:limit]

    async def waiting_count(self) -> int:
        return len(await self.waiting(len(self._notes.notes)))

    async def store(self, note_id: str, content_hash: str, vector: Sequence[float]) -> bool:
        note = self._notes.notes.get(note_id)
        if note is None or note.content_hash != content_hash:
            return False
        self.stored[note_id] = (content_hash, tuple(vector))
        return True

    async def nearest(
        self,
        vector: Sequence[float],
        *,
        tag: str | None = None,
        manas_id: str | None = None,
        limit: int = 10,
    ) -> tuple[tuple[str, float], ...]:
        allowed = await self._notes.note_ids(manas_id, tag=tag)
        found = [
            (note_id, _cosine(vector, other))
            for note_id, (_, other) in self.stored.items()
            if note_id in allowed and self._notes.notes[note_id].text.strip()
        ]
        return tuple(sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit])


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    length = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / length if length else 0.0
