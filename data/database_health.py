"""Whether the database can be read by this program, for `doctor`. Nothing is changed by looking."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import quote

from data.database.schema import HEAD, known_revisions
from data.database.session import Database
from domain.entities.health import Finding
from domain.errors import DatabaseError

AREA = "database"
_RESTORE = "Put a backup in its place with `uniun restore FILE`, or name another file in UNIUN_DATABASE_URL."


async def examine_database(database: Database) -> Finding:
    """Reads every page of an SQLite file; asks a PostgreSQL server for one transaction."""
    if database.is_sqlite:
        return await asyncio.to_thread(_examine_file, Path(database.name))
    try:
        await database.read(lambda session: None)
    except DatabaseError as error:
        return Finding(area=AREA, state="fail", text=str(error))
    return Finding(area=AREA, state="ok", text=f"{database.name} answers")


def is_current(path: Path) -> bool:
    """Whether it is there and can be read with this program's schema."""
    try:
        with _read_only(path) as connection:
            return _revision(connection) == HEAD
    except (sqlite3.Error, OSError):
        return False


def _examine_file(path: Path) -> Finding:
    if not path.exists():
        return Finding(area=AREA, state="ok", text=f"none yet; {path} is made at the first start")
    try:
        with _read_only(path) as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
            revision = _revision(connection)
    except (sqlite3.Error, OSError) as error:
        text = f"{path} cannot be read as a database: {error}"
        return Finding(area=AREA, state="fail", text=text, mend=_RESTORE)
    if found != ["ok"]:
        reason = " ".join(" ".join(found).split())[:200]
        return Finding(area=AREA, state="fail", text=f"{path} is damaged: {reason}", mend=_RESTORE)
    if revision is not None and revision not in known_revisions():
        return Finding(
            area=AREA,
            state="fail",
            text=f"{path} was written by a newer UNIUN: its schema is {revision}, this version knows {HEAD}",
            mend="Update UNIUN, or name another file in UNIUN_DATABASE_URL.",
        )
    return Finding(area=AREA, state="ok", text=f"{path} is whole")


def _read_only(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True))


def _revision(connection: sqlite3.Connection) -> str | None:
    """None for a database without our tables."""
    tables = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
    ).fetchone()
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if tables[0] else None
    return None if row is None else str(row[0])
