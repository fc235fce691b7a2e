"""A Gana engine over fakes, and what lies around it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from data.markdown.parser import MarkdownNoteParser
from domain.entities.gana import Gana, GanaDraft
from domain.entities.note import Note, NoteDraft
from domain.errors import WebhookFailed
from domain.repositories.identity import Identities
from domain.usecases.gana import GanaEngine, GanaMaterial
from domain.usecases.gana_tools import RetrievedPassages
from domain.usecases.llm import GenerateOneShotUseCase
from domain.usecases.notes import ComposeNote
from domain.usecases.retrieval import RetrieveContextUseCase
from tests.fakes import MemoryStore, ScriptedCoordinator
from tests.memory.ganas import MemoryGanas
from tests.memory.identity import CountingIdentities
from tests.memory.leases import QuietLeases
from tests.memory.library import MemoryLibrary


class KeptWebhook:
    """Implements `Webhook`: keeps what is sent, or fails."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Mapping[str, str]]] = []
        self.broken = False

    async def post(self, url: str, body: Mapping[str, str]) -> None:
        if self.broken:
            raise WebhookFailed("The webhook answered 500.")
        self.sent.append((url, body))


class KeptChanges:
    """Implements `NoteChanges`."""

    def __init__(self) -> None:
        self.announced: list[str] = []

    def announce(self, note_ids: Any) -> None:
        self.announced += note_ids


class GanaWorld:
    """`engine` is for the app; its neighbours are plain attributes."""

    def __init__(
        self,
        coordinator: ScriptedCoordinator | None = None,
        *models: str,
        identities: Identities | None = None,
    ) -> None:
        self.coordinator = coordinator or ScriptedCoordinator()
        self.store = MemoryStore(*(models or ("tiny",)))
        self.library = MemoryLibrary()
        self.notes = self.library.notes
        self.ganas = MemoryGanas(self.notes)
        self.counting = CountingIdentities()
        self.identities = identities or self.counting
        self.leases = QuietLeases()
        self.webhook = KeptWebhook()
        self.changes = KeptChanges()
        self.compose = ComposeNote(MarkdownNoteParser(), self.identities)
        self.generate = GenerateOneShotUseCase(self.coordinator, self.store)
        retrieve = RetrieveContextUseCase(
            self.library.embedder, self.library.vectors, self.notes, self.library.knowledge
        )
        self.material = GanaMaterial(
            self.notes, self.library.knowledge, RetrievedPassages(retrieve), self.compose, self.changes
        )
        self.engine = GanaEngine(
            self.ganas,
            self.material,
            self.generate,
            self.store,
            self.leases,
            self.webhook,
            self.identities,
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
            cursor=self.now,
            due_at=due_at,
            created_at=self.now,
        )
        await self.ganas.put(gana)
        return gana

    async def note(
        self, text: str, *tags: str, at: datetime | None = None, source: str = "typed", title: str = ""
    ) -> Note:
        """A saved note, changed now or then."""
        draft = NoteDraft.model_validate({"title": title, "text": text, "tags": tags, "source": source})
        note = self.compose(draft)
        if at is not None:
            note = note.model_copy(update={"changed_at": at})
        await self.notes.save([note])
        return note

    async def again(self, gana: Gana) -> Gana:
        """As it is stored now."""
        return await self.ganas.get(gana.id)


MINUTE = timedelta(minutes=1)
