"""A Gana engine over fakes, with a scripted model and short ways to make Ganas and notes."""

from datetime import datetime, timedelta
from typing import Any

from domain.entities.gana import Gana, GanaDraft
from domain.entities.note import Note, NoteDraft
from domain.repositories.identity import Identities
from tests.fakes import MemoryStore, ScriptedCoordinator
from tests.memory.cards import MemoryCards
from tests.memory.gana_faces import GanaFaces
from tests.memory.ganas import MemoryGanas
from tests.memory.identity import CountingIdentities
from tests.memory.library import MemoryLibrary

MINUTE = timedelta(minutes=1)


class GanaWorld(GanaFaces):
    """`engine` is the app's; its neighbours are plain attributes."""

    def __init__(
        self,
        coordinator: ScriptedCoordinator | None = None,
        *models: str,
        identities: Identities | None = None,
    ) -> None:
        self.coordinator = coordinator or ScriptedCoordinator()
        self.store = MemoryStore(*(models or ("tiny",)))
        self.counting = CountingIdentities()
        library = MemoryLibrary()
        super().__init__(
            self.coordinator,
            self.store,
            library,
            MemoryCards(),
            MemoryGanas(library.notes),
            identities or self.counting,
        )

    @property
    def now(self) -> datetime:
        """Without moving the clock."""
        return self.counting.at if self.identities is self.counting else self.identities.now()

    async def gana(self, name: str = "g", *, due_at: datetime | None = None, **fields: Any) -> Gana:
        """An enabled Gana that has read everything up to now."""
        draft = GanaDraft.model_validate({"name": name, "task": "Sum up.", **fields})
        gana = Gana(
            id=f"id-{name}",
            draft=draft,
            enabled=True,
            cursor=await self.notes.last_arrival(),
            due_at=due_at,
            created_at=self.now,
        )
        await self.ganas.put(gana)
        return gana

    async def note(self, text: str, *tags: str, source: str = "typed", title: str = "") -> Note:
        """A saved note."""
        draft = NoteDraft.model_validate({"title": title, "text": text, "tags": tags, "source": source})
        note = self.compose(draft)
        await self.notes.save([note])
        return note

    async def again(self, gana: Gana) -> Gana:
        """As it is stored now."""
        return await self.ganas.get(gana.id)
