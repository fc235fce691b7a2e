"""A real database beside a background process, with short ways to put Ganas and notes into it."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from data.clock import Clock, SystemClock
from data.database.session import Database, sqlite_url
from data.gana.holders import ClaimHolders
from data.identity import RandomIdentities
from data.markdown.parser import MarkdownNoteParser
from data.repositories.ganas import SqlGanaRepository
from data.repositories.manases import SqlManasRepository
from data.repositories.notes import SqlNoteRepository
from domain.entities.gana import Gana, GanaDraft, GanaRun
from domain.entities.note import Note, NoteDraft
from domain.usecases.notes import ComposeNote


class Desk:
    """An async context manager."""

    def __init__(self, data_dir: Path, clock: Clock | None = None, *, url: str | None = None) -> None:
        self.clock = clock or SystemClock()
        self.identities = RandomIdentities(self.clock)
        self.database = Database(url or sqlite_url(data_dir / "uniun.db"))
        self.ganas = SqlGanaRepository(self.database, self.identities, holders=ClaimHolders(data_dir))
        self.notes = SqlNoteRepository(self.database)
        self.manases = SqlManasRepository(self.database, self.identities)
        self._compose = ComposeNote(MarkdownNoteParser(), self.identities)

    async def __aenter__(self) -> "Desk":
        await self.database.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.database.aclose()

    async def gana(self, name: str, *, due_in_s: float | None = -1.0, **fields: Any) -> Gana:
        """Enabled; due a second ago unless told otherwise."""
        now = self.clock.now()
        gana = Gana(
            id=f"id-{name}",
            draft=GanaDraft.model_validate(
                {"name": name, "task": "Sum up.", **({"interval_minutes": 60} | fields)}
            ),
            enabled=True,
            cursor=await self.notes.last_arrival(),
            due_at=now + timedelta(seconds=due_in_s) if due_in_s is not None else None,
            created_at=now,
        )
        await self.ganas.put(gana)
        return gana

    async def note(self, text: str, *tags: str, title: str = "") -> Note:
        note = self._compose(NoteDraft(text=text, tags=tags, title=title))
        await self.notes.save([note])
        return note

    async def published(self) -> int:
        return sum(line.source == "gana" for line in await self.notes.lines(limit=1_000))

    async def runs(self) -> list[GanaRun]:
        """Oldest first."""
        return list(reversed(await self.ganas.runs()))

    async def due(self, at: datetime | None = None) -> list[str]:
        return [gana.draft.name for gana in await self.ganas.due(at or self.clock.now(), 100)]
