import asyncio

import pytest

from domain.entities.note import SearchHit, SearchMode
from domain.errors import InvalidRequest, ModelUnavailable
from domain.usecases.nearness import near_enough
from domain.usecases.search import SearchNotesUseCase, fuse_ranks
from tests.memory.library import MemoryLibrary


async def filled() -> MemoryLibrary:
    library = MemoryLibrary()
    await library.write("a", "Rivers", "water flows down to the sea")
    await library.write("b", "Seas", "the sea the sea")
    await library.write("c", "Hills", "stone and grass")
    return library


def search(library: MemoryLibrary) -> SearchNotesUseCase:
    return SearchNotesUseCase(library.notes, library.vectors, library.embedder)


@pytest.mark.parametrize(
    ("mode", "first", "found"), [("words", "b", 2), ("meaning", "b", 2), ("both", "b", 2)]
)
def test_modes(mode: SearchMode, first: str, found: int) -> None:
    async def look() -> None:
        result = await search(await filled())("the sea", mode=mode)
        assert result.hits[0].note_id == first
        assert len(result.hits) == found
        assert result.without_meaning is None
        assert list(result.hits) == sorted(result.hits, key=lambda hit: -hit.score)

    asyncio.run(look())


def test_a_scope_and_a_limit() -> None:
    async def look() -> None:
        library = await filled()
        manas = await library.manases.create("water")
        await library.manases.add(manas.id, ["a", "c"])
        for mode in ("words", "meaning", "both"):
            result = await search(library)("sea", mode=mode, manas_id=manas.id, limit=1)
            assert len(result.hits) == 1
            assert result.hits[0].note_id in ("a", "c")

    asyncio.run(look())


def test_it_is_told_how_many_notes_meaning_cannot_find() -> None:
    async def look() -> None:
        library = await filled()
        await library.write("d", "Lakes", "water that stays", embedded=False)
        expected: dict[SearchMode, int] = {"words": 0, "meaning": 1, "both": 1}
        for mode, waiting in expected.items():
            assert (await search(library)("sea", mode=mode)).waiting == waiting

    asyncio.run(look())


def test_words_do_when_the_embedder_is_missing() -> None:
    async def look() -> None:
        library = await filled()
        library.embedder.error = ModelUnavailable("No network.")
        result = await search(library)("sea", mode="both")
        assert {hit.note_id for hit in result.hits} == {"a", "b"}
        assert result.without_meaning == "No network."
        with pytest.raises(ModelUnavailable):
            await search(library)("sea", mode="meaning")
        with pytest.raises(InvalidRequest, match="nothing to search"):
            await search(library)(" ")

    asyncio.run(look())


def test_reciprocal_rank_fusion() -> None:
    def ranking(*ids: str) -> list[SearchHit]:
        return [SearchHit(note_id=each, title=each, snippet=each, score=9) for each in ids]

    fused = fuse_ranks(ranking("a", "b", "c"), ranking("c", "d", "b"))
    assert [hit.note_id for hit in fused] == ["c", "b", "a", "d"]
    assert fused[0].score == pytest.approx(1 / 63 + 1 / 61)
    assert fuse_ranks() == fuse_ranks([], []) == ()


@pytest.mark.parametrize("mode", ["words", "meaning", "both"])
def test_a_tag_narrows_a_search(mode: SearchMode) -> None:
    async def look() -> None:
        library = await filled()
        tagged = await library.notes.get("a")
        await library.notes.save([tagged.model_copy(update={"tags": ("earth/water",)})])
        result = await search(library)("the sea", mode=mode, tag="#Earth")
        assert [hit.note_id for hit in result.hits] == ["a"]

    asyncio.run(look())


def test_what_is_beside_the_point_is_not_near_enough() -> None:
    assert near_enough([("a", 0.6), ("b", 0.31), ("c", 0.29)]) == (("a", 0.6), ("b", 0.31))
    assert near_enough([("a", 0.25), ("b", 0.21), ("c", 0.19)]) == (("a", 0.25), ("b", 0.21))
    assert near_enough([("a", 0.19)]) == near_enough([]) == ()


def test_what_is_called_so_comes_before_what_words_and_meaning_agree_on() -> None:
    async def look() -> None:
        library = await filled()
        await library.write(
            "z", "Sea", "nothing else is in here, and it is of quite another kind than the rest"
        )
        result = await search(library)("sea", mode="both")
        assert result.hits[0].note_id == "z"

    asyncio.run(look())
