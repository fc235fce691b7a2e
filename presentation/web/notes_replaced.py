"""Notes whose place a file has taken: what they were before is kept for a while."""

from collections import OrderedDict
from dataclasses import dataclass

from domain.entities.note import Note

MOST = 4
"""Notes that are kept; each may have ten million characters."""


@dataclass(frozen=True)
class Before:
    """What a note was: its title and size, the whole of it as one text, and the content that has taken its place."""

    title: str
    characters: int
    document: str
    now: str


class Replaced:
    """One for the whole server. The oldest goes when there are too many."""

    def __init__(self) -> None:
        self._before: OrderedDict[str, Before] = OrderedDict()

    def keep(self, note_id: str, before: Before) -> None:
        self.forget(note_id)
        self._before[note_id] = before
        while len(self._before) > MOST:
            self._before.popitem(last=False)

    def of(self, note: Note) -> Before | None:
        """None once the note has been changed again."""
        before = self._before.get(note.id)
        return before if before is not None and before.now == note.content_hash else None

    def forget(self, note_id: str) -> None:
        self._before.pop(note_id, None)
