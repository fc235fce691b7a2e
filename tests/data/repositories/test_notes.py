"""Notes in both databases."""

import asyncio

import pytest

from data.database.session import Database
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.manases import SqlManasRepository
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from domain.entities.knowledge import ConceptClaim, Extraction
from domain.errors import InvalidRequest, NoteNotFound
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import at, note
from tests.memory.identity import CountingIdentities


def test_a_note_comes_back_equal(run: Run) -> None:
    written = note(
        "a",
        "Text with “quotes”, 日本語, 🎈 and a\ttab\n",
        title="Ünïcode",
        tags=["plan/next", "b"],
        aliases=("Other", "ünïcode"),
        links=("Target", "folder/Other"),
        source="imported",
        origin="/vault/Ünïcode.md",
        origin_mark="mtime 12",
        created_at=at(-1.000001),
        changed_at=at(0.123456),
    )

    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save([written])
        assert await notes.get("a") == written
        assert await notes.by_origin(["/vault/Ünïcode.md", "/gone"]) == {"/vault/Ünïcode.md": written}
        origin = (await notes.imported_origins())["/vault/Ünïcode.md"]
        assert (origin.note_id, origin.content_hash, origin.mark) == ("a", written.content_hash, "mtime 12")

    run(test)


def test_what_no_database_keeps_is_replaced_and_the_rest_is_saved(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        # A half of a surrogate pair has no hash: it comes as it would from a careless caller.
        broken = note("a", "text").model_copy(
            update={"text": "nul \0 and half \ud83d end", "aliases": ("x\0y",), "links": ("\udc00",)}
        )
        await notes.save([broken])
        read = await notes.get("a")
        assert read.text == "nul \ufffd and half \ufffd end"
        assert (read.aliases, read.links) == (("x\ufffdy",), ("\ufffd",))

    run(test)


def test_replacing_a_note_replaces_all_of_it(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save([note("a", "apple", tags=["x", "y"], links=("b",), aliases=("one",))])
        await notes.save([note("a", "pear", tags=["y"], links=("c", "d"), aliases=("two",)), note("b")])
        assert (await notes.get("a")).text == "pear"
        assert await notes.tags() == {"y": 1}
        assert [link.target for link in await notes.links_from("a")] == ["c", "d"]
        assert await notes.links_to("b") == ()
        assert await notes.search("apple") == ()
        assert [hit.note_id for hit in await notes.search("pear")] == ["a"]
        assert await notes.count() == 2

    run(test)


def test_a_file_is_imported_once_even_by_two_processes(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        one = note("a", source="imported", origin="/v/one.md")
        await notes.save([one])
        await notes.save([one, note("b", source="imported", origin="/v/two.md")])
        await notes.save([note("typed", origin="/v/one.md")])
        with pytest.raises(InvalidRequest, match=r"/v/one\.md was imported by another process"):
            await notes.save([note("c"), note("d", source="imported", origin="/v/one.md")])
        assert await notes.note_ids(None) == ("a", "b", "typed")

    run(test)


def test_only_changed_content_is_queued(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, vectors, knowledge = (
            SqlNoteRepository(database),
            SqlVectorRepository(database),
            SqlKnowledgeRepository(database),
        )
        one, two = note("a", changed_at=at(2)), note("b", changed_at=at(1))
        await notes.save([one, two])
        assert [waiting[0] for waiting in await vectors.waiting(10)] == ["a", "b"]
        assert [waiting.note_id for waiting in await knowledge.pending(10)] == ["a", "b"]
        assert await vectors.store("a", one.content_hash, [1.0, 0.0])
        assert await knowledge.assert_extraction("a", one.content_hash, Extraction())
        await notes.save([one.model_copy(update={"origin_mark": "new"})])
        assert [waiting[0] for waiting in await vectors.waiting(10)] == ["b"]
        assert [waiting.note_id for waiting in await knowledge.pending(10)] == ["b"]
        await notes.save(
            [note("a", "new", changed_at=at(3)), note("b", "new", changed_at=at(3))], extract=False
        )
        assert await vectors.waiting_count() == 2
        (pending,) = await knowledge.pending(10)
        assert (pending.note_id, pending.content_hash) == ("b", note("b", "new").content_hash)

    run(test)


def test_deleting_takes_everything_that_hangs_on_a_note(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, vectors, knowledge = (
            SqlNoteRepository(database),
            SqlVectorRepository(database),
            SqlKnowledgeRepository(database),
        )
        manases = SqlManasRepository(database, CountingIdentities())
        one = note("a", "apple", tags=["x"], links=("b",))
        await notes.save([one, note("b", links=("a",))])
        manas = await manases.create("M")
        await manases.add(manas.id, ["a", "b"])
        await vectors.store("a", one.content_hash, [1.0, 0.0])
        said = Extraction(concepts=(ConceptClaim(name="Apple"),), summary="s")
        assert await knowledge.assert_extraction("a", one.content_hash, said)
        assert [hit for hit, _ in await vectors.nearest([1.0, 0.0])] == ["a"]
        await notes.delete("a")
        with pytest.raises(NoteNotFound, match="no note a"):
            await notes.get("a")
        with pytest.raises(NoteNotFound):
            await notes.delete("a")
        assert await notes.search("apple") == ()
        assert await notes.tags() == {}
        assert await vectors.nearest([1.0, 0.0]) == ()
        assert await knowledge.find_concepts("Apple") == ()
        assert await knowledge.summary("a") is None
        assert (await manases.get("M")).note_count == 1
        assert [link.target_id for link in await notes.links_from("b")] == [None]

    run(test)


def test_lists_by_tag_and_manas_newest_first(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, manases = SqlNoteRepository(database), SqlManasRepository(database, CountingIdentities())
        await notes.save(
            [
                note("a", tags=["work"], changed_at=at(1)),
                note("b", "12345", tags=["work/plan"], changed_at=at(3)),
                note("c", tags=["workshop"], changed_at=at(2)),
                note("d", tags=["work_x"], changed_at=at(4), source="gana"),
            ]
        )
        manas = await manases.create("M")
        await manases.add(manas.id, ["a", "c", "d"])
        assert [line.id for line in await notes.lines()] == ["d", "b", "c", "a"]
        assert [line.id for line in await notes.lines(limit=2, offset=1)] == ["b", "c"]
        assert [(line.id, line.characters) for line in await notes.lines(tag="work")] == [("b", 5), ("a", 4)]
        assert [line.id for line in await notes.lines(tag="work", manas_id=manas.id)] == ["a"]
        assert await notes.lines(tag="wor_") == ()
        assert await notes.tags() == {"work": 1, "work/plan": 1, "work_x": 1, "workshop": 1}
        assert await notes.note_ids(manas.id) == ("a", "c", "d")
        assert await notes.note_ids(None) == ("a", "b", "c", "d")
        new = await notes.arrived_since(None, tag="work", manas_id=None, limit=10)
        assert [one.note.id for one in new] == ["a", "b"]
        new = await notes.arrived_since(new[0].number, tag="work", manas_id=None, limit=10)
        assert [one.note.id for one in new] == ["b"]
        new = await notes.arrived_since(None, tag=None, manas_id=manas.id, limit=1)
        assert [one.note.id for one in new] == ["a"]

    run(test)


def test_a_reader_passes_over_nothing_while_two_processes_write(url: str) -> None:
    async def main() -> None:
        async with Database(url) as one, Database(url) as other, Database(url) as third:
            reader = SqlNoteRepository(third)

            async def write(database: Database, name: str) -> None:
                for number in range(25):
                    # The younger ones, by the clock, come first.
                    batch = [
                        note(f"{name}{number}-{n}", tags=["in"], changed_at=at(-number)) for n in range(4)
                    ]
                    await SqlNoteRepository(database).save(batch)

            writing = asyncio.gather(write(one, "a"), write(other, "b"))
            cursor: int | None = None
            read: list[str] = []
            while True:
                done = writing.done()
                found = await reader.arrived_since(cursor, tag="in", manas_id=None, limit=7)
                read += [arrival.note.id for arrival in found]
                cursor = found[-1].number if found else cursor
                if done and not found:
                    break
            await writing
            assert len(read) == len(set(read)) == 200

    asyncio.run(main())


def test_links_mean_what_a_reader_would_take_them_for(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save(
            [
                note(
                    "from",
                    title="From",
                    links=("target", "Second Name", "b/Twin", "Twin", "nowhere", "x/Target"),
                ),
                note("t", title="Target", aliases=("second  name",), changed_at=at(1)),
                note("old", title="Twin", origin="/v/a/Twin.md", source="imported", changed_at=at(1)),
                note("new", title="Twin", origin="/v/b/Twin.md", source="imported", changed_at=at(2)),
            ]
        )
        found = {link.target: link.target_id for link in await notes.links_from("from")}
        assert found == {
            "target": "t",
            "Second Name": "t",
            "b/Twin": "new",
            "Twin": "old",
            "nowhere": None,
            "x/Target": "t",
        }
        assert [link.target for link in await notes.links_to("t")] == ["target", "Second Name", "x/Target"]
        assert [link.target for link in await notes.links_to("new")] == ["b/Twin"]
        await notes.save([note("n", title="Nowhere")])
        assert [link.source_id for link in await notes.links_to("n")] == ["from"]

    run(test)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("königsberg", ["a"]),
        ("KONIGSBERG bridge", ["a"]),
        ("bridg", ["a"]),
        ("bridge cat", []),
        ("日本", ["b"]),
        ("本語", ["b"]),
        ("語", ["b"]),
        ("東京タワー", ["b"]),
        ("京都", []),
        ("हिन्दी", ["c"]),
        ("strasse", ["c"]),
        ("🎈", ["c"]),
        ("plan/next", ["c"]),
        ("Nickname", ["c"]),
        ("ёлка", ["c"]),
        ("елка", ["c"]),
    ],
)
def test_search_finds_what_was_meant(run: Run, query: str, found: list[str]) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save(
            [
                note("a", "The seven bridges of Königsberg"),
                note("b", "これは日本語の文章です。東京タワーを見た。"),
                note("c", "हिन्दी में, eine Straße, 🎈🎉, ёлка", tags=["plan/next"], aliases=("Nickname",)),
            ]
        )
        assert [hit.note_id for hit in await notes.search(query)] == found

    run(test)


def test_a_title_counts_for_more_than_a_text(run: Run) -> None:
    async def test(database: Database) -> None:
        notes, manases = SqlNoteRepository(database), SqlManasRepository(database, CountingIdentities())
        await notes.save(
            [
                note("text", "long text about a river and more " * 20),
                note("tag", "something", tags=["river"]),
                note("title", "something", title="River"),
            ]
        )
        hits = await notes.search("river")
        assert [hit.note_id for hit in hits] == ["title", "tag", "text"]
        assert hits[0].score > hits[1].score > hits[2].score
        assert [hit.note_id for hit in await notes.search("river", limit=1)] == ["title"]
        manas = await manases.create("M")
        await manases.add(manas.id, ["text"])
        assert [hit.note_id for hit in await notes.search("river", manas_id=manas.id)] == ["text"]

    run(test)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "' OR 1=1 --",
        "a* NEAR(b, 2) AND NOT",
        "title: ^x {y} -z",
        "& | ! <-> :*",
        "\\'\\",
        "\0\ud800",
        "%_",
        "",
        "( (",
        "x" * 100_000,
        "日" * 5_000,
        "a " * 5_000,
    ],
)
def test_any_query_is_harmless(run: Run, query: str) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save([note("a", "some text")])
        assert isinstance(await notes.search(query), tuple)
        assert await notes.count() == 1

    run(test)


def test_a_note_of_megabytes_is_kept_and_found(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        text = "needle " + " ".join(f"word{n}" for n in range(600_000))
        await notes.save([note("a", text)])
        assert (await notes.get("a")).text == text
        (hit,) = await notes.search("needle")
        assert hit.snippet.startswith("needle word0")
        assert len(hit.snippet) < 200

    run(test)


def test_many_notes_in_one_call(run: Run) -> None:
    async def test(database: Database) -> None:
        notes = SqlNoteRepository(database)
        await notes.save([note(f"n{n:04}") for n in range(2_500)])
        ids = [f"n{n:04}" for n in reversed(range(2_500))]
        assert [one.id for one in await notes.many([*ids, "gone"])] == ids
        await notes.save([])

    run(test)
