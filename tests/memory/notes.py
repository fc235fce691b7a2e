"""`NoteRepository` in memory: the shortest thing that keeps the port's promises."""

from collections.abc import Sequence
from datetime import datetime

from domain.entities.note import ImportedOrigin, Link, Note, NoteArrival, NoteLine, SearchHit, hash_text
from domain.errors import NoteNotFound


class MemoryNotes:
    """`members` and `extract_queue` are shared with the fakes of the neighbouring ports."""

    def __init__(self) -> None:
        self.notes: dict[str, Note] = {}
        self.members: dict[str, set[str]] = {}
        """Manas id to note ids."""
        self.extract_queue: dict[str, str] = {}
        """Note id to the content hash that is to be read."""
        self.saves = 0
        self.arrivals: dict[tuple[str, str], int] = {}
        """Note id, and tag or Manas id, to the number of its first arrival there."""
        self._last_arrival = 0
        self._deleted: dict[str, str] = {}

    async def save(self, notes: Sequence[Note], *, extract: bool = True) -> None:
        self.saves += 1
        for note in notes:
            old = self.notes.get(note.id)
            self.notes[note.id] = note
            if note.source == "imported" and note.origin is not None:
                self._deleted.pop(note.origin, None)
            changed = old is None or old.content_hash != note.content_hash
            self.arrive(note.id, *note.tags)
            if extract and changed:
                self.extract_queue[note.id] = note.content_hash

    async def replace(self, note: Note, seen: str) -> bool:
        old = self.notes.get(note.id)
        if old is None or old.content_hash != seen:
            return False
        await self.save([note])
        return True

    async def begin(self, note: Note) -> bool:
        if note.id in self.notes:
            return False
        await self.save([note])
        return True

    async def take_back(self, note_id: str, seen: str) -> bool:
        note = self.notes.get(note_id)
        if note is None or note.content_hash != seen or await self.links_to(note_id):
            return False
        if any(note_id in members for members in self.members.values()):
            return False
        await self.delete(note_id, again=True)
        return True

    async def get(self, note_id: str) -> Note:
        try:
            return self.notes[note_id]
        except KeyError:
            raise NoteNotFound(f"There is no note {note_id}. List them: uniun notes list") from None

    async def many(self, note_ids: Sequence[str]) -> tuple[Note, ...]:
        return tuple(self.notes[each] for each in note_ids if each in self.notes)

    async def by_origin(self, origins: Sequence[str]) -> dict[str, Note]:
        wanted = set(origins)
        return {n.origin: n for n in self._imported() if n.origin is not None and n.origin in wanted}

    async def imported_origins(self) -> dict[str, ImportedOrigin]:
        return {
            n.origin: ImportedOrigin(note_id=n.id, content_hash=n.content_hash, mark=n.origin_mark)
            for n in self._imported()
            if n.origin is not None
        }

    async def written_here(self) -> dict[str, tuple[str, str]]:
        written = [note for note in self.notes.values() if note.source != "imported" and note.text.strip()]
        return {hash_text(note.text): (note.id, note.title) for note in reversed(written)}

    def _imported(self) -> list[Note]:
        return [note for note in self.notes.values() if note.source == "imported"]

    async def deleted_origins(self) -> dict[str, str]:
        return dict(self._deleted)

    async def delete(self, note_id: str, *, again: bool = False) -> None:
        note = await self.get(note_id)
        del self.notes[note_id]
        if note.source == "imported" and note.origin is not None and not again:
            self._deleted[note.origin] = note.origin_mark or ""
        self.extract_queue.pop(note_id, None)
        for members in self.members.values():
            members.discard(note_id)

    async def lines(
        self, *, tag: str | None = None, manas_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[NoteLine, ...]:
        chosen = sorted(
            self._chosen(tag, manas_id), key=lambda note: (note.changed_at, note.id), reverse=True
        )
        return tuple(
            NoteLine(
                id=note.id,
                title=note.title,
                tags=note.tags,
                source=note.source,
                changed_at=note.changed_at,
                characters=len(note.text),
            )
            for note in chosen[offset : offset + limit]
        )

    async def count(self, *, tag: str | None = None, manas_id: str | None = None) -> int:
        return len(self._chosen(tag, manas_id))

    async def search(
        self, query: str, *, tag: str | None = None, manas_id: str | None = None, limit: int = 20
    ) -> tuple[SearchHit, ...]:
        words = [word for word in query.lower().split() if word]
        hits: list[SearchHit] = []
        for note in self._chosen(tag, manas_id):
            text = " ".join((note.title, *note.tags, note.text)).lower()
            if words and all(word in text for word in words):
                hits.append(
                    SearchHit(
                        note_id=note.id,
                        title=note.title,
                        snippet=note.text[:100],
                        score=sum(text.count(word) for word in words),
                    )
                )
        return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.note_id))[:limit])

    async def matching(
        self, queries: Sequence[str], *, manas_id: str | None = None, limit: int = 20
    ) -> tuple[tuple[str, ...], ...]:
        found = [await self.search(query, manas_id=manas_id, limit=limit) for query in queries]
        return tuple(tuple(hit.note_id for hit in hits) for hits in found)

    async def tags(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for note in self.notes.values():
            for tag in note.tags:
                counts[tag] = counts.get(tag, 0) + 1
        return counts

    async def links_from(self, note_id: str) -> tuple[Link, ...]:
        return tuple(
            Link(source_id=note_id, target=target, target_id=self._resolve(target))
            for target in (await self.get(note_id)).links
        )

    async def links_to(self, note_id: str) -> tuple[Link, ...]:
        return tuple(
            Link(source_id=note.id, target=target, target_id=note_id)
            for note in self.notes.values()
            for target in note.links
            if self._resolve(target) == note_id
        )

    async def link_target(self, target: str) -> str | None:
        return self._resolve(target)

    async def titles(self, beginning: str, *, limit: int) -> tuple[str, ...]:
        wanted = beginning.casefold().strip()
        lengths: dict[str, int] = {}
        for note in sorted(self.notes.values(), key=lambda note: note.changed_at, reverse=True):
            named = [len(name) for name in (note.title, *note.aliases) if name.casefold().startswith(wanted)]
            if named:
                lengths[note.title] = min(named) if wanted else 0
        return tuple(sorted(lengths, key=lambda title: lengths[title])[:limit])

    async def arrived_since(
        self,
        after: int | None,
        *,
        tag: str | None,
        manas_id: str | None,
        limit: int,
        changed: tuple[datetime, datetime] | None = None,
    ) -> tuple[NoteArrival, ...]:
        first: dict[str, int] = {}
        for (note_id, place), number in self.arrivals.items():
            if place == manas_id or (tag is not None and f"{place}/".startswith(f"{tag}/")):
                first[note_id] = min(number, first.get(note_id, number))
        new = [
            NoteArrival(number=first[note.id], note=note)
            for note in self._chosen(tag, manas_id)
            if note.source != "gana" and (changed is None or changed[0] < note.changed_at <= changed[1])
        ]
        unread = [arrival for arrival in new if arrival.number > (after or 0)]
        return tuple(sorted(unread, key=lambda arrival: arrival.number)[:limit])

    async def last_arrival(self) -> int:
        return self._last_arrival

    def arrive(self, note_id: str, *places: str) -> None:
        """To tags or Manases, where it has not been before."""
        new = [place for place in places if (note_id, place) not in self.arrivals]
        self._last_arrival += bool(new)
        self.arrivals.update(((note_id, place), self._last_arrival) for place in new)

    async def note_ids(self, manas_id: str | None, *, tag: str | None = None) -> tuple[str, ...]:
        return tuple(sorted(note.id for note in self._chosen(tag, manas_id)))

    def _chosen(self, tag: str | None, manas_id: str | None) -> list[Note]:
        return [
            note
            for note in self.notes.values()
            if (manas_id is None or note.id in self.members.get(manas_id, ()))
            and (tag is None or any(each == tag or each.startswith(f"{tag}/") for each in note.tags))
        ]

    def _resolve(self, target: str) -> str | None:
        for name in (target.lower(), target.lower().rpartition("/")[2]):
            found = [
                note
                for note in self.notes.values()
                if name in (note.title.lower(), *(alias.lower() for alias in note.aliases))
            ]
            if found:
                return min(found, key=lambda note: (not _ends_with(note, target), note.created_at)).id
        return None


def _ends_with(note: Note, target: str) -> bool:
    return (note.origin or "").lower().rpartition(".")[0].endswith("/" + target.lower())
