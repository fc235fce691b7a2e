"""What a Gana may know: passages of its Manases, and for an agentic one, tools over the graph."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from domain.entities.knowledge import Passage
from domain.entities.note import Note
from domain.prompts.gana import ToolCall, note_block
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.notes import NoteRepository
from domain.usecases.retrieval import RetrieveContextUseCase
from domain.usecases.text_budget import cut_middle, text_tokens

SEARCH_HITS = 8
CONCEPTS = 3
RELATIONS = 30


class PassageFinder(Protocol):
    """Finds what some Manases know about a question."""

    async def __call__(
        self, question: str, manas_ids: Sequence[str], budget_tokens: int
    ) -> tuple[Passage, ...]:
        """Best first, at most about so many tokens."""
        ...


class NewestPassages:
    """Implements `PassageFinder` without a model: the newest notes of each Manas, in turn."""

    def __init__(self, notes: NoteRepository) -> None:
        self._notes = notes

    async def __call__(
        self, question: str, manas_ids: Sequence[str], budget_tokens: int
    ) -> tuple[Passage, ...]:
        lines = [line for manas in manas_ids for line in await self._notes.lines(manas_id=manas, limit=20)]
        newest = sorted(
            {line.id: line for line in lines}.values(), key=lambda each: each.changed_at, reverse=True
        )
        found = await self._notes.many([line.id for line in newest[:20]])
        share = max(1, budget_tokens // 3)
        return tuple(
            Passage(
                number=rank,
                note_id=note.id,
                title=note.title,
                text=cut_middle(note.text, share),
                score=1 / rank,
            )
            for rank, note in enumerate(found, start=1)
        )


class RetrievedPassages:
    """Implements `PassageFinder` by retrieval: by meaning, by words and through the graph."""

    def __init__(self, retrieve: RetrieveContextUseCase) -> None:
        self._retrieve = retrieve

    async def __call__(
        self, question: str, manas_ids: Sequence[str], budget_tokens: int
    ) -> tuple[Passage, ...]:
        found: dict[str, Passage] = {}
        for manas_id in manas_ids:
            context = await self._retrieve(question, budget_tokens=budget_tokens, manas_id=manas_id)
            for passage in context.citations:
                found.setdefault(passage.note_id, passage)
        return tuple(sorted(found.values(), key=lambda passage: -passage.score))


async def knowledge_text(
    notes: NoteRepository, passages: Sequence[Passage], without: Iterable[str], budget_tokens: int
) -> str:
    """Passages as material, within the budget; none of a note that a Gana wrote, none that is an input already."""
    skip = set(without)
    there = {note.id: note for note in await notes.many(list({passage.note_id for passage in passages}))}
    blocks: list[str] = []
    for passage in passages:
        note = there.get(passage.note_id)
        if note is None or note.source == "gana" or note.id in skip:
            continue
        block = note_block(passage.title, passage.text)
        budget_tokens -= text_tokens(block)
        if budget_tokens < 0:
            break
        blocks.append(block)
    return "\n\n".join(blocks)


class GraphTools:
    """Tools that look. They see the Gana's Manases (all notes when it has none) and never what a Gana wrote."""

    def __init__(
        self,
        notes: NoteRepository,
        knowledge: KnowledgeRepository,
        manas_ids: Sequence[str],
        budget_tokens: int,
    ) -> None:
        self._notes = notes
        self._knowledge = knowledge
        self._manas_ids = manas_ids
        self._budget = budget_tokens
        self._scope: set[str] | None = None

    async def run(self, call: ToolCall) -> str:
        """What the tool found, as plain text within the budget."""
        if not call.argument:
            return f"{call.tool} needs an argument."
        match call.tool:
            case "search_notes":
                found = await self._search(call.argument)
            case "read_note":
                found = await self._read(call.argument)
            case _:
                found = await self._neighbours(call.argument)
        return cut_middle(found, self._budget)

    async def _search(self, query: str) -> str:
        hits = [
            hit
            for scope in self._manases()
            for hit in await self._notes.search(query, manas_id=scope, limit=SEARCH_HITS)
        ]
        visible = await self._visible([hit.note_id for hit in hits])
        lines = {
            hit.note_id: f"{hit.note_id}: {hit.title}: {hit.snippet}"
            for hit in hits
            if hit.note_id in visible
        }
        return "\n".join(list(lines.values())[:SEARCH_HITS]) or "No note matches."

    async def _read(self, name: str) -> str:
        visible = await self._visible([name])
        if not visible:
            hits = [
                hit
                for scope in self._manases()
                for hit in await self._notes.search(name, manas_id=scope, limit=SEARCH_HITS)
            ]
            titled = [hit.note_id for hit in hits if hit.title.casefold() == name.casefold()]
            visible = await self._visible(titled or [hit.note_id for hit in hits])
        for note in visible.values():
            return note_block(note.title, cut_middle(note.text, self._budget // 2))
        return f"No note is called {name}."

    async def _neighbours(self, name: str) -> str:
        concepts = await self._knowledge.find_concepts(name, CONCEPTS)
        if not concepts:
            return f"No note names {name}."
        around = await self._knowledge.neighbours([concept.id for concept in concepts], limit=RELATIONS)
        sources = {note_id for relation in around.relations for note_id in relation.note_ids}
        visible = await self._visible(sorted(sources))
        lines = [
            f"{relation.source.name} {relation.verb} {relation.target.name}."
            for relation in around.relations
            if any(note_id in visible for note_id in relation.note_ids)
        ]
        return "\n".join(lines) or f"The notes relate {name} to nothing."

    def _manases(self) -> Sequence[str | None]:
        return self._manas_ids or (None,)

    async def _visible(self, note_ids: Sequence[str]) -> dict[str, Note]:
        """Those that exist and may be seen, in order."""
        if self._manas_ids and self._scope is None:
            self._scope = {note for manas in self._manas_ids for note in await self._notes.note_ids(manas)}
        return {
            note.id: note
            for note in await self._notes.many(note_ids)
            if note.source != "gana" and (self._scope is None or note.id in self._scope)
        }
