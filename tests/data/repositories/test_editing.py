import asyncio

import pytest

from data.database.session import Database
from data.repositories.manases import SqlManasRepository
from data.repositories.notes import SqlNoteRepository
from domain.errors import InvalidRequest, ManasNotFound
from domain.usecases.notes import CompleteTitleUseCase, FollowLinkUseCase
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import note
from tests.memory.identity import CountingIdentities


def test_a_note_is_replaced_only_as_it_was_seen(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        first, second = note("a", "first"), note("a", "second")
        assert not await notes.replace(first, "")
        await notes.save([first])
        assert not await notes.replace(second, "another")
        assert await notes.get("a") == first
        assert await notes.replace(second, first.content_hash)
        assert await notes.get("a") == second

    run(test)


def test_a_note_is_begun_once(url: str) -> None:
    """Also by two programs that save in the same moment: each has a connection of its own."""

    async def test() -> None:
        async with Database(url) as one, Database(url) as other:
            notes, beside = SqlNoteRepository(one), SqlNoteRepository(other)
            begun = await asyncio.gather(notes.begin(note("a", "one")), beside.begin(note("a", "two")))
            assert sorted(begun) == [False, True]
            assert (await notes.get("a")).text == ("one" if begun[0] else "two")

    asyncio.run(test())


def test_a_note_is_taken_back_only_as_it_was_seen_and_if_nothing_points_to_it(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, manases = SqlNoteRepository(database), SqlManasRepository(database, CountingIdentities())
        empty, other = note("a", "", title="Untitled"), note("b", "", title="Other", links=("Untitled",))
        await notes.save([empty, other])
        assert not await notes.take_back("a", empty.content_hash)  # linked to
        await notes.save([other.model_copy(update={"links": ()})])
        manas = await manases.create("M")
        await manases.add(manas.id, ["a"])
        assert not await notes.take_back("a", empty.content_hash)
        await manases.remove(manas.id, ["a"])
        assert not await notes.take_back("a", "another")
        assert await notes.take_back("a", empty.content_hash)
        assert await notes.note_ids(None) == ("b",)
        assert not await notes.take_back("a", empty.content_hash)

    run(test)


def test_notes_of_a_tag_or_a_manas_are_counted(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, manases = SqlNoteRepository(database), SqlManasRepository(database, CountingIdentities())
        await notes.save([note("a", tags=["t/x"]), note("b", tags=["t"]), note("c")])
        manas = await manases.create("m")
        await manases.add(manas.id, ["b", "c"])
        assert await notes.count() == 3
        assert await notes.count(tag="t") == 2
        assert await notes.count(tag="t", manas_id=manas.id) == 1
        assert await notes.note_ids(manas.id, tag="t") == ("b",)
        assert await notes.note_ids(None, tag="t") == ("a", "b")

    run(test)


def test_a_manas_is_renamed_and_found_by_its_notes(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, manases = SqlNoteRepository(database), SqlManasRepository(database, CountingIdentities())
        await notes.save([note("a"), note("b")])
        one, two = await manases.create("One"), await manases.create("Two")
        await manases.add(one.id, ["a"])
        await manases.add(two.id, ["a", "b"])
        with pytest.raises(InvalidRequest, match="already"):
            await manases.rename(one.id, "TWO")
        await manases.rename("One", "ONE and  only")
        assert [manas.name for manas in await manases.of_note("a")] == ["ONE and only", "Two"]
        assert [manas.note_count for manas in await manases.of_note("b")] == [2]
        assert await manases.of_note("gone") == ()
        with pytest.raises(ManasNotFound):
            await manases.rename("One", "x")

    run(test)


def test_a_link_means_a_note(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save([note("a", title="Rye bread", aliases=("Roggen",)), note("b", title="Other")])
        for target in ("rye  BREAD", "folder/Rye bread", "roggen"):
            assert await notes.link_target(target) == "a"
        assert await notes.link_target("none") is None
        assert await FollowLinkUseCase(notes)("Rye bread.md") == "a"
        assert await FollowLinkUseCase(notes)(" ") is None

    run(test)


def test_a_beginning_finds_titles(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        titles = ("Rye bread", "Rye", "rye_flour", "100% rye", "Spelt", "Odd [title]", "Rye")
        named = [
            note(str(number), title=title, aliases=("roggen-mehl",) if title == "rye_flour" else ())
            for number, title in enumerate(titles)
        ]
        await notes.save(named)
        assert await notes.titles("RYE", limit=8) == ("Rye", "Rye bread", "rye_flour")
        assert await notes.titles("rye ", limit=1) == ("Rye",)
        assert await notes.titles("rye_", limit=8) == ("rye_flour",)  # no wildcard of the database
        assert await notes.titles("100%", limit=8) == ("100% rye",)
        assert await notes.titles("Rogg", limit=8) == ("rye_flour",)
        assert await notes.titles("x", limit=8) == ()
        assert set(await notes.titles("", limit=8)) == set(titles)
        assert "Odd [title]" not in await CompleteTitleUseCase(notes)("")

    run(test)
