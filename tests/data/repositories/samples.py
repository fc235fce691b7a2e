"""Things to store."""

from datetime import UTC, datetime, timedelta
from typing import Any

from domain.entities.note import Note, hash_content

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def note(note_id: str, text: str = "text", **fields: Any) -> Note:
    title = fields.pop("title", note_id)
    tags = tuple(sorted(fields.pop("tags", ())))
    moment = fields.pop("changed_at", START)
    return Note(
        id=note_id,
        title=title,
        text=text,
        tags=tags,
        created_at=fields.pop("created_at", moment),
        changed_at=moment,
        content_hash=hash_content(title, text, tags),
        **fields,
    )
