import asyncio
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.database.session import Database, sqlite_url
from data.export.backup import SqliteBackups
from data.repositories.notes import SqlNoteRepository
from domain.entities.note import Note, hash_content
from domain.errors import DatabaseError, InvalidRequest
from tests.memory.clock import HandClock

AT = datetime(2026, 1, 1, tzinfo=UTC)


def backups(database: Database, folder: Path = Path("backups")) -> SqliteBackups:
    return SqliteBackups(database, folder, HandClock())


def note(number: int) -> Note:
    text = f"text {number}"
    return Note(
        id=f"{number:04}",
        title="T",
        text=text,
        created_at=AT,
        changed_at=AT,
        content_hash=hash_content("T", text, ()),
    )


def test_a_backup_is_one_moment_of_a_database_in_use(tmp_path: Path) -> None:
    async def use() -> int:
        async with Database(sqlite_url(tmp_path / "live.db")) as database:
            notes = SqlNoteRepository(database)
            await notes.save([note(number) for number in range(100)])

            async def write_on() -> None:
                for number in range(100, 200, 2):
                    await notes.save([note(number), note(number + 1)])

            writing = asyncio.create_task(write_on())
            size = await backups(database).write(tmp_path / "copy.db")
            await writing
            assert await notes.count() == 200
            return size

    size = asyncio.run(use())
    assert size == (tmp_path / "copy.db").stat().st_size
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600

    async def count() -> int:
        async with Database(sqlite_url(tmp_path / "copy.db")) as database:
            return await SqlNoteRepository(database).count()

    counted = asyncio.run(count())
    assert counted >= 100
    assert counted % 2 == 0
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


def test_an_unused_database_can_be_backed_up(tmp_path: Path) -> None:
    async def use() -> None:
        async with Database(sqlite_url(tmp_path / "new.db")) as database:
            await backups(database).write(tmp_path / "copy.db")

    asyncio.run(use())
    assert sqlite3.connect(tmp_path / "copy.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_backup_without_a_name_gets_one_of_its_own(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path / "new.db"))
    keeper = backups(database, tmp_path / "below" / "backups")
    first = keeper.new_target()
    assert first.parent == tmp_path / "below" / "backups"
    assert first.name.startswith("uniun-")
    first.touch()
    second = keeper.new_target()
    assert second.stem == f"{first.stem}-2"
    assert not second.exists()
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match="cannot be made"):
        backups(database, tmp_path / "file" / "backups").new_target()


def test_what_is_refused(tmp_path: Path) -> None:
    async def use() -> None:
        async with Database(sqlite_url(tmp_path / "live.db")) as database:
            (tmp_path / "there").write_text("mine")
            with pytest.raises(InvalidRequest, match="exists already"):
                await backups(database).write(tmp_path / "there")
            with pytest.raises(InvalidRequest, match="does not exist"):
                await backups(database).write(tmp_path / "no" / "file")
            assert (tmp_path / "there").read_text() == "mine"

    asyncio.run(use())
    with pytest.raises(InvalidRequest, match="pg_dump"):
        asyncio.run(backups(Database("postgresql://user@host/name")).write(tmp_path / "x"))


def damage(path: Path, near: bytes) -> None:
    """Destroys the page that holds these bytes."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    page = data.index(near) // 4096 * 4096
    data[page : page + 64] = b"\xff" * 64
    path.write_bytes(data)


def test_a_damaged_database_is_not_called_a_backup(tmp_path: Path) -> None:
    async def use() -> None:
        async with Database(sqlite_url(tmp_path / "live.db")) as database:
            await SqlNoteRepository(database).save([note(number) for number in range(500)])
        damage(tmp_path / "live.db", b"text 250")
        async with Database(sqlite_url(tmp_path / "live.db")) as database:
            with pytest.raises(DatabaseError, match=r"damaged|malformed"):
                await backups(database).write(tmp_path / "copy.db")

    asyncio.run(use())
    assert not (tmp_path / "copy.db").exists()
