"""Concepts follow from what notes say now: they become one, and several again, in the databases and in the stand-in."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session, func, select

from data.database.session import Database
from data.database.tables.knowledge import ConceptKeyRow, ConceptRow
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.entities.note import Note
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.notes import NoteRepository
from tests.data.conftest import BACKENDS, fresh_url
from tests.data.repositories.samples import note
from tests.memory.library import MemoryLibrary

LARGE = "Large Language Model"
BOTH = "Large Language Model (LLM)"
Triple = tuple[str, str, str]
SHORT_FOR: Triple = (LARGE, "is short for", "LLM")
Snapshot = tuple[set[tuple[str, str, tuple[str, ...], int]], set[tuple[str, str, str, tuple[str, ...]]]]


@dataclass
class Graph:
    notes: NoteRepository
    knowledge: KnowledgeRepository
    database: Database | None = field(default=None)

    async def read(self, written: Note | str, *said: str | Triple) -> None:
        """Saves a note and what it says: names of concepts and relations."""
        written = note(written, str(said)) if isinstance(written, str) else written
        await self.notes.save([written])
        assert await self.knowledge.assert_extraction(written.id, written.content_hash, _said(said))

    async def names(self) -> set[frozenset[str]]:
        concepts = (await self.knowledge.graph()).concepts
        return {frozenset({concept.name, *concept.aliases}) for concept in concepts}

    async def relations(self) -> set[tuple[str, str, str, tuple[str, ...]]]:
        relations = (await self.knowledge.graph()).relations
        return {(one.source.name, one.verb, one.target.name, one.note_ids) for one in relations}

    async def snapshot(self) -> Snapshot:
        concepts = (await self.knowledge.graph()).concepts
        described = {(one.name, one.type, one.aliases, one.note_count) for one in concepts}
        return described, await self.relations()


Run = Callable[[Callable[[Graph], Coroutine[Any, Any, None]]], None]


@pytest.fixture(params=["memory", *BACKENDS])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a coroutine function on an empty graph."""
    if request.param == "memory":
        return lambda test: asyncio.run(test(_in_memory()))
    url = fresh_url(request, tmp_path, request.param)

    async def on_database(test: Callable[[Graph], Coroutine[Any, Any, None]]) -> None:
        async with Database(url) as database:
            await test(Graph(SqlNoteRepository(database), SqlKnowledgeRepository(database), database))

    return lambda test: asyncio.run(on_database(test))


def _in_memory() -> Graph:
    library = MemoryLibrary()
    return Graph(library.notes, library.knowledge)


def _said(said: tuple[str | Triple, ...]) -> Extraction:
    return Extraction(
        concepts=tuple(ConceptClaim(name=one) for one in said if isinstance(one, str)),
        relations=tuple(
            RelationClaim(source=one[0], verb=one[1], target=one[2])
            for one in said
            if not isinstance(one, str)
        ),
    )


@pytest.mark.parametrize("withdrawn", [True, False])
def test_concepts_come_apart_with_the_note_that_joined_them(run: Run, withdrawn: bool) -> None:
    async def test(graph: Graph) -> None:
        await graph.read("b", "LLM")
        await graph.read("c", SHORT_FOR)
        apart = await graph.snapshot()
        assert apart[1] == {(*SHORT_FOR, ("c",))}
        await graph.read("a", BOTH)
        assert await graph.names() == {frozenset({"LLM", LARGE, BOTH})}
        assert await graph.relations() == set()
        assert await graph.knowledge.relations_of(["c"]) == ()
        if withdrawn:
            await graph.notes.delete("a")
        else:
            await graph.read("a")
        assert await graph.snapshot() == apart
        (relation,) = await graph.knowledge.relations_of(["c"])
        assert (relation.source.name, relation.target.name) == (LARGE, "LLM")
        (short,) = await graph.knowledge.find_concepts("llm")
        assert await graph.knowledge.notes_naming([short.id], 9) == ("b", "c")

    run(test)


def test_what_two_notes_join_stays_joined_while_one_says_so(run: Run) -> None:
    async def test(graph: Graph) -> None:
        await graph.read("b", "LLM", ("LLM", "writes", "text"))
        await graph.read("c", LARGE, (LARGE, "writes", "text"))
        await graph.read("one", BOTH)
        await graph.read("other", BOTH, "tea")
        await graph.read("one", "tea")
        assert await graph.names() == {
            frozenset({"LLM", LARGE, BOTH}),
            frozenset({"tea"}),
            frozenset({"text"}),
        }
        assert {relation[3] for relation in await graph.relations()} == {("b", "c")}
        await graph.notes.delete("other")
        assert await graph.relations() == {
            ("LLM", "writes", "text", ("b",)),
            (LARGE, "writes", "text", ("c",)),
        }

    run(test)


def test_a_note_that_says_one_thing_in_two_ways_is_counted_once(run: Run) -> None:
    async def test(graph: Graph) -> None:
        await graph.read("a", BOTH, ("LLM", "writes", "text"), (LARGE, "writes", "text"))
        assert {relation[3] for relation in await graph.relations()} == {("a",)}
        (relation,) = await graph.knowledge.relations_of(["a"])
        assert relation.note_ids == ("a",)

    run(test)


def test_an_alias_joins_while_its_note_has_it(run: Run) -> None:
    async def test(graph: Graph) -> None:
        knows = ("Ada Lovelace", "is called", "Countess")
        await graph.read("a", "Ada Lovelace", knows)
        await graph.read("b", "countess")
        apart = await graph.snapshot()
        plain = note("n", title="Ada Lovelace")
        with_alias = plain.model_copy(update={"aliases": ("Countess",)})
        for _ in range(2):
            await graph.notes.save([with_alias])
            assert len(await graph.names()) == 1
            assert await graph.relations() == set()
            await graph.notes.save([plain])
            assert await graph.snapshot() == apart
        await graph.notes.save([with_alias])
        await graph.notes.delete("n")
        assert await graph.snapshot() == apart

    run(test)


def test_a_title_joins_what_its_alias_names_while_it_is_the_title(run: Run) -> None:
    async def test(graph: Graph) -> None:
        await graph.read("a", "Ada", "Grace", "Countess")
        await graph.notes.save([note("n", title="Ada", aliases=("Countess",))])
        assert await graph.names() == {frozenset({"Ada", "Countess"}), frozenset({"Grace"})}
        await graph.notes.save([note("n", title="Grace", aliases=("Countess",))])
        assert await graph.names() == {frozenset({"Grace", "Countess"}), frozenset({"Ada"})}
        await graph.notes.save([note("m", title="Ada", aliases=("Countess",))])
        assert await graph.names() == {frozenset({one}) for one in ("Ada", "Grace", "Countess")}
        await graph.notes.delete("n")
        assert await graph.names() == {frozenset({"Ada", "Countess"}), frozenset({"Grace"})}

    run(test)


NAMES = (
    "LLM",
    "LLMs",
    "llm",
    LARGE,
    BOTH,
    "Long Life Milk",
    "Long Life Milk (LLM)",
    "Ada",
    "Countess",
    "countess",
    "Ada Lovelace",
    "Tea",
    "—",
    "Ⅷ",
    "VIII",
    "Café",
    "CAFE",
    "Nul\0l",
    "Nul\ufffdl",
)
TITLES = ("Ada Lovelace", "Ada", "LLM", "Tea", BOTH, "—", "VIII", "nul\0l")
ALIASES = ("Countess", "Ada", "LLM", "tea", "LONG life  milk", "Ⅷ", "cafe", "NUL\ufffdL")


def _random_note(chance: random.Random, note_id: str) -> Note:
    aliases = tuple(chance.sample(ALIASES, chance.choice((0, 0, 1, 2))))
    return note(note_id, title=chance.choice(TITLES), aliases=aliases)


def _random_said(chance: random.Random) -> tuple[str | Triple, ...]:
    names = chance.sample(NAMES, chance.randrange(4))
    relations = [
        (chance.choice(NAMES), chance.choice(("is", "has", "\0has", " ")), chance.choice(NAMES))
        for _ in range(chance.randrange(3))
    ]
    return (*names, *relations)


async def _built(graph: Graph, final: list[tuple[Note, tuple[str | Triple, ...]]]) -> Snapshot:
    for written, said in final:
        await graph.read(written, *said)
    return await graph.snapshot()


@pytest.mark.parametrize("seed", range(4))
def test_the_graph_is_that_of_the_notes_as_they_are_whatever_happened_before(run: Run, seed: int) -> None:
    chance = random.Random(seed)

    async def test(graph: Graph) -> None:
        for _ in range(6):
            state: dict[str, tuple[Note, tuple[str | Triple, ...]]] = {}
            for _ in range(12):
                note_id = chance.choice("abcde")
                if note_id in state and chance.random() < 0.2:
                    await graph.notes.delete(note_id)
                    del state[note_id]
                elif note_id in state and chance.random() < 0.3:
                    state[note_id] = (_random_note(chance, note_id), state[note_id][1])
                    await graph.notes.save([state[note_id][0]])
                else:
                    state[note_id] = (_random_note(chance, note_id), _random_said(chance))
                    await graph.read(state[note_id][0], *state[note_id][1])
                assert await graph.snapshot() == await _built(_in_memory(), list(state.values()))
            final = await graph.snapshot()
            for note_id in state:
                await graph.notes.delete(note_id)
            await _is_empty(graph)
            order = list(state.values())
            chance.shuffle(order)
            assert await _built(graph, order) == final
            for note_id in state:
                await graph.notes.delete(note_id)

    run(test)


async def _is_empty(graph: Graph) -> None:
    assert await graph.snapshot() == (set(), set())

    def rows(session: Session) -> list[int]:
        return [
            session.exec(select(func.count()).select_from(each)).one() for each in (ConceptRow, ConceptKeyRow)
        ]

    if graph.database is not None:
        assert await graph.database.read(rows) == [0, 0]
