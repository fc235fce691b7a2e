"""How far the reading of notes into the graph is, for `doctor`."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from data.database.session import Database
from data.database_health import is_current
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from domain.entities.health import Finding
from domain.entities.knowledge import ReadingOverview
from domain.errors import DatabaseError
from domain.reading_words import overview_words


async def examine_reading(database: Database, wanted: Callable[[], bool]) -> Finding | None:
    """None where there is nothing to count: no note, or no database that can be read without bringing it up to date."""
    if database.is_sqlite and not await asyncio.to_thread(is_current, Path(database.name)):
        return None
    try:
        notes = await SqlNoteRepository(database).count()
        counts = await SqlKnowledgeRepository(database).pending_counts()
    except DatabaseError:
        return None  # the look at the database says why
    if not notes:
        return None
    failed = counts["failed"]
    overview = ReadingOverview(notes=notes, waiting=counts["waiting"], failed=failed, paused=not wanted())
    return Finding(
        area="reading",
        state="warn" if failed else "ok",
        text=overview_words(overview),
        mend="See why: uniun notes failures. With --retry they are read again." if failed else "",
    )
