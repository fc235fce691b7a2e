"""The index in memory and the table stay the same, whoever writes."""

import random

import numpy as np
import pytest

from data.database.session import Database
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from domain.errors import InvalidRequest
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import note


def test_another_process_writes(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        # Two repositories have an index each, as two processes would.
        mine, theirs = SqlVectorRepository(database), SqlVectorRepository(database)
        choice = random.Random(5)
        expected: dict[str, tuple[float, ...]] = {}
        for step in range(120):
            note_id = f"n{choice.randrange(30)}"
            if choice.random() < 0.3 and note_id in expected:
                await notes.delete(note_id)
                del expected[note_id]
            else:
                written = note(note_id, str(step))
                await notes.save([written])
                expected[note_id] = tuple(choice.gauss(0, 1) for _ in range(4))
                assert await choice.choice((mine, theirs)).store(
                    note_id, written.content_hash, expected[note_id]
                )
            if step % 7 == 0:
                query = [choice.gauss(0, 1) for _ in range(4)]
                for vectors in (mine, theirs, SqlVectorRepository(database)):
                    found = await vectors.nearest(query, limit=5)
                    assert [note_id for note_id, _ in found] == _nearest(expected, query, 5)

    run(test)


def test_a_scope_of_few_and_of_many_notes(run: Run) -> None:
    async def test(database: Database) -> None:
        from data.repositories.manases import SqlManasRepository
        from tests.memory.identity import CountingIdentities

        notes, vectors = SqlNoteRepository(database), SqlVectorRepository(database)
        manases = SqlManasRepository(database, CountingIdentities())
        choice = random.Random(6)
        expected = {f"n{n:02}": tuple(choice.gauss(0, 1) for _ in range(4)) for n in range(40)}
        written = [note(note_id) for note_id in expected]
        await notes.save(written)
        for one in written:
            await vectors.store(one.id, one.content_hash, expected[one.id])
        for size in (1, 30):
            scope = sorted(expected)[:size]
            manas = await manases.create(f"M{size}")
            await manases.add(manas.id, scope)
            found = await vectors.nearest([1, 2, 3, 4], manas_id=manas.id, limit=7)
            assert [note_id for note_id, _ in found] == _nearest(
                {note_id: expected[note_id] for note_id in scope}, [1, 2, 3, 4], 7
            )

    run(test)


@pytest.mark.parametrize("vector", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], []])
def test_a_vector_without_a_direction_is_refused(run: Run, vector: list[float]) -> None:
    async def test(database: Database) -> None:
        vectors = SqlVectorRepository(database)
        written = note("a")
        await SqlNoteRepository(database).save([written])
        with pytest.raises(InvalidRequest, match="finite"):
            await vectors.store("a", written.content_hash, vector)
        with pytest.raises(InvalidRequest, match="finite"):
            await vectors.nearest(vector)
        assert await vectors.waiting_count() == 1

    run(test)


def test_vectors_of_another_length_are_not_compared(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, vectors = SqlNoteRepository(database), SqlVectorRepository(database)
        await notes.save([note("a"), note("b")])
        await vectors.store("a", note("a").content_hash, [1.0, 0.0])
        await vectors.store("b", note("b").content_hash, [1.0, 0.0, 0.0])
        assert [note_id for note_id, _ in await vectors.nearest([1.0, 0.0])] == ["a"]
        assert await vectors.nearest([1.0, 0.0, 0.0]) == ()

    run(test)


def _nearest(vectors: dict[str, tuple[float, ...]], query: list[float], limit: int) -> list[str]:
    def cosine(vector: tuple[float, ...]) -> float:
        return float(np.dot(vector, query) / np.linalg.norm(vector) / np.linalg.norm(query))

    return sorted(vectors, key=lambda note_id: -cosine(vectors[note_id]))[:limit]
