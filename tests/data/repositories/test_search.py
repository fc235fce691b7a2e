"""What a search brings first, and what it shows of it, in both databases."""

import pytest

from data.database.session import Database
from data.repositories.notes import SqlNoteRepository
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import note


@pytest.mark.parametrize("query", ["Long", "  LONG "])
def test_what_is_called_so_comes_first_however_long_it_is(run: Run, query: str) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save(
            [
                note("called", "word " * 100_000, title="Long"),
                *(note(f"text{n}", "a long long long way", title=f"Way {n}") for n in range(4)),
                note("part", "word " * 1_000, title="The long winter"),
                note("alias", "word " * 1_000, title="Otherwise", aliases=("long",)),
            ]
        )
        hits = await notes.search(query)
        assert {hit.note_id for hit in hits[:2]} == {"called", "alias"}
        assert hits[2].note_id == "part"
        assert len(hits) == 7
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        (found,) = await notes.matching([query], limit=3)
        assert found == tuple(hit.note_id for hit in hits[:3])

    run(test)


def test_a_snippet_has_neither_marks_nor_the_title_again(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save(
            [note("a", "# Ursula\n\nShe **hunts** [[Slugs|the slugs]] at night.", title="Ursula")]
        )
        for query in ("ursula", "night"):
            (hit,) = await notes.search(query)
            assert hit.snippet == "She hunts the slugs at night."

    run(test)
