"""What a PostgreSQL server alone can do to its clients. Without an installed server there is nothing to test."""

import asyncio
import threading

import pytest
from sqlalchemy import text
from sqlmodel import Session

from data.database import session as session_module
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


def _silent(session: Session) -> None:
    """The server says nothing, as one that was suspended, or whose network is gone."""
    session.connection().execute(text("SELECT pg_sleep(3600)"))


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

    @pytest.mark.parametrize("kind", ["read", "write"])
    def test_a_server_that_does_not_answer_is_told_and_left_at_that(
        postgres_tables: str, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def main() -> None:
            async with Database(postgres_tables) as database:
                before = await database.read(_count)
                with monkeypatch.context() as short:
                    short.setattr(session_module, "SILENCE_S", 0.2)
                    with pytest.raises(DatabaseError, match="has not answered for"):
                        await getattr(database, kind)(_silent)
                assert await database.read(_count) == before
                # The other one still has the lock of all writers until the server sees that it has gone.
                await database.read(lambda session: session.connection().execute(text(_END_OTHERS)).all())
                assert await database.write(_count) == before

        asyncio.run(main())

    def test_closing_waits_but_shortly_for_a_server_that_does_not_answer(
        postgres_tables: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(session_module, "SILENCE_S", 3600.0)
        monkeypatch.setattr(session_module, "CLOSING_SILENCE_S", 0.2)

        async def main() -> None:
            begun = threading.Event()

            def work(session: Session) -> None:
                begun.set()
                _silent(session)

            async with Database(postgres_tables) as database:
                reading = asyncio.create_task(database.read(work))
                await asyncio.to_thread(begun.wait, 60)
            with pytest.raises(DatabaseError, match="has not answered for"):
                await reading

        asyncio.run(main())

    def test_a_writer_whose_machine_fell_asleep_does_not_hold_up_the_others(
        postgres_tables: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asleep, awake = threading.Event(), threading.Event()

        def fall_asleep(session: Session) -> None:
            session.connection().execute(text("INSERT INTO manas (id, name, key) VALUES ('b', 'b', 'b')"))
            asleep.set()
            assert awake.wait(60)
            _count(session)

        async def main() -> None:
            async with Database(postgres_tables) as database, Database(postgres_tables) as other:
                before = await other.read(_count)
                monkeypatch.setattr(session_module, "IDLE_MS", 100)
                sleeping = asyncio.create_task(database.write(fall_asleep))
                try:
                    await asyncio.to_thread(asleep.wait, 60)
                    assert await other.write(_count) == before
                finally:
                    awake.set()
                with pytest.raises(DatabaseError, match="has ended what this program was at"):
                    await sleeping

        asyncio.run(main())
