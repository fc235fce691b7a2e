"""What saving asks of the database."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from data.database.session import Database
from data.repositories.notes import SqlNoteRepository
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import note


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Those that are executed meanwhile."""
    engine = database._engine
    assert engine is not None
    seen: list[str] = []

    def see(connection: object, cursor: object, statement: str, *more: object) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", see)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", see)


def test_a_new_note_takes_few_statements_and_many_no_more(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        with statements(database) as for_one:
            await notes.save([note("a")])
        # Begin; is it there; the note, its name, the index, two lists of work; is a concept called so.
        assert len(for_one) == 8
        with statements(database) as for_many:
            await notes.save([note(f"b{number}") for number in range(20)])
        assert len(for_many) == len(for_one)

    run(test)


def test_a_note_arrives_once_whether_it_is_new_or_not(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save([note("a", tags=["x"])])
        await notes.save([note("a", tags=["x"]), note("b", tags=["x"]), note("c")])
        await notes.save([note("c", tags=["x", "y"])])
        first = await notes.arrived_since(0, tag="x", manas_id=None, limit=10)
        assert [arrival.note.id for arrival in first] == ["a", "b", "c"]
        assert await notes.arrived_since(first[-1].number, tag="x", manas_id=None, limit=10) == ()

    run(test)
