"""The knowledge graph in dictionaries, merged by name without case."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from domain.entities.knowledge import (
    Concept,
    Extraction,
    Neighbourhood,
    PendingExtraction,
    PendingState,
    Relation,
)
from tests.memory.notes import MemoryNotes


class MemoryKnowledge:
    """Implements `KnowledgeRepository` beside a `MemoryNotes`, which queues what is saved."""

    def __init__(self, notes: MemoryNotes) -> None:
        self._notes = notes
        self._tried: dict[tuple[str, str], tuple[int, PendingState, str | None]] = {}
        """By note id and content hash."""
        self._said: dict[str, Extraction] = {}

    async def pending(self, limit: int) -> tuple[PendingExtraction, ...]:
        return tuple(one for one in self._list() if one.state == "waiting")[:limit]

    async def pending_counts(self) -> dict[str, int]:
        states = [one.state for one in self._list()]
        return {"waiting": states.count("waiting"), "failed": states.count("failed")}

    async def pending_of(self, note_id: str) -> PendingExtraction | None:
        return next((one for one in self._list() if one.note_id == note_id), None)

    async def failures(self, limit: int = 100) -> tuple[PendingExtraction, ...]:
        return tuple(one for one in reversed(self._list()) if one.state == "failed")[:limit]

    async def retry(self, note_ids: Sequence[str] | None = None) -> int:
        failed = [one for one in self._list() if one.state == "failed"]
        chosen = [one for one in failed if note_ids is None or one.note_id in note_ids]
        for one in chosen:
            self._tried[one.note_id, one.content_hash] = (0, "waiting", None)
        return len(chosen)

    async def assert_extraction(self, note_id: str, content_hash: str, extraction: Extraction) -> bool:
        note = self._notes.notes.get(note_id)
        if note is None or note.content_hash != content_hash:
            return False
        self._said[note_id] = extraction
        self._notes.extract_queue.pop(note_id, None)
        return True

    async def fail(self, note_id: str, content_hash: str, error: str, *, give_up_after: int) -> None:
        if self._notes.extract_queue.get(note_id) != content_hash:
            return
        attempts = self._tried.get((note_id, content_hash), (0, "", None))[0] + 1
        state: PendingState = "failed" if attempts >= give_up_after else "waiting"
        self._tried[note_id, content_hash] = (attempts, state, error)

    def _list(self) -> list[PendingExtraction]:
        found: list[PendingExtraction] = []
        for at, (note_id, content_hash) in enumerate(self._notes.extract_queue.items()):
            attempts, state, error = self._tried.get((note_id, content_hash), (0, "waiting", None))
            found.append(
                PendingExtraction(
                    note_id=note_id,
                    content_hash=content_hash,
                    state=state,
                    attempts=attempts,
                    error=error,
                    queued_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=at),
                )
            )
        return found

    @property
    def _read(self) -> dict[str, Extraction]:
        return {note_id: said for note_id, said in self._said.items() if note_id in self._notes.notes}

    async def summary(self, note_id: str) -> str | None:
        return self._read[note_id].summary if note_id in self._read else None

    async def summaries(self, note_ids: Sequence[str]) -> dict[str, str]:
        return {each: self._read[each].summary for each in note_ids if each in self._read}

    async def relations_of(self, note_ids: Sequence[str]) -> tuple[Relation, ...]:
        theirs = [
            relation.model_copy(
                update={"note_ids": tuple(each for each in relation.note_ids if each in note_ids)}
            )
            for relation in self._relations()
        ]
        return tuple(relation for relation in theirs if relation.note_ids)

    async def related_notes(
        self, names: Sequence[str], note_ids: Sequence[str], *, manas_id: str | None = None, limit: int = 10
    ) -> tuple[str, ...]:
        called = {name.casefold() for name in names}
        named = [concept.id for concept in self._concepts() if concept.id in called]
        begin = [*named, *(concept.id for concept in await self.concepts_of(note_ids))]
        around = await self.neighbours(begin, hops=2)
        naming = await self.notes_naming([concept.id for concept in around.concepts], 1_000)
        inside = await self._notes.note_ids(manas_id)
        return tuple(note_id for note_id in naming if note_id in inside)[:limit]

    async def concepts_of(self, note_ids: Sequence[str]) -> tuple[Concept, ...]:
        named = {
            claim.name.casefold()
            for note_id in note_ids
            if note_id in self._read
            for claim in self._read[note_id].concepts
        }
        return tuple(concept for concept in self._concepts() if concept.id in named)

    async def notes_naming(self, concept_ids: Sequence[str], limit: int) -> tuple[str, ...]:
        counted = {
            note_id: sum(claim.name.casefold() in concept_ids for claim in read.concepts)
            for note_id, read in self._read.items()
        }
        naming = sorted((note_id for note_id, n in counted.items() if n), key=lambda n: (-counted[n], n))
        return tuple(naming[:limit])

    async def neighbours(
        self, concept_ids: Sequence[str], *, hops: int = 1, limit: int = 50
    ) -> Neighbourhood:
        reached = set(concept_ids)
        for _ in range(min(hops, 2)):
            reached |= {
                end
                for relation in self._relations()
                for end in (relation.source.id, relation.target.id)
                if {relation.source.id, relation.target.id} & reached
            }
        return self._within(reached, limit)

    async def find_concepts(self, text: str, limit: int = 20) -> tuple[Concept, ...]:
        wanted = text.casefold()
        return tuple(c for c in self._concepts() if wanted in c.name.casefold())[:limit]

    async def graph(self, *, manas_id: str | None = None, limit: int = 500) -> Neighbourhood:
        return self._within({concept.id for concept in self._concepts()}, limit)

    def _within(self, ids: set[str], limit: int) -> Neighbourhood:
        concepts = tuple(c for c in self._concepts() if c.id in ids)[:limit]
        shown = {concept.id for concept in concepts}
        relations = tuple(r for r in self._relations() if r.source.id in shown and r.target.id in shown)
        return Neighbourhood(concepts=concepts, relations=relations)

    def _concepts(self) -> tuple[Concept, ...]:
        found: dict[str, Concept] = {}
        for read in self._read.values():
            for name, claim in {claim.name.casefold(): claim for claim in read.concepts}.items():
                known = found.get(name) or Concept(id=name, name=claim.name, type=claim.type)
                found[name] = known.model_copy(update={"note_count": known.note_count + 1})
        return tuple(sorted(found.values(), key=lambda c: (-c.note_count, c.name)))

    def _relations(self) -> tuple[Relation, ...]:
        concepts = {concept.id: concept for concept in self._concepts()}
        found: dict[tuple[str, str, str], list[str]] = {}
        for note_id, read in self._read.items():
            for claim in read.relations:
                key = (claim.source.casefold(), claim.verb.casefold(), claim.target.casefold())
                if key[0] in concepts and key[2] in concepts:
                    found.setdefault(key, []).append(note_id)
        return tuple(
            Relation(source=concepts[source], verb=verb, target=concepts[target], note_ids=tuple(ids))
            for (source, verb, target), ids in found.items()
        )
