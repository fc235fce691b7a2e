"""Transactions on the database, run in threads so that no await holds up the event loop."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlmodel import Session

from data.database.errors import translated
from data.database.patience import IDLE_MS, bound
from data.database.schema import prepare
from domain.errors import DatabaseError, InvalidRequest

T = TypeVar("T")

READERS = 4
LOCK_PATIENCE_MS = 10_000
SILENCE_S, CLOSING_SILENCE_S = 20.0, 2.0
"""So long a PostgreSQL server may say nothing; longer than it waits for a lock. Whoever closes waits less."""
PRAGMAS = (
    f"busy_timeout = {LOCK_PATIENCE_MS}",
    "foreign_keys = ON",
    # With NORMAL, a commit in WAL mode survives a crash of the program but not a power cut.
    "synchronous = FULL",
    # On macOS, fsync alone leaves the data in the drive's cache.
    "fullfsync = ON",
    "checkpoint_fullfsync = ON",
    # A burst leaves no huge log behind.
    f"journal_size_limit = {64 * 1024 * 1024}",
)
_WRITE = "uniun_write"
# Any number; every process of ours must use the same one.
_ADVISORY_LOCK = 0x756E69756E


class Database:
    """One SQLite file or one PostgreSQL database. The first use brings its schema up to date.

    There is one write transaction at a time, over all processes: SQLite has its write lock, taken at the beginning so
    that no transaction fails half way for want of it, and PostgreSQL an advisory lock. What is read in a write
    transaction therefore holds until its end. A commit is on the disk when `write` returns.
    """

    def __init__(self, url: str) -> None:
        """Raises `InvalidRequest` if the URL is wrong or of another kind of database; opens nothing yet."""
        self._url = _checked(url)
        self.name = str(self._url.database) if _is_sqlite(self._url) else self._url.render_as_string()
        self._readers = ThreadPoolExecutor(READERS, "database-read")
        self._writer = ThreadPoolExecutor(1, "database-write")
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self._file: tuple[int, int] | None = None
        """Which file it is that is open, for SQLite."""
        self._prepared = False
        self._closing = False

    async def __aenter__(self) -> Self:
        """Opens it now rather than at the first use."""
        await self.read(lambda session: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def is_sqlite(self) -> bool:
        return _is_sqlite(self._url)

    async def read(self, work: Callable[[Session], T]) -> T:
        """Runs `work` on one snapshot. Raises `DatabaseError`, and what `work` raises."""
        return await self._run(self._readers, work, write=False)

    async def write(self, work: Callable[[Session], T]) -> T:
        """Runs `work` in one transaction, committed at its end and rolled back if it raises.

        Cancelled while it waits for its turn, nothing happens; later, it is carried out whole. Raises `DatabaseError`,
        and what `work` raises.
        """
        return await self._run(self._writer, work, write=True)

    async def aclose(self) -> None:
        """Lets running transactions end, forgets waiting ones, and closes every connection. What comes later is refused."""
        self._closing = True
        await asyncio.to_thread(self._close)

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[Session], T], *, write: bool) -> T:
        def transact() -> T:
            with translated(self.name):
                engine = self._open().execution_options(**_options(self._url, write=write))
                with Session(engine, expire_on_commit=False) as session, session.begin():
                    return work(session)

        if self._closing:
            raise DatabaseError(f"The database {self.name} is closed, because UNIUN ends. Start it again.")
        return await asyncio.get_running_loop().run_in_executor(threads, transact)

    def _open(self) -> Engine:
        with self._opening:
            self._look_at_file()
            if self._engine is None:
                self._engine = _engine(self._url, self.name, self._patience_s)
            if not self._prepared:
                writing = self._engine.execution_options(**_options(self._url, write=True))
                prepare(self._engine, writing, self.name)
                self._prepared = True
                self._file = self._file_there()
            return self._engine

    def _look_at_file(self) -> None:
        """SQLite goes on in a file that was deleted, and all that it takes then is gone when the last one closes it."""
        there = self._file_there()
        if self._engine is None or self._file in (None, there):
            return
        if there is None:
            raise DatabaseError(
                f"The database {self.name} was deleted or moved while UNIUN is open; nothing is written into it any more. Put "
                "it back, or end UNIUN and start it again with another one."
            )
        # Another one was put in its place, as by a restore.
        self._engine.dispose()
        self._engine, self._file, self._prepared = None, None, False

    def _file_there(self) -> tuple[int, int] | None:
        if not _is_sqlite(self._url):
            return None
        try:
            found = os.stat(str(self._url.database))
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _patience_s(self) -> float | None:
        """One step of bringing the tables up to date may take as long as it will."""
        if not self._prepared:
            return None
        return CLOSING_SILENCE_S if self._closing else SILENCE_S

    def _close(self) -> None:
        for threads in (self._readers, self._writer):
            threads.shutdown(cancel_futures=True)
        if self._engine is not None:
            self._engine.dispose()


def sqlite_url(path: Path) -> str:
    """The URL of a file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path)).render_as_string()


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError):
        raise InvalidRequest(
            "UNIUN_DATABASE_URL is no database URL. Write sqlite:////folder/file.db or postgresql://user@host/name."
        ) from None
    except ImportError as error:
        raise InvalidRequest(
            f"UNIUN_DATABASE_URL names a driver that is not installed ({error.name or error}). For PostgreSQL, install "
            "uniun[postgres]."
        ) from None
    if backend not in ("sqlite", "postgresql"):
        raise InvalidRequest(
            f"UNIUN keeps its data in SQLite or PostgreSQL, not in {backend}. Correct UNIUN_DATABASE_URL."
        )
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise InvalidRequest("UNIUN_DATABASE_URL names no file. Write sqlite:////folder/file.db.")
    return parsed


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _options(url: URL, *, write: bool) -> dict[str, Any]:
    if _is_sqlite(url) or write:
        return {_WRITE: write}
    return {_WRITE: False, "isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def _engine(url: URL, name: str, patience_s: Callable[[], float | None]) -> Engine:
    if _is_sqlite(url):
        _make_file(Path(str(url.database)), name)
        engine = create_engine(url)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        # A server that was restarted is noticed before a transaction, not in it.
        engine = create_engine(url, pool_pre_ping=True)
    except ImportError as error:
        raise DatabaseError(
            f"The driver {error.name or error} is missing. Install uniun[postgres]."
        ) from error
    bound(engine, patience_s)
    event.listen(engine, "begin", _begin_postgres)
    return engine


def _make_file(path: Path, name: str) -> None:
    """For the user's eyes only; SQLite gives the files beside it the same permissions."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise DatabaseError(
            f"The database {name} cannot be made: {error.strerror}. Check its folder, or name another one in "
            "UNIUN_DATA_DIR."
        ) from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    # The driver's own way of beginning transactions begins none for reading and never asks for the write lock.
    connection.isolation_level = None
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgres(connection: Connection) -> None:
    if connection.get_execution_options().get(_WRITE, False):
        connection.exec_driver_sql(
            f"SET LOCAL lock_timeout = {LOCK_PATIENCE_MS}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}; "
            f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"
        )
