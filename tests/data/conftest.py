"""Whatever uses the database runs on SQLite and, where a PostgreSQL server is installed, on PostgreSQL."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.database.session import Database, sqlite_url
from tests.data.database.postgres import PostgresServer, binaries

BACKENDS = ["sqlite", "postgres"] if binaries() is not None else ["sqlite"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_tables(postgres: PostgresServer) -> str:
    """A database with all its tables, to be emptied before each use."""
    return _with_tables(postgres.create_database())


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all its tables, to be copied."""
    path = tmp_path_factory.mktemp("template") / "uniun.db"
    _with_tables(sqlite_url(path))
    return path


@pytest.fixture(params=BACKENDS)
def blank_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "uniun.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.create_database()


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with empty tables."""
    return fresh_url(request, tmp_path, request.param)


def fresh_url(request: pytest.FixtureRequest, tmp_path: Path, backend: str) -> str:
    if backend == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "uniun.db")
        return sqlite_url(tmp_path / "uniun.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    found: str = request.getfixturevalue("postgres_tables")
    server.empty(found)
    return found


def _with_tables(url: str) -> str:
    async def main() -> None:
        async with Database(url):
            pass

    asyncio.run(main())
    return url
