"""What a driver reports, as what the user can do about it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from domain.errors import DatabaseError

_SQLITE = {
    sqlite3.SQLITE_BUSY: "is locked by another process. Try again; if it stays so, end the process that holds it.",
    sqlite3.SQLITE_LOCKED: "is locked by another process. Try again; if it stays so, end the process that holds it.",
    sqlite3.SQLITE_FULL: "cannot grow, because the disk is full. Nothing was changed. Free some space and try again.",
    sqlite3.SQLITE_CORRUPT: "is damaged. Keep a copy of the file, and put the last backup in its place.",
    sqlite3.SQLITE_NOTADB: "is damaged or no database. Keep a copy of the file, and put the last backup in its place.",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened. Check that its folder exists and may be read and written.",
    sqlite3.SQLITE_READONLY: "cannot be written. Check the permissions of the file and of its folder.",
    sqlite3.SQLITE_PERM: "may not be used. Check the permissions of the file and of its folder.",
    sqlite3.SQLITE_IOERR: "cannot be read or written, because the disk reports an error. Check the disk and its free space.",
}
# By class or by code of the SQL standard, as PostgreSQL uses them.
_POSTGRES = {
    "53100": "cannot grow, because the server's disk is full. Nothing was changed. Free some space and try again.",
    "55P03": "is locked by another process. Try again; if it stays so, end the process that holds it.",
    "40P01": "was used by another process at the same moment. Try again.",
    "40001": "was used by another process at the same moment. Try again.",
    "53": "has no resources left on its server. Try again later.",
    "42501": "may not be used by this user. Grant it the rights to create and to change tables.",
    "25P03": "has ended what this program was at, because it did not go on, as when its machine sleeps. Try again.",
    "25006": "cannot be written: the server allows reading only.",
    "XX": "is damaged, or its server has a fault. See the server's log.",
}
_UNREACHABLE = "cannot be reached. Check that its server runs, and UNIUN_DATABASE_URL."


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Raises `DatabaseError` for what the driver reports of the database `name`. Mistakes of the program pass."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error, IntegrityError):
            raise
        advice = _advice(error)
        if advice is None:
            raise
        raise DatabaseError(f"The database {name} {advice} ({_reason(error)})") from error
    except sqlite3.OperationalError as error:  # of the driver itself, which sets a new file up
        advice = _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "cannot be used.")
        raise DatabaseError(f"The database {name} {advice} ({error})") from error
    except PoolTimeout as error:
        raise DatabaseError(f"The database {name} is busy: no connection came free. Try again.") from error


def _advice(error: DBAPIError) -> str | None:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if isinstance(code, int):
        # The low byte is the kind of error, the rest its detail.
        known = _SQLITE.get(code & 0xFF)
        return known or ("cannot be used." if isinstance(error, OperationalError) and code != 1 else None)
    state = getattr(error.orig, "sqlstate", None)
    if isinstance(state, str) and not state.startswith(("08", "57P")):
        return _POSTGRES.get(state) or _POSTGRES.get(state[:2])
    return _UNREACHABLE if isinstance(error, OperationalError) else None


def _reason(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())[:300]
