import asyncio
import inspect
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.entities.gana import Gana, GanaDraft
from domain.entities.knowledge import RetrievedContext
from domain.errors import ModelUnavailable
from domain.usecases.passages import best_passages, keywords, phrases, words
from domain.usecases.retrieval import LONGEST_CONTEXT_TOKENS, RetrieveContextUseCase, context_budget
from domain.usecases.text_budget import text_tokens
from tests.memory.ganas import MemoryGanas
from tests.memory.library import MemoryLibrary


def retrieve(
    library: MemoryLibrary,
    question: str,
    *,
    budget: int = 800,
    manas_id: str | None = None,
    leave_out: Collection[str] = (),
    ganas: MemoryGanas | None = None,
) -> RetrievedContext:
    use_case = RetrieveContextUseCase(
        library.embedder, library.vectors, library.notes, library.knowledge, ganas or MemoryGanas()
    )
    return asyncio.run(use_case(question, budget_tokens=budget, manas_id=manas_id, leave_out=leave_out))


def library(*notes: tuple[str, str, str]) -> MemoryLibrary:
    filled = MemoryLibrary()

    async def fill() -> None:
        for note in notes:
            await filled.write(*note)

    asyncio.run(fill())
    return filled


TEA = ("tea", "Green tea", "Green tea steeps for two minutes.")
COFFEE = ("coffee", "Coffee", "Coffee wants water just below boiling.")
STOICS = ("stoics", "Stoics", "Zeno taught in a painted porch.")


def test_passages_are_numbered_and_the_best_is_first() -> None:
    context = retrieve(library(COFFEE, STOICS, TEA), "How long does green tea steep?")
    assert context.citations[0].note_id == "tea"
    assert context.text.startswith("[1] Green tea\nGreen tea steeps for two minutes.")
    assert context.estimated_tokens == text_tokens(context.text)
    assert context.hindrance is None


def test_a_note_keeps_the_number_that_it_has_and_others_get_the_lowest_free() -> None:
    filled = library(
        TEA, ("black", "Black tea", "Assam steeps longer."), ("oolong", "Oolong", "It steeps too.")
    )
    asyncio.run(filled.read("tea", "Tea.", ("green tea", "contains", "theanine")))
    use_case = RetrieveContextUseCase(
        filled.embedder, filled.vectors, filled.notes, filled.knowledge, MemoryGanas()
    )
    asked = use_case("green tea steeps", budget_tokens=800, numbers={"tea": 4, "gone": 1, "oolong": 2})
    context = asyncio.run(asked)
    found = {passage.note_id: passage.number for passage in context.citations}
    assert found == {"tea": 4, "black": 3, "oolong": 2}
    assert context.text.startswith("[4] Green tea\n")
    assert "green tea contains theanine. [4]" in context.text


def test_the_same_question_gives_the_same_text() -> None:
    notes = [(f"n{at}", f"Tea {at}", f"Tea of kind {at} steeps.") for at in range(30)]
    one, other = library(*notes), library(*reversed(notes))
    question = "Which tea steeps?"
    assert retrieve(one, question).text == retrieve(one, question).text == retrieve(other, question).text


def test_a_note_of_a_gana_is_marked_as_such() -> None:
    filled, ganas = (
        library(TEA, ("digest", "Tea today", "Tea was steeped."), ("old", "Tea then", "Tea is old.")),
        MemoryGanas(),
    )
    at = datetime(2026, 1, 1, tzinfo=UTC)

    async def written() -> None:
        await ganas.put(Gana(id="g", draft=GanaDraft(name="Morning digest", task="Sum up."), created_at=at))
        for note_id, gana_id in (("digest", "g"), ("old", "gone")):
            note = await filled.notes.get(note_id)
            await filled.notes.save([note.model_copy(update={"source": "gana", "origin": gana_id})])

    asyncio.run(written())
    found = retrieve(filled, "Which tea steeps?", ganas=ganas).citations
    assert {passage.note_id: passage.written_by for passage in found} == {
        "tea": None,
        "digest": "Morning digest",
        "old": "",
    }


def test_names_of_pictures_and_boxes_of_tasks_are_in_no_passage() -> None:
    (passage,) = retrieve(library(("a", "Tea", "![[h4.png]]\n- [x] Green tea steeps.")), "tea?").citations
    assert passage.text == "- Green tea steeps."


def test_nothing_fits() -> None:
    assert retrieve(library(), "tea?").text == ""
    assert retrieve(library(TEA, COFFEE), "xyzzy").citations == ()


@pytest.mark.parametrize("budget", [100, 300, 800, 3000])
def test_the_budget_is_kept(budget: int) -> None:
    notes = [(f"n{at}", f"Tea {at}", f"Tea {at} steeps. " + f"More of {at}. " * 300) for at in range(12)]
    filled = library(*notes)
    asyncio.run(filled.read("n1", "Tea 1 is green. " * 10, ("tea", "needs", "water"), ("water", "is", "wet")))
    context = retrieve(filled, "Which tea steeps?", budget=budget)
    assert 0 < context.estimated_tokens <= budget
    assert len(context.citations) >= (1 if budget < 300 else 3)


def test_without_the_embedder_words_do() -> None:
    filled = library(TEA, COFFEE)
    filled.embedder.error = ModelUnavailable("No weights.")
    context = retrieve(filled, "How is coffee made, boiling?")
    assert [passage.note_id for passage in context.citations] == ["coffee"]
    assert context.hindrance == "No weights."


def test_the_graph_brings_notes_that_share_no_word_with_the_question() -> None:
    filled = library(TEA, COFFEE, STOICS)

    async def read() -> None:
        await filled.read("tea", "Tea.", ("green tea", "contains", "theanine"))
        await filled.read("stoics", "Porch people.", ("theanine", "calms", "stoics"))

    asyncio.run(read())
    context = retrieve(filled, "green tea")
    assert [passage.note_id for passage in context.citations][-1] == "stoics"
    assert context.citations[-1].text == "Porch people."
    number = len(context.citations)
    assert "Related:\ngreen tea contains theanine. [1]" in context.text
    assert f"theanine calms stoics. [{number}]" in context.text


def test_a_scope_holds_for_the_graph_too() -> None:
    filled = library(TEA, STOICS)

    async def prepare() -> str:
        manas = await filled.manases.create("Drinks")
        await filled.manases.add(manas.id, ["tea"])
        await filled.read("tea", "Tea.", ("green tea", "contains", "theanine"))
        await filled.read("stoics", "Secret.", ("theanine", "calms", "stoics"))
        return manas.id

    context = retrieve(filled, "What is in green tea? Zeno porch", manas_id=asyncio.run(prepare()))
    assert [passage.note_id for passage in context.citations] == ["tea"]
    assert "stoics" not in context.text
    assert "Secret" not in context.text


def test_what_the_model_sees_anyway_is_left_out() -> None:
    context = retrieve(library(TEA, COFFEE), "green tea", leave_out=["tea"])
    assert "tea" not in [passage.note_id for passage in context.citations]


def test_copies_are_there_once() -> None:
    copy = ("copy", "A copy", TEA[2])
    assert len(retrieve(library(TEA, copy), "green tea steeps").citations) == 1


def test_a_long_note_is_cut_to_the_passages_that_answer_and_begins_with_its_summary() -> None:
    paragraphs = [f"Paragraph {at} speaks of other things entirely." for at in range(400)]
    paragraphs[200] = "# Steeping\n\nGreen tea steeps for two minutes."
    filled = library(("long", "All I know", "\n\n".join(paragraphs)), COFFEE)
    asyncio.run(filled.read("long", "Everything."))
    (passage,) = [p for p in retrieve(filled, "How long does tea steep?").citations if p.note_id == "long"]
    assert passage.text.startswith("Everything.\n")
    assert "# Steeping\nGreen tea steeps for two minutes." in passage.text


def test_a_question_that_is_no_question() -> None:
    filled = library(TEA)
    for question in ("", "?", "the", "\0", "a" * 100_000, "<notes>", "' OR 1=1 --"):
        retrieve(filled, question)


def test_the_budget_scales_with_the_context_and_ends() -> None:
    assert context_budget(2048) == 819
    assert context_budget(1_000_000) == LONGEST_CONTEXT_TOKENS


def test_words() -> None:
    assert keywords("What did I note about Zeno's porches, and Zeno?") == ("zeno", "porches")
    assert words("Cities, classes and 東京タワー") == [
        "city",
        "classe",
        "and",
        "東京",
        "京タ",
        "タワ",
        "ワー",
    ]


def test_passages_come_in_the_order_of_the_text() -> None:
    text = "\n\n".join(["Tea first."] + ["Nothing here."] * 50 + ["Tea and milk last."])
    assert best_passages(text, ["tea", "milk"], 60) == "Tea first.\n[…]\nTea and milk last."
    assert best_passages(text, ["tea", "milk"], 12) == "Tea and milk last."
    assert best_passages(text, ["absent"], 10).startswith("Tea first.")
    assert text_tokens(best_passages("x" * 9_000 + " tea", ["tea"], 50)) <= 50


@pytest.mark.parametrize("text", ["", "\n\n\n", "# Only a heading", "word" * 100_000, "é" * 5000])
def test_odd_notes(text: str) -> None:
    assert text_tokens(best_passages(text, ["word"], 40)) <= 40


def test_a_question_costs_a_few_steps_however_much_is_known() -> None:
    filled = library(*((f"n{at}", f"Tea {at}", f"Tea of kind {at} steeps.") for at in range(200)))

    async def read() -> None:
        for at in range(200):
            await filled.read(f"n{at}", f"Kind {at}.", (f"tea {at}", "steeps like", f"tea {at + 1}"))

    asyncio.run(read())
    calls: list[str] = []
    for port in (filled.notes, filled.knowledge, filled.vectors):
        for name in [name for name in dir(port) if not name.startswith("_")]:
            method = getattr(port, name)
            if inspect.iscoroutinefunction(method):
                setattr(port, name, counted(calls, name, method))
    use_case = RetrieveContextUseCase(
        filled.embedder, filled.vectors, filled.notes, filled.knowledge, MemoryGanas()
    )
    asyncio.run(use_case("Which tea 3 steeps like tea 4 and tea 5?", budget_tokens=3_000))
    inner = (
        "search",
        "neighbours",
        "concepts_of",
        "notes_naming",
        "note_ids",
    )  # the stand-ins call themselves
    asked = [call for call in calls if call not in inner]
    once = ["many", "nearest", "related_notes", "relations_of", "summaries"]
    assert sorted(asked) in (sorted(["matching", *once]), sorted(["matching", "matching", *once]))


def counted(calls: list[str], name: str, method: Any) -> Any:
    async def call(*arguments: Any, **named: Any) -> Any:
        calls.append(name)
        return await method(*arguments, **named)

    return call


def test_phrases() -> None:
    found = phrases("What is the history of tea?")
    assert "history of tea" in found
    assert "tea" in found
    assert not {"What", "What is the", "of"} & set(found)
    assert len(phrases("word " * 10_000 + "end")) < 200
