"""`ManasRepository` in memory."""

from collections.abc import Sequence

from domain.entities.note import Manas
from domain.errors import InvalidRequest, ManasNotFound
from tests.memory.notes import MemoryNotes


class MemoryManases:
    def __init__(self, notes: MemoryNotes) -> None:
        self._notes = notes
        self._members = notes.members
        self._names: dict[str, str] = {}

    async def all(self) -> tuple[Manas, ...]:
        return tuple(sorted((self._manas(each) for each in self._names), key=lambda manas: manas.name))

    async def create(self, name: str) -> Manas:
        if name in self._names.values():
            raise InvalidRequest(f"There is a Manas {name} already. Choose another name.")
        manas_id = f"manas{len(self._names)}"
        self._names[manas_id] = name
        self._members[manas_id] = set()
        return self._manas(manas_id)

    async def get(self, manas_id: str) -> Manas:
        for each, name in self._names.items():
            if manas_id in (each, name):
                return self._manas(each)
        raise ManasNotFound(f"There is no Manas {manas_id}. List them: uniun notes manas list")

    async def of_note(self, note_id: str) -> tuple[Manas, ...]:
        return tuple(manas for manas in await self.all() if note_id in self._members[manas.id])

    async def rename(self, manas_id: str, name: str) -> None:
        found = await self.get(manas_id)
        if any(name == other and each != found.id for each, other in self._names.items()):
            raise InvalidRequest(f"There is a Manas {name} already. Choose another name.")
        self._names[found.id] = name

    async def delete(self, manas_id: str) -> None:
        found = await self.get(manas_id)
        del self._names[found.id], self._members[found.id]

    async def add(self, manas_id: str, note_ids: Sequence[str]) -> None:
        found = await self.get(manas_id)
        self._members[found.id].update(note_ids)
        for note_id in sorted(note_ids):
            self._notes.arrive(note_id, found.id)

    async def remove(self, manas_id: str, note_ids: Sequence[str]) -> None:
        self._members[(await self.get(manas_id)).id].difference_update(note_ids)

    def _manas(self, manas_id: str) -> Manas:
        return Manas(id=manas_id, name=self._names[manas_id], note_count=len(self._members[manas_id]))
