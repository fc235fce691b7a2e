"""The promises of the ports that use cases rely on, kept by the database and by the stand-ins in memory alike."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from data.database.session import Database
from data.repositories.api_keys import SqlApiKeyRepository
from data.repositories.cards import SqlCardRepository
from data.repositories.conversations import SqlConversationRepository
from data.repositories.ganas import SqlGanaRepository
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.manases import SqlManasRepository
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from domain.entities.api import ApiKey
from domain.entities.conversation import ChatMessage, Citation, Conversation
from domain.entities.gana import RUNS_PER_GANA, Gana, GanaDraft, GanaRun
from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.entities.nataraj import Card
from domain.entities.note import hash_text
from domain.errors import (
    CardNotFound,
    ConversationNotFound,
    GanaNotFound,
    InvalidRequest,
    ManasNotFound,
    MessageNotFound,
    NoteNotFound,
)
from domain.repositories.api_keys import ApiKeyRepository
from domain.repositories.cards import CardRepository
from domain.repositories.conversations import ConversationRepository
from domain.repositories.ganas import GanaRepository
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.notes import ManasRepository, NoteRepository
from domain.repositories.vectors import VectorRepository
from tests.data.conftest import BACKENDS, fresh_url
from tests.data.repositories.samples import START, at, note
from tests.memory.api_keys import MemoryApiKeys
from tests.memory.cards import MemoryCards
from tests.memory.conversations import MemoryConversations
from tests.memory.ganas import MemoryGanas
from tests.memory.identity import CountingIdentities
from tests.memory.library import MemoryLibrary


@dataclass
class Stores:
    notes: NoteRepository
    manases: ManasRepository
    vectors: VectorRepository
    knowledge: KnowledgeRepository
    conversations: ConversationRepository
    cards: CardRepository
    ganas: GanaRepository
    api_keys: ApiKeyRepository


Run = Callable[[Callable[[Stores], Coroutine[Any, Any, None]]], None]


@pytest.fixture(params=["memory", *BACKENDS])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a coroutine function on empty stores."""
    if request.param == "memory":
        library = MemoryLibrary()
        stores = Stores(
            library.notes,
            library.manases,
            library.vectors,
            library.knowledge,
            MemoryConversations(),
            MemoryCards(),
            MemoryGanas(library.notes),
            MemoryApiKeys(),
        )
        return lambda test: asyncio.run(test(stores))
    url = fresh_url(request, tmp_path, request.param)

    async def on_database(test: Callable[[Stores], Coroutine[Any, Any, None]]) -> None:
        async with Database(url) as database:
            await test(_stores(database))

    return lambda test: asyncio.run(on_database(test))


def _stores(database: Database) -> Stores:
    identities = CountingIdentities()
    return Stores(
        SqlNoteRepository(database),
        SqlManasRepository(database, identities),
        SqlVectorRepository(database),
        SqlKnowledgeRepository(database),
        SqlConversationRepository(database),
        SqlCardRepository(database),
        SqlGanaRepository(database, identities),
        SqlApiKeyRepository(database),
    )


def test_a_tag_narrows_a_search_however_many_others_fit_better(run: Run) -> None:
    async def test(stores: Stores) -> None:
        many = [note(f"n{at:03}", "sea sea sea", title="Sea") for at in range(320)]
        two = [
            note("x", "the sea, once, and much else", tags=["a_b/deep"]),
            note("y", "a sea", tags=["aXb/deep"]),
        ]
        await stores.notes.save([*many, *two])
        for each in (*many, *two):
            vector = (0.0, 1.0) if each.id in "xy" else (1.0, 0.0)
            assert await stores.vectors.store(each.id, each.content_hash, vector)
        assert [hit.note_id for hit in await stores.notes.search("sea", tag="a_b", limit=2)] == ["x"]
        assert [hit.note_id for hit in await stores.notes.search("sea", tag="a_b/deep")] == ["x"]
        assert await stores.notes.search("sea", tag="a_b/de") == ()
        manas = await stores.manases.create("M")
        assert await stores.notes.search("sea", tag="a_b", manas_id=manas.id) == ()
        nearest = await stores.vectors.nearest((1.0, 0.0), tag="a_b", limit=2)
        assert [note_id for note_id, _ in nearest] == ["x"]

    run(test)


def test_notes_are_listed_found_and_linked(run: Run) -> None:
    async def test(stores: Stores) -> None:
        notes = stores.notes
        one = note(
            "a", "apples and pears", title="Fruit", tags=["food/sweet"], links=("tree",), changed_at=at(1)
        )
        two = note("b", "oaks", title="Tree", tags=["plant"], changed_at=at(2))
        await notes.save([one, two])
        assert await notes.get("a") == one
        assert await notes.many(["b", "gone", "a"]) == (two, one)
        assert await notes.count() == 2
        assert [line.id for line in await notes.lines()] == ["b", "a"]
        assert [line.id for line in await notes.lines(tag="food")] == ["a"]
        assert await notes.tags() == {"food/sweet": 1, "plant": 1}
        assert [hit.note_id for hit in await notes.search("PEARS apples")] == ["a"]
        assert await notes.matching(["pears", "nothing", "", "oaks"]) == (("a",), (), (), ("b",))
        assert [link.target_id for link in await notes.links_from("a")] == ["b"]
        assert [(link.source_id, link.target) for link in await notes.links_to("b")] == [("a", "tree")]
        assert await notes.note_ids(None) == ("a", "b")
        await notes.delete("b")
        assert [link.target_id for link in await notes.links_from("a")] == [None]
        with pytest.raises(NoteNotFound):
            await notes.get("b")

    run(test)


def test_a_note_is_begun_and_taken_back(run: Run) -> None:
    async def test(stores: Stores) -> None:
        notes = stores.notes
        blank, written = note("a", "", title="Untitled"), note("a", "written")
        assert await notes.begin(blank)
        assert not await notes.begin(written)
        assert await notes.get("a") == blank
        assert await notes.replace(written, blank.content_hash)
        assert not await notes.take_back("a", blank.content_hash)
        assert not await notes.begin(blank)
        assert await notes.get("a") == written
        await notes.save([note("b", "", title="B", links=("a title",)), note("c", "", title="A title")])
        c = await notes.get("c")
        assert not await notes.take_back("c", c.content_hash)
        await notes.delete("b")
        manas = await stores.manases.create("M")
        await stores.manases.add(manas.id, ["c"])
        assert not await notes.take_back("c", c.content_hash)
        await stores.manases.remove(manas.id, ["c"])
        assert await notes.take_back("c", c.content_hash)
        assert await notes.many(["c"]) == ()

    run(test)


def test_new_notes_come_oldest_first_and_never_from_a_gana(run: Run) -> None:
    async def test(stores: Stores) -> None:
        await stores.notes.save(
            [
                note("a", tags=["in"], changed_at=at(3)),
                note("b", tags=["in/side"], changed_at=at(1)),
                note("c", tags=["in"], changed_at=at(2), source="gana"),
                note("d", changed_at=at(4)),
                note("e", tags=["in", "in/side", "inside"], changed_at=at(5)),
            ]
        )

        async def new(after: int | None, limit: int = 9, **more: Any) -> list[str]:
            found = await stores.notes.arrived_since(after, tag="in", manas_id=None, limit=limit, **more)
            return [arrival.note.id for arrival in found]

        assert await new(None) == ["a", "b", "e"]
        first, *_ = await stores.notes.arrived_since(None, tag="in", manas_id=None, limit=9)
        assert await new(first.number) == ["b", "e"]
        assert await new(None, limit=2) == ["a", "b"]
        assert await new(None, changed=(at(1), at(9_999))) == ["a", "e"]
        assert await new(None, changed=(at(1), at(1))) == []

    run(test)


def test_a_note_is_new_to_a_tag_or_a_manas_once(run: Run) -> None:
    async def test(stores: Stores) -> None:
        notes = stores.notes
        manas = await stores.manases.create("Work")

        async def new() -> tuple[list[str], list[str]]:
            of_tag = await notes.arrived_since(seen, tag="in", manas_id=None, limit=9)
            of_manas = await notes.arrived_since(seen, tag=None, manas_id=manas.id, limit=9)
            return [each.note.id for each in of_tag], [each.note.id for each in of_manas]

        await notes.save([note("a", tags=["in"]), note("b"), note("c", tags=["in/side"])])
        await stores.manases.add(manas.id, ["a"])
        seen = await notes.last_arrival()
        # Edits, also such as take the tag away and bring it back, or name it otherwise.
        await notes.save([note("a", "other text", tags=["in"])])
        await notes.save([note("a"), note("c", tags=["in"])])
        await notes.save([note("a", tags=["in", "more"])])
        await stores.manases.remove(manas.id, ["a"])
        await stores.manases.add(manas.id, ["a"])
        assert await new() == ([], [])
        await notes.save([note("b", "a text", tags=["in"])])
        await stores.manases.add(manas.id, ["a", "b"])
        assert await new() == (["b"], ["b"])
        await notes.save([note("b", "a text")])
        await stores.manases.remove(manas.id, ["b"])
        assert await new() == ([], []), "it has gone again"

    run(test)


def test_arrivals_are_numbered_in_the_order_in_which_they_can_be_seen(run: Run) -> None:
    async def test(stores: Stores) -> None:
        notes = stores.notes

        async def unread(after: int | None) -> list[str]:
            found = await notes.arrived_since(after, tag="in", manas_id=None, limit=9)
            return [arrival.note.id for arrival in found]

        before = await notes.last_arrival()
        await notes.save([note("young", tags=["in"], changed_at=at(9))])
        seen = await notes.last_arrival()
        # Its transaction ends later, although its time is earlier.
        late = [note(f"late-{number}", tags=["in"], changed_at=at(number)) for number in (1, 2)]
        await notes.save(late)
        assert await unread(before) == ["young", "late-1", "late-2"]
        assert await unread(seen) == ["late-1", "late-2"]

    run(test)


def test_a_manas_is_a_set_of_notes(run: Run) -> None:
    async def test(stores: Stores) -> None:
        manases = stores.manases
        await stores.notes.save([note("a"), note("b"), note("c")])
        work = await manases.create("Work")
        assert (work.name, work.note_count) == ("Work", 0)
        with pytest.raises(InvalidRequest, match="already"):
            await manases.create("Work")
        await manases.add(work.id, ["a", "b"])
        await manases.add("Work", ["b", "c"])
        await manases.remove(work.id, ["a", "gone"])
        assert await manases.get("Work") == work.model_copy(update={"note_count": 2})
        assert await stores.notes.note_ids(work.id) == ("b", "c")
        await stores.notes.delete("b")
        await manases.create("Art")
        assert [(m.name, m.note_count) for m in await manases.all()] == [("Art", 0), ("Work", 1)]
        await manases.delete("Work")
        with pytest.raises(ManasNotFound):
            await manases.get(work.id)
        assert await stores.notes.count() == 2

    run(test)


def test_vectors_wait_are_stored_and_found(run: Run) -> None:
    async def test(stores: Stores) -> None:
        vectors = stores.vectors
        one, two = note("a", "body", title="Title", changed_at=at(1)), note("b", changed_at=at(2))
        await stores.notes.save([two, one])
        assert await vectors.waiting(1) == (("b", two.content_hash, "b\ntext"),)
        assert [waiting[0] for waiting in await vectors.waiting(9)] == ["b", "a"]
        assert [waiting[0] for waiting in await vectors.waiting(1, oldest=True)] == ["a"]
        assert await vectors.waiting_count() == 2
        assert await vectors.store("a", one.content_hash, [2.0, 0.0])
        assert await vectors.store("b", two.content_hash, [1.0, 1.0])
        assert not await vectors.store("b", "older", [0.0, 1.0])
        assert not await vectors.store("gone", "x", [0.0, 1.0])
        assert await vectors.waiting_count() == 0
        found = await vectors.nearest([1.0, 0.0])
        assert [note_id for note_id, _ in found] == ["a", "b"]
        assert [cosine for _, cosine in found] == pytest.approx([1.0, 0.5**0.5], abs=1e-6)
        assert [note_id for note_id, _ in await vectors.nearest([1.0, 0.0], limit=1)] == ["a"]
        manas = await stores.manases.create("M")
        await stores.manases.add(manas.id, ["b"])
        assert [note_id for note_id, _ in await vectors.nearest([1.0, 0.0], manas_id=manas.id)] == ["b"]
        await stores.notes.save([note("b", "new", changed_at=at(3))])
        assert [waiting[0] for waiting in await vectors.waiting(9)] == ["b"]
        await stores.notes.delete("a")
        assert [note_id for note_id, _ in await vectors.nearest([1.0, 0.0])] == ["b"]

    run(test)


def test_a_note_without_text_is_not_found_by_meaning(run: Run) -> None:
    async def test(stores: Stores) -> None:
        written = [note("a", ""), note("b", " \n\t\u00a0\n"), note("c", "text")]
        await stores.notes.save(written)
        for one, vector in zip(written, ([1.0, 0.0], [1.0, 0.0], [1.0, 1.0]), strict=True):
            assert await stores.vectors.store(one.id, one.content_hash, vector)
        assert await stores.vectors.waiting_count() == 0
        for limit in (2, 10):
            found = await stores.vectors.nearest([1.0, 0.0], limit=limit)
            assert [note_id for note_id, _ in found] == ["c"]

    run(test)


def test_texts_that_were_written_here(run: Run) -> None:
    async def test(stores: Stores) -> None:
        await stores.notes.save(
            [
                note("a", "one\n", title="First"),
                note("b", " one"),
                note("c", "two \U0001f331", source="gana"),
                note("d", "three", source="imported", origin="/d.md"),
                note("e", "\n"),
            ]
        )
        assert await stores.notes.written_here() == {
            hash_text("one"): ("a", "First"),
            hash_text("two \U0001f331"): ("c", "c"),
        }

    run(test)


def test_pending_notes_are_read_or_given_up(run: Run) -> None:
    async def test(stores: Stores) -> None:
        knowledge = stores.knowledge
        one, two = note("a", changed_at=at(1)), note("b", changed_at=at(2))
        await stores.notes.save([one, two])
        # Also where the older one comes later, as from an import.
        await stores.notes.save([note("old", source="imported", origin="/old.md", changed_at=at(0))])
        assert [pending.note_id for pending in await knowledge.pending(9)] == ["b", "a", "old"]
        assert [pending.note_id for pending in await knowledge.pending(2, oldest=True)] == ["old", "a"]
        await stores.notes.delete("old")
        for attempt in (1, 2):
            await knowledge.fail("a", one.content_hash, f"error {attempt}", give_up_after=2)
        await knowledge.fail("b", "older", "late", give_up_after=1)
        assert await knowledge.pending_counts() == {"waiting": 1, "failed": 1}
        assert [pending.note_id for pending in await knowledge.pending(9)] == ["b"]
        (failed,) = await knowledge.failures()
        assert (failed.note_id, failed.attempts, failed.error, failed.state) == ("a", 2, "error 2", "failed")
        assert await knowledge.retry(["b"]) == 0
        assert await knowledge.retry() == 1
        again = await knowledge.pending_of("a")
        assert again is not None
        assert (again.state, again.attempts, again.error) == ("waiting", 0, None)
        assert not await knowledge.assert_extraction("a", "older", Extraction())
        assert await knowledge.assert_extraction("a", one.content_hash, Extraction(summary="s"))
        assert await knowledge.pending_of("a") is None
        assert await knowledge.summary("a") == "s"
        assert await knowledge.summary("b") is None

    run(test)


def test_the_graph_holds_what_notes_assert(run: Run) -> None:
    async def test(stores: Stores) -> None:
        knowledge = stores.knowledge
        one, two = note("a"), note("b")
        await stores.notes.save([one, two])
        ada = Extraction(
            concepts=(ConceptClaim(name="Ada", type="person"), ConceptClaim(name="Engine")),
            relations=(RelationClaim(source="Ada", verb="programs", target="Engine"),),
        )
        tea = Extraction(
            concepts=(ConceptClaim(name="Ada", type="person"), ConceptClaim(name="Tea")),
            relations=(RelationClaim(source="Ada", verb="drinks", target="Tea"),),
            summary="of tea",
        )
        assert await knowledge.assert_extraction("a", one.content_hash, ada)
        assert await knowledge.assert_extraction("b", two.content_hash, tea)
        (found,) = await knowledge.find_concepts("ada")
        assert (found.name, found.type, found.note_count) == ("Ada", "person", 2)
        assert {concept.name for concept in await knowledge.concepts_of(["b"])} == {"Ada", "Tea"}
        assert await knowledge.notes_naming([found.id], 9) == ("a", "b")
        (tea_concept,) = await knowledge.find_concepts("tea")
        near = await knowledge.neighbours([tea_concept.id], hops=1)
        assert {concept.name for concept in near.concepts} == {"Ada", "Tea"}
        far = await knowledge.neighbours([tea_concept.id], hops=2)
        assert {concept.name for concept in far.concepts} == {"Ada", "Tea", "Engine"}
        said = {(r.source.name, r.verb, r.target.name, r.note_ids) for r in far.relations}
        assert said == {("Ada", "programs", "Engine", ("a",)), ("Ada", "drinks", "Tea", ("b",))}
        whole = await knowledge.graph()
        assert whole.concepts[0].name == "Ada"
        assert await knowledge.summaries(["b", "gone"]) == {"b": "of tea"}
        (drinks,) = await knowledge.relations_of(["b"])
        assert (drinks.source.name, drinks.verb, drinks.target.name) == ("Ada", "drinks", "Tea")
        assert drinks.note_ids == ("b",)
        assert await knowledge.related_notes(["Tea"], []) == ("a", "b")  # each names two of three
        assert await knowledge.related_notes([], ["b"], limit=1) == ("a",)
        assert await knowledge.related_notes(["nothing"], []) == ()
        inside = await stores.manases.create("Inside")
        await stores.manases.add(inside.id, ["a"])
        assert await knowledge.related_notes(["Tea"], [], manas_id=inside.id) == ("a",)
        await stores.notes.delete("b")
        assert {concept.name for concept in (await knowledge.graph()).concepts} == {"Ada", "Engine"}

    run(test)


def test_names_of_concepts_compare_as_searches_do(run: Run) -> None:
    """Without case, accents and other ways of writing the same characters, and as the databases keep them."""

    async def test(stores: Stores) -> None:
        knowledge = stores.knowledge
        said = {
            "a": (("Ⅷ", "Café", "Nul\0l", "Tea house"), ("Ⅷ", "\0is", "Café")),
            "b": (("VIII", "cafe", "Nul\ufffdl", "Tea house"), ("Nul\0l", " ", "Café")),
            "c": (("Tea",), ("Tea", "is", "tea")),
        }
        for note_id, (names, (source, verb, target)) in said.items():
            written = note(note_id)
            await stores.notes.save([written])
            extraction = Extraction(
                concepts=tuple(ConceptClaim(name=name, type="odd\0") for name in names),
                relations=(RelationClaim(source=source, verb=verb, target=target),),
                summary="all\0 of it",
            )
            assert await knowledge.assert_extraction(note_id, written.content_hash, extraction)
        found = {concept.name: concept for concept in (await knowledge.graph()).concepts}
        assert {name: (one.aliases, one.note_count) for name, one in found.items()} == {
            "VIII": ((), 2),
            "Café": ((), 2),
            "Nul\ufffdl": ((), 2),
            "Tea house": ((), 2),
            "Tea": ((), 1),
        }
        assert {one.type for one in found.values()} == {"odd\ufffd"}
        for asked, name in (("ⅷ", "VIII"), ("CAFÉ", "Café"), ("af", "Café"), ("nul\0L", "Nul\ufffdl")):
            assert [one.name for one in await knowledge.find_concepts(asked)] == [name]
            assert (len(await knowledge.related_notes([asked], [])) == 2) == (asked != "af")
        assert [one.name for one in await knowledge.find_concepts("teas")] == ["Tea", "Tea house"]
        (relation,) = (await knowledge.graph()).relations
        assert (relation.source.name, relation.verb, relation.target.name) == ("VIII", "\ufffdis", "Café")
        assert await knowledge.summary("a") == "all\ufffd of it"

    run(test)


def _message(message_id: str, parent: str | None, seconds: float, **fields: Any) -> ChatMessage:
    return ChatMessage(
        id=message_id,
        conversation_id="c1",
        parent_id=parent,
        role=fields.pop("role", "user"),
        content=fields.pop("content", message_id),
        created_at=at(seconds),
        **fields,
    )


def _conversation(conversation_id: str, seconds: float, title: str = "") -> Conversation:
    return Conversation(id=conversation_id, title=title, created_at=at(seconds), changed_at=at(seconds))


def test_conversations_branch(run: Run) -> None:
    async def test(stores: Stores) -> None:
        chats = stores.conversations
        await chats.create(_conversation("c1", 0))
        answer = _message(
            "m2",
            "m1",
            2,
            role="assistant",
            thinking="hm",
            model="m",
            state="streaming",
            citations=(Citation(number=1, note_id="n", title="N"),),
        )
        for message in (_message("m1", None, 4), answer, _message("m3", "m1", 3)):
            await chats.put_message(message)  # the first is from before the clock was set back
        assert [message.id for message in await chats.messages("c1")] == ["m1", "m2", "m3"]
        assert [message.id for message in await chats.path("m3")] == ["m1", "m3"]
        assert (await chats.path("m2"))[1] == answer
        assert (await chats.get("c1")).leaf_id == "m3"
        assert (await chats.get("c1")).changed_at == at(4)
        whole = answer.model_copy(update={"state": "complete", "content": "whole"})
        await chats.put_message(whole)
        assert [message.id for message in await chats.messages("c1")] == ["m1", "m2", "m3"]
        assert (await chats.path("m2"))[1] == whole
        assert (await chats.get("c1")).leaf_id == "m3"
        with pytest.raises(MessageNotFound):
            await chats.path("gone")
        with pytest.raises(ConversationNotFound):
            await chats.put_message(_message("m4", None, 4).model_copy(update={"conversation_id": "gone"}))

    run(test)


def test_conversations_are_listed_found_changed_and_deleted(run: Run) -> None:
    async def test(stores: Stores) -> None:
        chats = stores.conversations
        await chats.create(_conversation("c1", 0, "Bridges"))
        await chats.create(_conversation("c22", 1, "100% sure_"))
        await chats.create(_conversation("c23", 2))
        await chats.put_message(_message("m1", None, 5, content="Where is Königsberg?"))
        assert [c.id for c in await chats.list()] == ["c1", "c23", "c22"]
        assert [c.id for c in await chats.list(limit=1, offset=1)] == ["c23"]
        assert [c.id for c in await chats.search("königsberg")] == ["c1"]
        assert [c.id for c in await chats.search("BRIDGE")] == ["c1"]
        assert [c.id for c in await chats.search("100%")] == ["c22"]
        assert await chats.search("s_re") == ()
        assert (await chats.get("c22")).title == "100% sure_"
        assert (await chats.get("c1")).id == "c1"
        for unclear in ("c2", "x", ""):
            with pytest.raises(ConversationNotFound):
                await chats.get(unclear)
        changed = (await chats.get("c23")).model_copy(update={"title": "T", "model": "m", "manas_id": "k"})
        await chats.update(changed)
        assert await chats.get("c23") == changed
        await chats.delete("c1")
        with pytest.raises(ConversationNotFound):
            await chats.messages("c1")
        with pytest.raises(ConversationNotFound):
            await chats.update(_conversation("c1", 0))
        with pytest.raises(MessageNotFound):
            await chats.path("m1")

    run(test)


def test_every_change_gives_a_conversation_another_version(run: Run) -> None:
    async def test(stores: Stores) -> None:
        chats = stores.conversations
        await chats.create(_conversation("c1", 0))
        await chats.create(_conversation("c2", 0))
        seen = [await chats.version("c1")]
        half = _message("m2", "m1", 2, role="assistant", state="streaming", content="half an")
        for message in (
            _message("m1", None, 1),
            half,
            half.model_copy(update={"content": "half an answer"}),
            half.model_copy(update={"content": "half an answer", "thinking": "hm"}),
            half.model_copy(update={"content": "half an answer", "thinking": "hm", "state": "complete"}),
        ):
            await chats.put_message(message)
            seen.append(await chats.version("c1"))
        conversation = await chats.get("c1")
        for change in ({"title": "Another"}, {"leaf_id": "m1"}, {"model": "tiny"}):
            await chats.update(conversation.model_copy(update=change))
            seen.append(await chats.version("c1"))
        assert len(set(seen)) == len(seen)
        await chats.put_message(_message("n1", None, 3).model_copy(update={"conversation_id": "c2"}))
        assert await chats.version("c1") == seen[-1]
        with pytest.raises(ConversationNotFound):
            await chats.version("none")

    run(test)


def test_answers_that_were_cut_off_are_settled(run: Run) -> None:
    async def test(stores: Stores) -> None:
        chats = stores.conversations
        await chats.create(_conversation("c1", 0))
        await chats.put_message(_message("m1", None, 1))
        await chats.put_message(
            _message("m2", "m1", 2, role="assistant", state="streaming", content="half an")
        )
        assert list(await chats.settle_streaming()) == ["m2"]
        assert list(await chats.settle_streaming()) == []
        (_, answer) = await chats.messages("c1")
        assert (answer.state, answer.content) == ("stopped", "half an")

    run(test)


def _card(card_id: str, *note_ids: str, **fields: Any) -> Card:
    given = {"scope": "all", "text": "t", "state": "buffered", "created_at": START, **fields}
    return Card(id=card_id, note_ids=note_ids, **given)


def test_a_combination_has_one_live_card(run: Run) -> None:
    async def test(stores: Stores) -> None:
        cards = stores.cards
        assert await cards.put(_card("1", "a", "b"))
        assert not await cards.put(_card("2", "a", "b"))
        assert await cards.put(_card("3", "a", "b", scope="m"))
        assert await cards.put(_card("4", "a", "b", "c", created_at=at(1)))
        assert [card.id for card in await cards.list("all", "buffered")] == ["1", "4"]
        assert (await cards.set_state("1", "dropped")).state == "dropped"
        assert await cards.used_combinations("all", with_dropped=True) == {("a", "b"), ("a", "b", "c")}
        assert await cards.used_combinations("all", with_dropped=False) == {("a", "b", "c")}
        assert await cards.put(_card("5", "a", "b"))
        with pytest.raises(CardNotFound):
            await cards.get("1")
        kept = await cards.set_state("4", "kept", "n1")
        assert await cards.get("4") == kept
        assert kept.note_id == "n1"
        assert await cards.set_state("4", "dropped", was="buffered") == kept
        assert (await cards.set_state("4", "kept", "n1", was="kept")) == kept
        with pytest.raises(CardNotFound):
            await cards.set_state("gone", "kept")
        counts = await cards.counts("all")
        assert {state: counts.get(state, 0) for state in ("buffered", "kept", "dropped")} == {
            "buffered": 1,
            "kept": 1,
            "dropped": 0,
        }

    run(test)


def test_buffered_cards_of_deleted_notes_go(run: Run) -> None:
    async def test(stores: Stores) -> None:
        cards = stores.cards
        for card in (_card("1", "a", "b"), _card("2", "b", "c"), _card("3", "a", "c", state="kept")):
            assert await cards.put(card)
        await cards.forget_notes(["a", "gone"])
        assert [card.id for card in await cards.list("all", "buffered")] == ["2"]
        assert [card.id for card in await cards.list("all", "kept")] == ["3"]

    run(test)


def gana(gana_id: str, due: float | None, **fields: Any) -> Gana:
    draft = GanaDraft(name=fields.pop("name", gana_id), task="t", interval_minutes=5)
    due_at = None if due is None else at(due)
    return Gana(id=gana_id, draft=draft, due_at=due_at, created_at=START, **{"enabled": True, **fields})


def gana_run(run_id: str, gana_id: str = "g", **fields: Any) -> GanaRun:
    return GanaRun(
        **{
            "id": run_id,
            "gana_id": gana_id,
            "due_at": None,
            "status": "succeeded",
            "started_at": START,
            **fields,
        }
    )


def test_due_ganas_come_longest_overdue_first(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        for one in (gana("a", 5), gana("b", 1), gana("c", 20), gana("d", None), gana("e", 0, enabled=False)):
            await ganas.put(one)
        assert [one.id for one in await ganas.due(at(10), 9)] == ["b", "a"]
        assert [one.id for one in await ganas.due(at(10), 1)] == ["b"]
        assert [one.id for one in await ganas.all()] == ["a", "b", "c", "d", "e"]
        assert (await ganas.get("c")) == gana("c", 20)
        await ganas.put(gana("x", None, name="Named"))
        assert (await ganas.get("Named")).id == "x"
        await ganas.delete("x")
        for gone in (ganas.get, ganas.delete):
            with pytest.raises(GanaNotFound):
                await gone("x")

    run(test)


def test_a_due_time_is_claimed_once_and_completed_once(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        await ganas.put(gana("g", 0))
        tick = await ganas.claim("g", at(0), at(300), by="app", now=at(1))
        assert tick is not None
        assert await ganas.claim("g", at(0), at(300), by="background", now=at(1)) is None
        assert await ganas.claim("g", at(300), at(600), by="background", now=at(1)) is None
        assert await ganas.claim("g", None, None, by="app", now=at(1)) is None
        assert await ganas.due(at(1), 9) == ()
        # On another machine, whose clock is behind.
        assert await ganas.claim("g", at(0), at(300), by="app", now=at(0)) is None
        assert await ganas.due(at(0), 9) == ()
        assert (await ganas.get("g")).due_at == at(300)
        assert await ganas.renew(tick, at(30))
        run_ = gana_run(
            "r", due_at=at(0), output="o", input_note_ids=("n",), output_note_id="out", seconds=1.5, tokens=3
        )
        published = note("out", "from a Gana", source="gana", tags=["out"])
        assert await ganas.complete(tick, run_, cursor=7, publish=published)
        assert not await ganas.complete(tick, gana_run("r2"), cursor=9, publish=note("twice"))
        assert await ganas.runs() == (run_,)
        assert (await ganas.get("g")).cursor == 7
        assert await stores.notes.note_ids(None) == ("out",)
        assert not await ganas.renew(tick, at(31))
        await ganas.release(tick)
        assert (await ganas.get("g")).due_at == at(300)

    run(test)


def test_a_released_tick_is_due_again(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        await ganas.put(gana("g", 0))
        tick = await ganas.claim("g", at(0), at(300), by="app", now=at(1))
        assert tick is not None
        await ganas.release(tick)
        assert [one.due_at for one in await ganas.due(at(1), 9)] == [at(0)]
        assert await ganas.claim("g", at(0), at(300), by="background", now=at(1)) is not None

    run(test)


def test_the_tick_of_a_dead_process_is_taken_over(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        await ganas.put(gana("g", 0))
        lost = await ganas.claim("g", at(0), at(86_400), by="app", now=at(1))
        assert lost is not None
        assert await ganas.due(at(50), 9) == ()
        (left,) = await ganas.due(at(4_000), 9)
        assert left.due_at == at(0)
        taken = await ganas.claim("g", at(0), at(86_400), by="background", now=at(4_000))
        assert taken is not None
        assert not await ganas.renew(lost, at(4_001))
        assert not await ganas.complete(lost, gana_run("r1"), cursor=None, publish=note("lost"))
        assert await ganas.complete(taken, gana_run("r2"), cursor=None, publish=note("taken"))
        assert await stores.notes.note_ids(None) == ("taken",)

    run(test)


@pytest.mark.parametrize("enabled", [True, False])
def test_an_abandoned_tick_is_in_nobodys_way_and_is_not_lost(run: Run, enabled: bool) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        await ganas.put(gana("g", 0))
        assert await ganas.claim("g", at(0), at(86_400), by="app", now=at(1)) is not None
        await ganas.put((await ganas.get("g")).model_copy(update={"enabled": enabled}))
        assert await ganas.claim("g", None, None, by="app", now=at(30)) is None
        now = await ganas.claim("g", None, None, by="app", now=at(4_000))
        assert now is not None
        assert await ganas.complete(now, gana_run("r"), cursor=None, publish=None)
        assert [one.due_at for one in await ganas.due(at(4_001), 9)] == ([at(0)] if enabled else [])

    run(test)


def test_a_run_outside_the_calendar_keeps_the_due_time(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        await ganas.put(gana("g", 300, enabled=False))
        tick = await ganas.claim("g", None, None, by="app", now=at(1))
        assert tick is not None
        assert await ganas.claim("g", None, None, by="app", now=at(1)) is None
        assert await ganas.complete(tick, gana_run("r"), cursor=None, publish=None)
        again = await ganas.claim("g", None, None, by="app", now=at(2))
        assert again is not None
        await ganas.release(again)
        assert await ganas.get("g") == gana("g", 300, enabled=False)
        assert await ganas.complete(None, gana_run("r2"), cursor=1, publish=None)
        assert (await ganas.get("g")).cursor == 1

    run(test)


def test_a_manual_run_of_a_dead_process_holds_up_nothing(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        await ganas.put(gana("g", 10))
        assert await ganas.claim("g", None, None, by="app", now=at(1)) is not None
        assert await ganas.due(at(20), 9) == ()
        assert [one.due_at for one in await ganas.due(at(4_000), 9)] == [at(10)]
        assert await ganas.claim("g", at(10), None, by="background", now=at(4_000)) is not None

    run(test)


def test_a_run_whose_end_could_not_be_logged_is_cancelled_by_the_next(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        for name in ("g", "h"):
            await ganas.put(gana(name, None))
            assert await ganas.claim(name, None, None, by="app", now=at(1)) is not None
            await ganas.put_run(gana_run(f"of {name}", name, status="running", started_at=at(1)))
        assert await ganas.claim("g", None, None, by="app", now=at(30)) is None
        assert [one.status for one in await ganas.runs()] == ["running", "running"]
        assert await ganas.claim("g", None, None, by="app", now=at(90)) is not None
        ended = {one.id: (one.status, one.reason) for one in await ganas.runs()}
        assert ended == {"of g": ("failed", "cancelled"), "of h": ("running", None)}

    run(test)


def test_the_log_is_pruned_and_settled(run: Run) -> None:
    async def test(stores: Stores) -> None:
        ganas = stores.ganas
        await ganas.put(gana("g", None))
        await ganas.put(gana("h", None))
        for number in range(RUNS_PER_GANA + 3):
            await ganas.put_run(gana_run(f"r{number}", started_at=at(9 - number)))  # the clock is set back
        await ganas.put_run(gana_run("h1", "h", status="running", started_at=at(50)))
        await ganas.put_run(gana_run("h2", "h", status="running", started_at=at(51), by="background"))
        runs = await ganas.runs("g")
        assert [one.id for one in runs] == [f"r{number}" for number in reversed(range(3, RUNS_PER_GANA + 3))]
        assert await ganas.settle_running(at(60), by="app") == 1
        settled = {one.id: (one.status, one.reason) for one in await ganas.runs("h")}
        assert settled == {"h1": ("failed", "cancelled"), "h2": ("running", None)}
        assert [one.id for one in await ganas.runs(limit=2)] == ["h2", "h1"]
        await ganas.delete("h")
        assert await ganas.runs("h") == ()

    run(test)


def test_api_keys_are_found_by_their_hash_until_they_are_deleted(run: Run) -> None:
    async def test(stores: Stores) -> None:
        keys = stores.api_keys
        one = ApiKey(
            id="k1", name="editor", hash="aa", kind="gana", weight=2.5, per_minute=7, created_at=at(1)
        )
        two = ApiKey(id="k2", name="script", hash="bb", created_at=at(2))
        assert await keys.add(one)
        assert await keys.add(two)
        assert not await keys.add(one.model_copy(update={"id": "k3", "hash": "cc"}))
        assert await keys.list() == (one, two)
        assert await keys.by_hash("aa") == one
        assert await keys.by_hash("zz") is None
        await keys.delete("k1")
        await keys.delete("k1")
        assert await keys.by_hash("aa") is None
        assert await keys.list() == (two,)

    run(test)


def test_a_file_of_a_deleted_note_is_remembered_until_it_is_imported_again(run: Run) -> None:
    async def test(stores: Stores) -> None:
        notes = stores.notes
        long = "/vault/" + "x" * 3_900 + ".md"
        for origin in (long, "/vault/b.md"):
            await notes.save([note("a", source="imported", origin=origin, origin_mark="mark")])
            await notes.delete("a")
        await notes.save([note("c", origin="/vault/c.md")])
        await notes.delete("c")
        assert await notes.deleted_origins() == {long: "mark", "/vault/b.md": "mark"}
        await notes.save([note("d", source="imported", origin=long)])
        assert await notes.deleted_origins() == {"/vault/b.md": "mark"}
        await notes.delete("d", again=True)
        assert await notes.deleted_origins() == {"/vault/b.md": "mark"}

    run(test)
