"""Going back to a backup: what is refused, what is kept, and that a kill leaves the old state or the new one."""

import asyncio
import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from data.database.session import Database, sqlite_url
from data.export import restore as restoring
from data.export.backup import SqliteBackups
from data.export.restore import SqliteRestore
from data.presence import Presence
from data.repositories.notes import SqlNoteRepository
from domain.entities.note import Note
from domain.errors import InvalidRequest
from tests.data.export.test_backup import damage, note
from tests.memory.clock import HandClock


def restore(folder: Path, source: Path) -> Path | None:
    async def run() -> Path | None:
        database = Database(sqlite_url(folder / "uniun.db"))
        backups = SqliteBackups(database, folder / "backups", HandClock())
        try:
            return await SqliteRestore(database, backups, Presence(folder)).restore(source)
        finally:
            await database.aclose()

    return asyncio.run(run())


def check(folder: Path, source: Path) -> None:
    database = Database(sqlite_url(folder / "uniun.db"))
    backups = SqliteBackups(database, folder / "backups", HandClock())
    asyncio.run(SqliteRestore(database, backups, Presence(folder)).check(source))


def save(path: Path, *notes: Note) -> None:
    async def run() -> None:
        async with Database(sqlite_url(path)) as database:
            await SqlNoteRepository(database).save(notes)

    asyncio.run(run())


def ids(path: Path) -> list[str]:
    async def run() -> list[str]:
        async with Database(sqlite_url(path)) as database:
            return list(await SqlNoteRepository(database).note_ids(None))

    return asyncio.run(run())


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Of notes 0 to 9; the database has gone on to 10 to 1,009."""
    save(tmp_path / "uniun.db", *map(note, range(10)))

    async def copy() -> Path:
        async with Database(sqlite_url(tmp_path / "uniun.db")) as database:
            target = tmp_path / "copy.db"
            await SqliteBackups(database, tmp_path, HandClock()).write(target)
            return target

    made = asyncio.run(copy())
    save(tmp_path / "uniun.db", *map(note, range(10, 1_010)))
    return made


def test_the_backup_is_there_again_and_what_was_there_is_kept(tmp_path: Path, backup: Path) -> None:
    kept = restore(tmp_path, backup)
    assert kept is not None
    assert kept.parent == tmp_path / "backups"
    assert ids(tmp_path / "uniun.db") == [f"{number:04}" for number in range(10)]
    assert len(ids(kept)) == 1_010
    assert restore(tmp_path, kept) is not None, "and back again"
    assert len(ids(tmp_path / "uniun.db")) == 1_010
    with sqlite3.connect(tmp_path / "uniun.db") as live:
        assert live.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_into_an_empty_folder(tmp_path: Path, backup: Path) -> None:
    assert restore(tmp_path / "new", backup) is None
    assert len(ids(tmp_path / "new" / "uniun.db")) == 10
    assert (tmp_path / "new" / "uniun.db").stat().st_mode & 0o777 == 0o600


def test_who_has_the_database_open_sees_the_new_state(tmp_path: Path, backup: Path) -> None:
    async def run() -> int:
        async with Database(sqlite_url(tmp_path / "uniun.db")) as database:
            assert await SqlNoteRepository(database).count() == 1_010
            await asyncio.to_thread(restore, tmp_path, backup)
            return await SqlNoteRepository(database).count()

    assert asyncio.run(run()) == 10


@pytest.mark.parametrize("how", ["damaged", "no database"])
def test_a_database_that_cannot_be_read_is_moved_aside(tmp_path: Path, backup: Path, how: str) -> None:
    if how == "damaged":
        damage(tmp_path / "uniun.db", b"text 250")
    else:
        (tmp_path / "uniun.db").write_bytes(b"garbage " * 1_000)
    kept = restore(tmp_path, backup)
    assert kept is not None
    assert kept.name.startswith("damaged-")
    assert len(ids(tmp_path / "uniun.db")) == 10


def test_what_is_refused_changes_nothing(tmp_path: Path, backup: Path) -> None:
    newer, other, broken, text = (tmp_path / name for name in ("newer.db", "other.db", "broken.db", "text"))
    newer.write_bytes(backup.read_bytes())
    with sqlite3.connect(newer) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE recipe (id INTEGER)")
    broken.write_bytes(backup.read_bytes()[:-8_192])
    text.write_text("no database at all, but long enough to be looked at" * 20)
    for source, why in (
        (newer, "newer version"),
        (other, "no backup of UNIUN"),
        (broken, r"damaged|malformed"),
        (text, "no backup of UNIUN"),
        (tmp_path / "gone.db", "no file"),
        (tmp_path / "uniun.db", "the database itself"),
    ):
        with pytest.raises(InvalidRequest, match=why):
            restore(tmp_path, source)
    assert len(ids(tmp_path / "uniun.db")) == 1_010
    assert not (tmp_path / "backups").exists()


def test_it_is_refused_while_uniun_is_open(tmp_path: Path, backup: Path) -> None:
    async def run() -> None:
        async with Presence(tmp_path).app():
            with pytest.raises(InvalidRequest, match="UNIUN is open"):
                await asyncio.to_thread(check, tmp_path, backup)
            with pytest.raises(InvalidRequest, match="UNIUN is open"):
                await asyncio.to_thread(restore, tmp_path, backup)

    asyncio.run(run())
    assert len(ids(tmp_path / "uniun.db")) == 1_010


def test_what_would_be_refused_is_known_before_and_nothing_is_done(tmp_path: Path, backup: Path) -> None:
    check(tmp_path, backup)
    for wrong in (tmp_path / "gone.db", tmp_path / "uniun.db", Path(__file__)):
        with pytest.raises(InvalidRequest):
            check(tmp_path, wrong)
    assert len(ids(tmp_path / "uniun.db")) == 1_010
    assert not (tmp_path / "backups").exists()


def test_no_app_opens_meanwhile(tmp_path: Path) -> None:
    async def run() -> None:
        async with Presence(tmp_path).nobody():
            with pytest.raises(InvalidRequest, match="being restored"):
                async with Presence(tmp_path).app():
                    raise AssertionError("it opened")

    asyncio.run(run())


def _die_within(folder: Path, source: Path, pages: int) -> None:
    """After so many pages of the copy, as by SIGKILL."""
    whole = sqlite3.Connection.backup

    class Slow(sqlite3.Connection):
        def backup(self, target: sqlite3.Connection, **options: object) -> None:
            def step(status: int, remaining: int, total: int) -> None:
                if total - remaining >= pages:
                    os.kill(os.getpid(), signal.SIGKILL)

            whole(self, target, pages=1, progress=step)

    connect = sqlite3.connect
    restoring.sqlite3.connect = lambda *args, **more: connect(*args, factory=Slow, **more)  # type: ignore[attr-defined]
    restoring._put(source, folder / "uniun.db")


@pytest.mark.parametrize("pages", [1, 5, 20])
def test_a_kill_in_the_middle_leaves_what_was_there(tmp_path: Path, backup: Path, pages: int) -> None:
    child = multiprocessing.get_context("fork").Process(target=_die_within, args=(tmp_path, backup, pages))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert len(ids(tmp_path / "uniun.db")) == 1_010
    with sqlite3.connect(tmp_path / "uniun.db") as live:
        assert live.execute("PRAGMA integrity_check").fetchone() == ("ok",)
