"""What the graph merges, replaces and forgets."""

import pytest

from data.database.session import Database
from data.repositories.concept_names import concept_keys
from data.repositories.graph_walk import COMMON
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.manases import SqlManasRepository
from data.repositories.notes import SqlNoteRepository
from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.entities.note import Note
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import note
from tests.memory.identity import CountingIdentities


def says(*names: str | tuple[str, str, str], types: dict[str, str] | None = None) -> Extraction:
    """Names are concepts, triples are relations."""
    return Extraction(
        concepts=tuple(
            ConceptClaim(name=name, type=(types or {}).get(name, "thing"))
            for name in names
            if isinstance(name, str)
        ),
        relations=tuple(
            RelationClaim(source=name[0], verb=name[1], target=name[2])
            for name in names
            if not isinstance(name, str)
        ),
    )


class Graph:
    """Saves notes and what they say."""

    def __init__(self, database: Database) -> None:
        self.notes = SqlNoteRepository(database)
        self.knowledge = SqlKnowledgeRepository(database)

    async def read(self, written: Note | str, said: Extraction) -> None:
        written = note(written) if isinstance(written, str) else written
        await self.notes.save([written])
        assert await self.knowledge.assert_extraction(written.id, written.content_hash, said)

    async def names(self) -> dict[str, int]:
        return {concept.name: concept.note_count for concept in (await self.knowledge.graph()).concepts}

    async def relations(self) -> set[tuple[str, str, str, tuple[str, ...]]]:
        found = (await self.knowledge.graph()).relations
        return {(one.source.name, one.verb, one.target.name, one.note_ids) for one in found}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Neural Network", "neural  networks"),
        ("The Eiffel Tower", "Eiffel tower"),
        ("Straße", "STRASSE"),
        ("Café", "cafe"),
        ("city", "Cities"),
        ("box", "boxes"),
        ("cache", "caches"),
        ("branch", "branches"),
        ("house", "houses"),
        ("movie", "movies"),
        ("database", "databases"),
        ("IDs", "ID"),
        ("ﬁle", "file"),
        ("state-of-the-art", "state of the art"),
        ("user_name", "user name"),
    ],
)
def test_names_that_mean_the_same(one: str, other: str) -> None:
    assert concept_keys(one) == concept_keys(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C++", "C#"),
        ("C", "C++"),
        ("plan", "plane"),
        ("Python (language)", "Python"),
        ("analysis", "analysi"),
        ("status", "statu"),
        ("glass", "glas"),
        ("news", "new"),
        ("node.js", "node"),
        ("日本", "日本語"),
    ],
)
def test_names_that_do_not(one: str, other: str) -> None:
    assert concept_keys(one) != concept_keys(other)


def test_names_of_which_nothing_is_left() -> None:
    assert concept_keys("—") == ()
    assert concept_keys("Large Language Model (LLM)") == (*concept_keys("large language models"), "llm")


def test_case_plural_and_aliases_are_one_concept(run: Run) -> None:
    async def test(database: Database) -> None:
        graph = Graph(database)
        await graph.read("a", says("Neural Networks", types={"Neural Networks": "method"}))
        await graph.read("b", says("neural network", ("neural network", "Is  a", "Model")))
        await graph.read("c", says("Neural Networks"))
        (concept,) = await graph.knowledge.find_concepts("NEURAL NETWORK")
        assert (concept.name, concept.type, concept.note_count) == ("Neural Networks", "method", 3)
        assert concept.aliases == ("neural network",)
        assert await graph.relations() == {("Neural Networks", "is a", "Model", ("b",))}
        assert await graph.knowledge.find_concepts("eural") == (concept,)
        assert await graph.knowledge.find_concepts("100%_") == ()

    run(test)


def test_an_acronym_that_a_note_explains_joins_two_concepts(run: Run) -> None:
    async def test(database: Database) -> None:
        graph = Graph(database)
        await graph.read("a", says("LLM", ("LLM", "writes", "text")))
        await graph.read("b", says("Large Language Model", ("Large Language Model", "writes", "text")))
        await graph.read("b2", says("large language models", ("LLM", "is a", "Large Language Model")))
        assert len(await graph.knowledge.find_concepts("l")) == 2
        await graph.read("c", says("Large Language Model (LLM)"))
        assert await graph.names() == {"LLM": 4, "text": 2}
        assert await graph.relations() == {("LLM", "writes", "text", ("a", "b"))}
        await graph.read("d", says("LLMs"))
        assert await graph.names() == {"LLM": 5, "text": 2}

    run(test)


def test_an_alias_of_a_note_names_its_concept(run: Run) -> None:
    async def test(database: Database) -> None:
        graph = Graph(database)
        await graph.notes.save([note("n", title="Ada Lovelace", aliases=("Countess",))])
        await graph.read("a", says("Ada Lovelace"))
        await graph.read("b", says("countess"))
        (concept,) = (await graph.knowledge.graph()).concepts
        assert (concept.note_count, {concept.name, *concept.aliases}) == (2, {"Ada Lovelace", "countess"})

    run(test)


def test_reading_again_replaces_what_that_note_had_said_and_nothing_else(run: Run) -> None:
    async def test(database: Database) -> None:
        graph = Graph(database)
        await graph.read("a", says("Ada", "Tea", ("Ada", "drinks", "Tea"), ("Ada", "knows", "Bob")))
        await graph.read("b", says("Ada", ("Ada", "drinks", "Tea"), ("Ada", "reads", "Books")))
        ids = {concept.name: concept.id for concept in (await graph.knowledge.graph()).concepts}
        await graph.read(note("a", "changed"), says("Ada", ("Ada", "rides", "Horse")))
        assert await graph.names() == {"Ada": 2, "Tea": 1, "Books": 1, "Horse": 1}
        assert await graph.relations() == {
            ("Ada", "drinks", "Tea", ("b",)),
            ("Ada", "reads", "Books", ("b",)),
            ("Ada", "rides", "Horse", ("a",)),
        }
        await graph.read(note("a", "back"), says("Bob"))
        after = {concept.name: concept.id for concept in (await graph.knowledge.graph()).concepts}
        assert {name: ids.get(name) for name in after} == after
        await graph.notes.delete("b")
        assert await graph.names() == {"Bob": 1}
        assert await graph.relations() == set()

    run(test)


def test_the_one_that_most_notes_name_keeps_its_id_and_no_other_takes_it(run: Run) -> None:
    async def test(database: Database) -> None:
        graph, large_name = Graph(database), "Large Language Model"
        await graph.read("a", says("LLM"))
        (before,) = await graph.knowledge.find_concepts("LLM")
        await graph.read("joins", says("Large Language Model (LLM)"))
        for at in range(3):
            await graph.read(f"n{at}", says(large_name))
        await graph.notes.delete("joins")
        (large,) = await graph.knowledge.find_concepts(large_name)
        (short,) = await graph.knowledge.find_concepts("LLM")
        assert (large.id, large.note_count) == (before.id, 3)
        assert (short.id != before.id, short.note_count) == (True, 1)
        await graph.notes.delete("a")
        await graph.read("b", says("LLM"))
        (again,) = await graph.knowledge.find_concepts("LLM")
        assert (again.id, again.note_count) == (short.id, 1)
        assert len(await graph.names()) == 2

    run(test)


def test_what_a_model_says_may_be_odd(run: Run) -> None:
    async def test(database: Database) -> None:
        graph = Graph(database)
        await graph.read(
            "a",
            says(
                "—",
                "\0",
                "x\0",
                "x\ufffd",
                "same",
                "Same",
                "same ",
                ("same", "IS", "Sames"),
                ("—", "is", "same"),
                ("new", " ", "same"),
            ),
        )
        assert set(await graph.names()) == {"x\ufffd", "Same", "new"}
        assert await graph.relations() == set()

    run(test)


def test_neighbours_keep_to_their_limits(run: Run) -> None:
    async def test(database: Database) -> None:
        graph = Graph(database)
        for number in range(3):
            await graph.read(
                f"n{number}", says(*((f"hub{number}", "to", f"leaf{leaf}") for leaf in range(20)))
            )
        await graph.read("chain", says(("hub0", "to", "x1"), ("x1", "to", "x2"), ("x2", "to", "x3")))
        (hub,) = await graph.knowledge.find_concepts("hub0")
        near = await graph.knowledge.neighbours([hub.id], hops=1, limit=8)
        assert len(near.concepts) == 8
        assert near.concepts[0] == hub
        assert all(one.source in near.concepts and one.target in near.concepts for one in near.relations)
        far = await graph.knowledge.neighbours([hub.id], hops=9, limit=100)
        names = {concept.name for concept in far.concepts}
        assert "x2" in names
        assert "x3" not in names
        assert (await graph.knowledge.neighbours(["gone"], hops=1)).concepts == ()
        assert await graph.knowledge.neighbours([], hops=1) == await graph.knowledge.neighbours(
            ["gone"], hops=2
        )

    run(test)


def test_the_graph_of_a_manas(run: Run) -> None:
    async def test(database: Database) -> None:
        graph, manases = Graph(database), SqlManasRepository(database, CountingIdentities())
        await graph.read("a", says("Ada", ("Ada", "drinks", "Tea")))
        await graph.read("b", says("Bob", ("Bob", "drinks", "Tea")))
        manas = await manases.create("M")
        await manases.add(manas.id, ["b"])
        found = await graph.knowledge.graph(manas_id=manas.id)
        assert {concept.name for concept in found.concepts} == {"Bob", "Tea"}
        assert len((await graph.knowledge.graph(limit=1)).concepts) == 1

    run(test)


def test_what_very_many_notes_name_leads_nowhere(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, knowledge = SqlNoteRepository(database), SqlKnowledgeRepository(database)
        many = [note(f"n{number:03}") for number in range(COMMON + 1)]
        await notes.save(many)
        rare = RelationClaim(source="Day", verb="has", target="Rare")
        for each in many:
            said = Extraction(
                concepts=(ConceptClaim(name="Day"),), relations=(rare,) if each.id < "n002" else ()
            )
            assert await knowledge.assert_extraction(each.id, each.content_hash, said)
        assert await knowledge.related_notes(["day"], ["n050"]) == ()
        assert await knowledge.related_notes(["rare"], ["n050"]) == ("n000", "n001")

    run(test)
