"""Transactions in threads, and what the user is told when the database cannot be used."""

import asyncio
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import Session

from data.database import session as session_module
from data.database.errors import translated
from data.database.session import PRAGMAS, Database, sqlite_url
from data.repositories.notes import SqlNoteRepository
from domain.errors import DatabaseError, InvalidRequest
from tests.data.repositories.samples import note


def _add(name: str) -> str:
    return f"INSERT INTO manas (id, name, key) VALUES ('{name}', '{name}', '{name}')"


def _names(session: Session) -> list[str]:
    return [
        str(name) for (name,) in session.connection().execute(text("SELECT name FROM manas ORDER BY name"))
    ]


def _execute(statement: str) -> "_Work":
    return _Work(statement)


class _Work:
    """Executes a statement and then waits until it is let go; tells when it has come so far."""

    def __init__(self, statement: str) -> None:
        self._statement = statement
        self.done = threading.Event()
        self.go = threading.Event()

    def __call__(self, session: Session) -> None:
        session.connection().execute(text(self._statement))
        self.done.set()
        assert self.go.wait(60)


def test_a_write_is_whole_or_nothing(url: str) -> None:
    async def main() -> None:
        async with Database(url) as database:

            def fails(session: Session) -> None:
                session.connection().execute(text(_add("a")))
                raise ValueError("in the middle")

            with pytest.raises(ValueError, match="in the middle"):
                await database.write(fails)
            assert await database.read(_names) == []

    asyncio.run(main())


def test_readers_do_not_wait_for_a_long_write_and_see_what_was_before(url: str) -> None:
    async def main() -> None:
        async with Database(url) as database, Database(url) as other:
            work = _execute(_add("a"))
            writing = asyncio.create_task(database.write(work))
            await asyncio.to_thread(work.done.wait, 60)
            assert await database.read(_names) == []
            assert await other.read(_names) == []
            work.go.set()
            await writing
            assert await other.read(_names) == ["a"]

    asyncio.run(main())


def test_a_file_that_was_deleted_is_told_and_one_that_was_replaced_is_used(
    tmp_path: Path, sqlite_template: Path
) -> None:
    path, aside = tmp_path / "uniun.db", tmp_path / "aside.db"

    def put_in_its_place() -> None:
        for old in tmp_path.glob("uniun.db*"):
            old.unlink()
        shutil.copy(sqlite_template, path)

    async def main() -> None:
        async with Database(sqlite_url(path)) as database:
            await database.write(lambda session: session.connection().execute(text(_add("first"))))
            path.rename(aside)
            for run in (database.read, database.write):
                with pytest.raises(
                    DatabaseError, match=r"was deleted or moved while UNIUN is open.*Put it back"
                ):
                    await run(_names)
            assert not path.exists()
            aside.rename(path)
            assert await database.read(_names) == ["first"]
            put_in_its_place()
            await database.write(lambda session: session.connection().execute(text(_add("second"))))
            async with Database(sqlite_url(path)) as other:
                assert await other.read(_names) == ["second"]

    asyncio.run(main())


def test_what_comes_after_the_end_is_refused(url: str) -> None:
    async def main() -> None:
        async with Database(url) as database:
            pass
        for run in (database.read, database.write):
            with pytest.raises(DatabaseError, match=r"is closed, because UNIUN ends\."):
                await run(_names)

    asyncio.run(main())


def test_a_read_is_one_snapshot(url: str) -> None:
    async def main() -> None:
        async with Database(url) as database:
            seen = threading.Event()
            written = threading.Event()

            def twice(session: Session) -> tuple[list[str], list[str]]:
                before = _names(session)
                seen.set()
                assert written.wait(60)
                return before, _names(session)

            reading = asyncio.create_task(database.read(twice))
            await asyncio.to_thread(seen.wait, 60)
            await database.write(lambda session: session.connection().execute(text(_add("a"))))
            written.set()
            assert await reading == ([], [])

    asyncio.run(main())


def test_a_cancelled_write_that_waits_does_not_happen_and_one_that_runs_is_whole(url: str) -> None:
    async def main() -> None:
        async with Database(url) as database:
            first, second = _execute(_add("a")), _execute(_add("b"))
            running = asyncio.create_task(database.write(first))
            await asyncio.to_thread(first.done.wait, 60)
            waiting = asyncio.create_task(database.write(second))
            await asyncio.sleep(0)
            for task in (waiting, running):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            first.go.set()
            second.go.set()
            await database.write(lambda session: None)
            assert await database.read(_names) == ["a"]
            assert not second.done.is_set()

    asyncio.run(main())


def test_writers_of_two_processes_wait_for_each_other(url: str) -> None:
    async def main() -> None:
        async with Database(url) as database, Database(url) as other:
            first = _execute(_add("a"))
            running = asyncio.create_task(database.write(first))
            await asyncio.to_thread(first.done.wait, 60)
            # What the other reads within its transaction is what the first has written.
            following = asyncio.create_task(other.write(_names))
            await asyncio.sleep(0)
            first.go.set()
            await running
            assert await following == ["a"]

    asyncio.run(main())


def test_a_lock_that_is_held_too_long_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "PRAGMAS", (*PRAGMAS, "busy_timeout = 1"))
    monkeypatch.setattr(session_module, "LOCK_PATIENCE_MS", 1)

    async def main() -> None:
        async with Database(url) as database, Database(url) as other:
            holding = _execute(_add("a"))
            running = asyncio.create_task(database.write(holding))
            await asyncio.to_thread(holding.done.wait, 60)
            with pytest.raises(DatabaseError, match=r"is locked by another process\. Try again"):
                await other.write(_names)
            holding.go.set()
            await running

    asyncio.run(main())


def test_closing_lets_a_running_write_end(url: str) -> None:
    async def main() -> None:
        database = Database(url)
        work = _execute(_add("a"))
        running = asyncio.create_task(database.write(work))
        await asyncio.to_thread(work.done.wait, 60)
        closing = asyncio.create_task(database.aclose())
        work.go.set()
        await closing
        await running
        async with Database(url) as again:
            assert await again.read(_names) == ["a"]

    asyncio.run(main())


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    async def main() -> None:
        async with Database(sqlite_url(tmp_path / "uniun.db")) as database:

            def pragmas(session: Session) -> list[object]:
                names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "fullfsync")
                return [session.connection().execute(text(f"PRAGMA {name}")).scalar() for name in names]

            assert await database.read(pragmas) == ["wal", 2, 1, 10_000, 1]

    asyncio.run(main())


def test_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    async def main() -> None:
        async with Database(sqlite_url(tmp_path / "uniun.db")) as database:
            await SqlNoteRepository(database).save([note("a")])
            modes = [(tmp_path / f"uniun.db{end}").stat().st_mode & 0o777 for end in ("", "-wal", "-shm")]
            assert modes == [0o600] * 3

    asyncio.run(main())


def test_a_full_disk_changes_nothing_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = sqlite_url(tmp_path / "uniun.db")

    async def main() -> None:
        async with Database(url) as database:
            await SqlNoteRepository(database).save([note("before")])
        with monkeypatch.context() as patch:
            patch.setattr(session_module, "PRAGMAS", (*PRAGMAS, "max_page_count = 150"))
            async with Database(url) as database:
                notes = SqlNoteRepository(database)
                with pytest.raises(
                    DatabaseError, match=r"the disk is full\. Nothing was changed\. Free some space"
                ):
                    await notes.save([note("small"), note("large", "words " * 200_000)])
                assert await notes.note_ids(None) == ("before",)
                await notes.save([note("small")])
        async with Database(url) as database:
            notes = SqlNoteRepository(database)
            await notes.save([note("large", "words " * 200_000)])
            assert await notes.note_ids(None) == ("before", "large", "small")

    asyncio.run(main())


def test_a_disk_that_is_full_before_there_is_a_database_is_told(tmp_path: Path) -> None:
    driver = sqlite3.connect(tmp_path / "new.db")
    driver.execute("PRAGMA max_page_count = 1")
    with pytest.raises(DatabaseError, match="the disk is full"), translated("new.db"):
        driver.execute("CREATE TABLE one (text)")
    driver.close()


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "uniun.db"
    path.write_bytes(b"this is no database, but long enough to look like one" * 100)

    async def main() -> None:
        with pytest.raises(DatabaseError, match=r"uniun\.db is damaged or no database.*last backup"):
            async with Database(sqlite_url(path)):
                pass

    asyncio.run(main())


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    path = tmp_path / "uniun.db"
    url = sqlite_url(path)

    async def main() -> None:
        async with Database(url) as database:
            await SqlNoteRepository(database).save([note(f"n{n}", "words " * 300) for n in range(50)])
        with sqlite3.connect(path) as connection:
            (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'note'").fetchone()
        connection.close()
        content = bytearray(path.read_bytes())
        content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
        path.write_bytes(content)
        async with Database(url) as database:
            with pytest.raises(DatabaseError, match="is damaged"):
                await SqlNoteRepository(database).lines()

    asyncio.run(main())


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def main() -> None:
        with pytest.raises(
            DatabaseError, match=r"The database .* cannot be made: File exists\. Check its folder"
        ):
            async with Database(sqlite_url(tmp_path / "file" / "uniun.db")):
                pass

    asyncio.run(main())


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    async def main() -> None:
        with pytest.raises(DatabaseError, match=r"cannot be reached\. Check that its server runs") as caught:
            async with Database("postgresql+psycopg://me:secret@127.0.0.1:1/uniun"):
                pass
        assert "secret" not in str(caught.value)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "no database URL"),
        ("", "no database URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://host/name", "not in mysql"),
        ("nosuch://host/name", "no database URL"),
        ("postgresql+asyncpg://host/name", "driver"),
        ("postgresql+psycopg2://host/name", "driver"),
    ],
)
def test_a_url_that_cannot_be_used_is_told(url: str, message: str) -> None:
    async def main() -> None:
        with pytest.raises((InvalidRequest, DatabaseError), match=message):
            async with Database(url):
                pass

    asyncio.run(main())
