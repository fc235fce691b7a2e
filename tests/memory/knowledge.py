"""The knowledge graph in dictionaries, made anew from what notes say each time that it is asked for."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from data.database.columns import storable
from data.repositories.concept_names import concept_keys, kept_name, other_names
from data.repositories.note_links import name_key
from domain.entities.knowledge import (
    Concept,
    Extraction,
    Neighbourhood,
    PendingExtraction,
    PendingState,
    Relation,
)
from domain.folding import fold
from tests.memory.notes import MemoryNotes


class MemoryKnowledge:
    """Implements `KnowledgeRepository` beside a `MemoryNotes`, which queues what is saved."""

    def __init__(self, notes: MemoryNotes) -> None:
        self._notes = notes
        self._tried: dict[tuple[str, str], tuple[int, PendingState, str | None]] = {}
        """By note id and content hash."""
        self._said: dict[str, Extraction] = {}

    async def pending(self, limit: int, *, oldest: bool = False) -> tuple[PendingExtraction, ...]:
        notes = self._notes.notes
        waiting = [one for one in self._list() if one.state == "waiting" and one.note_id in notes]
        order = sorted(waiting, key=lambda one: notes[one.note_id].changed_at, reverse=not oldest)
        return tuple(order[:limit])

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
        return (await self.summaries([note_id])).get(note_id)

    async def summaries(self, note_ids: Sequence[str]) -> dict[str, str]:
        return {each: storable(self._read[each].summary) for each in note_ids if each in self._read}

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
        called = {key for name in names for key in concept_keys(storable(name))}
        named = [
            group for name, group in self._groups().items() if not called.isdisjoint(self._keys_of(name))
        ]
        begin = [*named, *(concept.id for concept in await self.concepts_of(note_ids))]
        around = await self.neighbours(begin, hops=2)
        naming = await self.notes_naming([concept.id for concept in around.concepts], 1_000)
        inside = await self._notes.note_ids(manas_id)
        return tuple(note_id for note_id in naming if note_id in inside)[:limit]

    async def concepts_of(self, note_ids: Sequence[str]) -> tuple[Concept, ...]:
        groups = self._groups()
        named = {
            groups[name]
            for note_id in note_ids
            if note_id in self._read
            for name in _types(self._read[note_id])
        }
        return tuple(concept for concept in self._concepts() if concept.id in named)

    async def notes_naming(self, concept_ids: Sequence[str], limit: int) -> tuple[str, ...]:
        groups = self._groups()
        counted = {
            note_id: len({groups[name] for name in _types(read)} & set(concept_ids))
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
        text = storable(text)
        wanted = set(concept_keys(text))
        parts = {" ".join(fold(text).split()), *wanted}
        keys: dict[str, set[str]] = {}
        for name, group in self._groups().items():
            keys.setdefault(group, set()).update(self._keys_of(name))
        found = [c for c in self._concepts() if any(part in key for key in keys[c.id] for part in parts)]
        return tuple(sorted(found, key=lambda c: keys[c.id].isdisjoint(wanted)))[:limit]

    async def graph(self, *, manas_id: str | None = None, limit: int = 500) -> Neighbourhood:
        return self._within({concept.id for concept in self._concepts()}, limit)

    def _within(self, ids: set[str], limit: int) -> Neighbourhood:
        concepts = tuple(c for c in self._concepts() if c.id in ids)[:limit]
        shown = {concept.id for concept in concepts}
        relations = tuple(r for r in self._relations() if r.source.id in shown and r.target.id in shown)
        return Neighbourhood(concepts=concepts, relations=relations)

    def _keys_of(self, name: str) -> set[str]:
        """Those of the name, and that of the title of the note that has it as an alias."""
        titles = {
            storable(note.title)
            for note in self._notes.notes.values()
            if name_key(name) in (name_key(each) for each in (note.title, *note.aliases))
        }
        return {*concept_keys(name), *(concept_keys(min(titles))[:1] if len(titles) == 1 else ())}

    def _groups(self) -> dict[str, str]:
        """Name to the id of its concept: names that share a key are one."""
        keys = {name: self._keys_of(name) for read in self._read.values() for name in _types(read)}
        groups: list[set[str]] = []
        for own in keys.values():
            joined = [group for group in groups if group & own]
            groups = [*(group for group in groups if not group & own), own.union(*joined)]
        return {name: min(group) for name, own in keys.items() for group in groups if group & own}

    def _concepts(self) -> tuple[Concept, ...]:
        groups = self._groups()
        names: dict[str, Counter[str]] = {}
        types: dict[str, Counter[str]] = {}
        notes: Counter[str] = Counter()
        for read in self._read.values():
            said = _types(read)
            notes.update({groups[name] for name in said})
            for name, kind in said.items():
                names.setdefault(groups[name], Counter())[name] += 1
                types.setdefault(groups[name], Counter())[kind] += 1
        found = [
            Concept(
                id=group,
                name=(name := min(counts, key=lambda each: (-counts[each], each))),
                type=min(types[group], key=lambda kind: (kind == "thing", -types[group][kind], kind)),
                aliases=other_names(name, counts),
                note_count=notes[group],
            )
            for group, counts in names.items()
        ]
        return tuple(sorted(found, key=lambda concept: (-concept.note_count, concept.name)))

    def _relations(self) -> tuple[Relation, ...]:
        concepts = {concept.id: concept for concept in self._concepts()}
        groups = self._groups()
        found: dict[tuple[str, str, str], set[str]] = {}
        for note_id, read in self._read.items():
            for claim in read.relations:
                source, target = groups.get(kept_name(claim.source)), groups.get(kept_name(claim.target))
                verb = kept_name(claim.verb.casefold())
                if source is not None and target is not None and source != target and verb:
                    found.setdefault((source, verb, target), set()).add(note_id)
        return tuple(
            Relation(source=concepts[source], verb=verb, target=concepts[target], note_ids=tuple(sorted(ids)))
            for (source, verb, target), ids in found.items()
        )


def _types(read: Extraction) -> dict[str, str]:
    """Every name that has a key, and what it is."""
    types = {kept_name(claim.name): storable(claim.type) for claim in reversed(read.concepts)}
    for claim in read.relations:
        for end in (claim.source, claim.target):
            types.setdefault(kept_name(end), "thing")
    return {name: kind for name, kind in types.items() if concept_keys(name)}
