import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from data.database.session import Database, sqlite_url
from data.reading_health import examine_reading
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from domain.entities.knowledge import Extraction
from tests.data.repositories.samples import note


async def told(path: Path, *, wanted: bool = True) -> tuple[str, str] | None:
    database = Database(sqlite_url(path))
    try:
        finding = await examine_reading(database, lambda: wanted)
    finally:
        await database.aclose()
    return None if finding is None else (finding.state, finding.text)


def test_what_is_read_waits_and_failed(tmp_path: Path) -> None:
    path = tmp_path / "uniun.db"

    async def scenario() -> None:
        async with Database(sqlite_url(path)) as database:
            assert await told(path) is None, "there is no note"
            knowledge = SqlKnowledgeRepository(database)
            notes = [note(name) for name in "abcd"]
            await SqlNoteRepository(database).save(notes)
            await knowledge.assert_extraction("a", notes[0].content_hash, Extraction())
            assert await told(path) == ("ok", "1 of 4 notes read into the graph, 3 wait")
            assert await told(path, wanted=False) == (
                "ok",
                "Reading is paused: 1 of 4 notes read into the graph, 3 wait",
            )
            await knowledge.fail("b", notes[1].content_hash, "No JSON.", give_up_after=1)
            assert await told(path) == (
                "warn",
                "1 of 4 notes read into the graph, 2 wait; 1 could not be read",
            )

    asyncio.run(scenario())


def test_nothing_is_changed_by_looking(tmp_path: Path) -> None:
    path = tmp_path / "uniun.db"
    assert asyncio.run(told(path)) is None
    assert not list(tmp_path.iterdir())

    async def made() -> None:
        async with Database(sqlite_url(path)) as database:
            await SqlNoteRepository(database).save([note("a")])

    asyncio.run(made())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    assert asyncio.run(told(path)) is None, "of an older version, which the next start brings up to date"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
