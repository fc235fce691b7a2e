import asyncio

import pytest

from data.note_changes import LocalNoteChanges
from domain.errors import InvalidRequest, ManasNotFound, NotFound
from domain.usecases.manases import (
    ChangeManasUseCase,
    CreateManasUseCase,
    DeleteManasUseCase,
    ListManasesUseCase,
    RenameManasUseCase,
)
from tests.memory.library import MemoryLibrary


def test_notes_come_and_go() -> None:
    async def use() -> None:
        library = MemoryLibrary()
        for number in range(3):
            await library.write(f"n{number}", f"Title {number}", "sun" if number else "moon")
        tagged = await library.notes.get("n2")
        await library.notes.save([tagged.model_copy(update={"tags": ("sky/day",)})])
        announced: list[str] = []
        changes = LocalNoteChanges()
        changes.listen(announced.extend)
        change = ChangeManasUseCase(library.manases, library.notes, changes)
        manas = await CreateManasUseCase(library.manases)("  Sky\nand more ")
        assert manas.name == "Sky and more"
        assert (await change.add("Sky and more", note_ids=["n0"])).note_count == 1
        assert (await change.add(manas.id, tag="#Sky")).note_count == 2
        assert (await change.add(manas.id, query="sun")).note_count == 3
        assert announced == ["n0", "n2", "n1", "n2"], "a Gana that watches it is woken"
        assert (await change.remove(manas.id, query="sun")).note_count == 1
        assert len(announced) == 4
        with pytest.raises(NotFound, match="No note fits"):
            await change.add(manas.id, tag="absent")
        with pytest.raises(InvalidRequest, match="which notes"):
            await change.add(manas.id)
        with pytest.raises(ManasNotFound):
            await change.add("absent", note_ids=["n0"])
        assert (await DeleteManasUseCase(library.manases)(manas.id)).note_count == 1
        assert await ListManasesUseCase(library.manases)() == ()
        assert await library.notes.count() == 3

    asyncio.run(use())


@pytest.mark.parametrize("name", ["", " \n", "x" * 201])
def test_a_name_is_needed(name: str) -> None:
    with pytest.raises(InvalidRequest, match="needs a name"):
        asyncio.run(CreateManasUseCase(MemoryLibrary().manases)(name))


def test_a_name_is_taken_once() -> None:
    async def twice() -> None:
        create = CreateManasUseCase(MemoryLibrary().manases)
        await create("a")
        with pytest.raises(InvalidRequest, match="already"):
            await create("a")

    asyncio.run(twice())


def test_a_manas_is_renamed() -> None:
    async def use() -> None:
        library = MemoryLibrary()
        await library.write("n", "Title", "text")
        manas = await CreateManasUseCase(library.manases)("sky")
        await library.manases.add(manas.id, ["n"])
        rename = RenameManasUseCase(library.manases)
        assert (await rename("sky", " Night\nsky ")).name == "Night sky"
        assert [each.name for each in await ListManasesUseCase(library.manases).of_note("n")] == ["Night sky"]
        with pytest.raises(InvalidRequest, match="needs a name"):
            await rename(manas.id, " ")
        with pytest.raises(ManasNotFound):
            await rename("sky", "x")

    asyncio.run(use())
