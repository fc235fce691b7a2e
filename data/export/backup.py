"""A copy of the SQLite file, made by SQLite itself while others use it."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from data.clock import Clock
from data.database.session import Database
from data.models.files import sync_folder
from data.models.threads import in_thread
from domain.errors import DatabaseError, InvalidRequest

_NAMES = 100
"""Backups of one second."""


class SqliteBackups:
    """Implements `Backups` with SQLite's online backup: one consistent state, whatever is written meanwhile."""

    def __init__(self, database: Database, folder: Path, clock: Clock) -> None:
        """`folder` is for backups that were given no name."""
        self._database = database
        self._folder = folder
        self._clock = clock

    @property
    def folder(self) -> Path:
        return self._folder

    def new_target(self) -> Path:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseError(
                f"The folder {self._folder} cannot be made: {error.strerror}. Make room, or mend its permissions."
            ) from None
        stem = f"uniun-{self._clock.now().astimezone():%Y-%m-%d-%H%M%S}"
        names = (f"{stem}.db", *(f"{stem}-{number}.db" for number in range(2, _NAMES)))
        for name in names:
            if not os.path.lexists(self._folder / name):
                return self._folder / name
        raise DatabaseError(f"There are {_NAMES} backups of this second. Try again.")

    async def write(self, target: Path) -> int:
        if not self._database.is_sqlite:
            raise InvalidRequest("The database is on a PostgreSQL server. Back it up with: pg_dump")
        target = _free(target)
        await self._database.read(lambda session: None)  # it exists from here on, and is sound
        source = Path(self._database.name)
        return await in_thread(lambda step: copy_checked(source, target, step), lambda part: None)


def _free(target: Path) -> Path:
    target = target.expanduser()
    if os.path.lexists(target):
        raise InvalidRequest(f"{target} exists already. Name a file that does not.")
    if not target.parent.is_dir():
        raise InvalidRequest(f"The folder {target.parent} does not exist. Create it, or name another one.")
    return target


def copy_checked(source: Path, target: Path, step: Callable[[int], None]) -> int:
    """Bytes written. Raises `DatabaseError`, and leaves nothing then."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.touch(mode=0o600)  # all notes and chats are in it
        with opened(source) as original, contextlib.closing(sqlite3.connect(partial)) as copy:
            original.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, that can be carried around
        step(1)
        with opened(partial) as copy:
            findings = [row[0] for row in copy.execute("PRAGMA integrity_check")]
        if findings != ["ok"]:
            raise DatabaseError(
                f"The copy is damaged, and so, probably, is the database {source}: {findings[0]}. No backup was written."
            )
        step(2)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.link(partial, target)  # unlike a rename, never onto a file that has appeared meanwhile
        sync_folder(target.parent)
        return target.stat().st_size
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DatabaseError(
            f"The backup to {target} failed: {reason}. Free some space or name another file."
        ) from None
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """For reading only."""
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
        yield connection
