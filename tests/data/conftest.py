"""Whatever uses the database runs on SQLite and, where a PostgreSQL server is installed, on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from data.database.session import sqlite_url
from tests.data.database.postgres import PostgresServer, binaries

BACKENDS = ["sqlite", "postgres"] if binaries() is not None else ["sqlite"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "uniun.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.create_database()
