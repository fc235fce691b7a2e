"""What a PostgreSQL server alone can do to its clients. Without an installed server there is nothing to test."""

import asyncio

import pytest
from sqlalchemy import text
from sqlmodel import Session

from data.database.session import Database
from domain.errors import DatabaseError
from tests.data.database.postgres import binaries

_END_OTHERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def _count(session: Session) -> int:
    return int(session.connection().execute(text("SELECT count(*) FROM manas")).scalar_one())


def _end_own(session: Session) -> None:
    session.connection().execute(text("INSERT INTO manas (id, name, key) VALUES ('a', 'a', 'a')"))
    session.connection().execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


if binaries() is not None:

    def test_idle_connections_that_the_server_ended_are_made_anew(postgres_tables: str) -> None:
        async def main() -> None:
            async with Database(postgres_tables) as database, Database(postgres_tables) as other:
                await database.write(_count)
                await other.read(lambda session: session.connection().execute(text(_END_OTHERS)).all())
                assert await database.read(_count) == await database.write(_count)

        asyncio.run(main())

    def test_a_connection_that_ends_in_a_transaction_changes_nothing_and_is_told(
        postgres_tables: str,
    ) -> None:
        async def main() -> None:
            async with Database(postgres_tables) as database:
                before = await database.read(_count)
                with pytest.raises(DatabaseError, match=r"cannot be reached\. Check that its server runs"):
                    await database.write(_end_own)
                assert await database.read(_count) == before

        asyncio.run(main())

    def test_a_database_that_is_not_there_is_told(postgres_tables: str) -> None:
        async def main() -> None:
            with pytest.raises(DatabaseError, match=r"cannot be reached\..*does not exist"):
                async with Database(f"{postgres_tables}x"):
                    pass

        asyncio.run(main())
