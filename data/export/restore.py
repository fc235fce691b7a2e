"""Puts a backup in the place of the SQLite database, while no UNIUN is open."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from data.database.schema import known_revisions
from data.database.session import PRAGMAS, Database
from data.export.backup import SqliteBackups, copy_checked, opened
from data.models.files import sync_folder
from data.models.threads import in_thread
from data.presence import Presence
from domain.errors import DatabaseError, InvalidRequest

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TRIES = 40
"""A quarter of a second each, while another program writes."""


class SqliteRestore:
    """Implements `Restores`.

    The pages are written by SQLite, in one transaction: killed at any moment the database is the old one or the new one,
    and a program that has it open sees the one or the other. Only a database that cannot be read any more is moved.
    """

    def __init__(self, database: Database, backups: SqliteBackups, presence: Presence) -> None:
        self._database = database
        self._backups = backups
        self._presence = presence

    async def check(self, source: Path) -> None:
        target = self._target()
        async with self._presence.nobody():
            await in_thread(lambda step: _usable(source, target), lambda done: None)

    async def restore(self, source: Path) -> Path | None:
        target = self._target()
        async with self._presence.nobody():
            return await in_thread(lambda step: self._restore(source, target, step), lambda kept: None)

    def _target(self) -> Path:
        if not self._database.is_sqlite:
            raise InvalidRequest("The database is on a PostgreSQL server. Restore it with: pg_restore")
        return Path(self._database.name)

    def _restore(self, source: Path, target: Path, step: Callable[[int], None]) -> Path | None:
        source = _usable(source, target)
        step(1)
        kept = self._set_aside(target, step) if target.exists() else None
        step(2)
        try:
            _put(source, target)
        except (sqlite3.Error, OSError) as error:
            raise DatabaseError(
                f"{source} could not be restored: {error}. Nothing was changed. Free some space, or end what uses "
                f"{target}, and try again."
            ) from None
        return kept

    def _set_aside(self, target: Path, step: Callable[[int], None]) -> Path:
        kept = self._backups.new_target()
        if _is_sound(target):
            copy_checked(target, kept, step)
            return kept
        kept = kept.with_name(f"damaged-{kept.name}")
        # Its log goes first: without the database it would be played into the next one.
        for end in ("-wal", "-shm", ""):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{target}{end}", f"{kept}{end}")
        sync_folder(target.parent)
        return kept


def _usable(source: Path, target: Path) -> Path:
    """The backup. Raises `InvalidRequest` if it is none."""
    source = source.expanduser()
    if not source.is_file():
        raise InvalidRequest(f"There is no file {source}. Name a file that `uniun backup` wrote.")
    if target.exists() and source.samefile(target):
        raise InvalidRequest(f"{source} is the database itself. Name a backup of it.")
    _check(source)
    return source


def _check(source: Path) -> None:
    """Raises `InvalidRequest` unless it is a whole database of this program, or of an older one."""
    refused = f"{source} is no backup of UNIUN"
    try:
        with opened(source) as backup:
            findings = [row[0] for row in backup.execute("PRAGMA integrity_check")]
            if findings != ["ok"]:
                raise InvalidRequest(f"The backup {source} is damaged: {findings[0]}. Nothing was changed.")
            revision = backup.execute("SELECT version_num FROM alembic_version").fetchone()
            backup.execute("SELECT count(*) FROM note, conversation, gana LIMIT 0")
    except sqlite3.Error as error:
        raise InvalidRequest(f"{refused}: {error}. Nothing was changed.") from None
    if revision is None:
        raise InvalidRequest(f"{refused}: its schema has no number. Nothing was changed.")
    if revision[0] not in known_revisions():
        raise InvalidRequest(
            f"The backup {source} was written by a newer version of UNIUN (its schema is {revision[0]}). Nothing was "
            "changed. Update UNIUN, and restore it then."
        )


def _is_sound(database: Path) -> bool:
    try:
        with opened(database) as live:
            return [row[0] for row in live.execute("PRAGMA integrity_check")] == ["ok"]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in _DAMAGED:
            return False
        raise DatabaseError(
            f"The database {database} cannot be read: {error}. Nothing was changed."
        ) from None


def _put(source: Path, target: Path) -> None:
    tries = 0

    def wait(status: int, remaining: int, total: int) -> None:
        nonlocal tries
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            tries += 1
            if tries >= _TRIES:
                raise sqlite3.OperationalError("another program has been writing into the database for 10 s")

    target.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_RDWR, 0o600))
    with opened(source) as backup, contextlib.closing(sqlite3.connect(target)) as live:
        for pragma in PRAGMAS:
            live.execute(f"PRAGMA {pragma}")
        live.execute("PRAGMA journal_mode = WAL")
        backup.backup(live, progress=wait)
        live.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sync_folder(target.parent)
