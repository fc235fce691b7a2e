"""What links call a note. A link is kept as it is written and resolved when it is asked for, so that it is never stale."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlmodel import Session, col

from data.database.columns import storable
from data.database.rows import chunks, table
from data.database.tables.notes import NoteNameRow, NoteRow
from domain.entities.note import Note
from domain.folding import fold

_KEY = 300
"""Characters of a key: an index of PostgreSQL takes no more than about 2,700 bytes."""


def name_key(name: str) -> str:
    """A title, an alias or a link's target, without case and surplus spaces, and as a database keeps it."""
    return storable(" ".join(fold(name).split())[:_KEY])


def last_component(target: str) -> str:
    return target.rstrip("/").rsplit("/", 1)[-1]


def name_keys(note: Note) -> set[str]:
    """Everything that a link may call it."""
    return {key for key in map(name_key, (note.title, *note.aliases)) if key}


@dataclass(frozen=True)
class _Named:
    number: int
    id: str
    path: str
    created_at: datetime


class LinkTargets:
    """The notes that some keys may mean."""

    def __init__(self, session: Session, keys: Sequence[str]) -> None:
        self._named: dict[str, list[_Named]] = {}
        for chunk in chunks(sorted(set(keys))):
            note = table(NoteRow).c
            found = session.connection().execute(
                select(col(NoteNameRow.key), note.number, note.id, note.origin, note.created_at)
                .join(NoteRow, note.id == col(NoteNameRow.note_id))
                .where(col(NoteNameRow.key).in_(chunk))
            )
            for key, number, note_id, origin, created_at in found:
                named = _Named(number, note_id, _path_key(origin), created_at)
                self._named.setdefault(key, []).append(named)

    def resolve(self, key: str, last_key: str) -> str | None:
        """The note that a target means: by its whole, else by its last component; of several the one whose path fits,
        else the oldest."""
        named = self._named.get(key) or self._named.get(last_key)
        if not named:
            return None
        ending = "/" + key.lstrip("./")
        return min(named, key=lambda one: (not one.path.endswith(ending), one.created_at, one.number)).id


def _path_key(origin: str | None) -> str:
    if origin is None:
        return ""
    path = fold(origin.replace("\\", "/"))
    return "/" + " ".join(path.removesuffix(".md").removesuffix(".markdown").split())
