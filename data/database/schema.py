"""Brings a database up to this program's schema, once, whoever starts first."""

from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, inspect, text

from domain.errors import DatabaseError

MIGRATIONS = Path(__file__).parent / "migrations"
HEAD = "0008"
"""The newest migration. Named here so that a start that needs none does not import Alembic."""
PATIENCE_S = 60.0


def prepare(reading: Engine, writing: Engine, name: str) -> None:
    """Raises `DatabaseError`, and has changed nothing, for the schema of a newer program or of another one."""
    with reading.connect() as connection:
        if _revision(connection, name) == HEAD:
            return
    if reading.dialect.name == "sqlite":
        _prepare_file(reading, writing, name)
    else:
        _upgrade(writing, name)


def _prepare_file(reading: Engine, writing: Engine, name: str) -> None:
    """The change to WAL fails at once when another connection is in the way, hence a lock around both."""
    path = reading.url.database
    try:
        with FileLock(f"{path}.lock", timeout=PATIENCE_S):
            with reading.connect() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                driver.execute("PRAGMA journal_mode = WAL")
            _upgrade(writing, name)
    except Timeout:
        raise DatabaseError(
            f"Another process has been bringing the database {name} up to date for {PATIENCE_S:.0f} s. "
            "Wait for it, or end it, and start again."
        ) from None


def _upgrade(writing: Engine, name: str) -> None:
    """In one transaction, which holds the write lock: a kill leaves the old schema whole."""
    from alembic import command
    from alembic.config import Config

    with writing.begin() as connection:
        if _revision(connection, name) == HEAD:
            return
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _revision(connection: Connection, name: str) -> str | None:
    """None for an empty database."""
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" not in tables:
        if tables and connection.dialect.name == "sqlite":
            raise DatabaseError(
                f"The database {name} belongs to another program: it has the table {min(tables)}. "
                "Name another file in UNIUN_DATABASE_URL."
            )
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision is not None and revision not in known_revisions():
        raise DatabaseError(
            f"The database {name} was written by a newer version of UNIUN (its schema is {revision}, this version "
            f"knows {HEAD}). Nothing was changed. Update UNIUN, or name another database in UNIUN_DATABASE_URL."
        )
    return None if revision is None else str(revision)


def known_revisions() -> set[str]:
    """Revisions by the names of their files, `rNNNN_what.py`."""
    return {path.name[1:5] for path in (MIGRATIONS / "versions").glob("r[0-9][0-9][0-9][0-9]_*.py")}
