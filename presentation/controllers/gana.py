"""Ganas, for every face."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.entities.gana import Gana, GanaDraft, GanaProgress, GanaRun
from domain.entities.llm import LlmTaskKind
from domain.usecases.gana import GanaEngine
from domain.usecases.gana_book import (
    DeleteGanaUseCase,
    EnableGanaUseCase,
    LookUpGanasUseCase,
    SaveGanaUseCase,
)
from domain.usecases.gana_draft import DraftGanaUseCase, NextFiresUseCase, PreviewGanaUseCase
from domain.usecases.scheduler import SetForegroundKindUseCase
from domain.usecases.trigger_words import describe_trigger

Watch = Callable[[GanaProgress], None]


@dataclass(frozen=True)
class GanaController:
    """A `reference` is an id or a name. `changed` wakes whoever fires Ganas."""

    look_up: LookUpGanasUseCase
    draft: DraftGanaUseCase
    save: SaveGanaUseCase
    enable_gana: EnableGanaUseCase
    delete: DeleteGanaUseCase
    engine: GanaEngine
    preview_gana: PreviewGanaUseCase
    next_fires: NextFiresUseCase
    set_foreground: SetForegroundKindUseCase
    changed: Callable[[], None] = lambda: None

    async def list(self) -> tuple[Gana, ...]:
        """By name."""
        return await self.look_up.all()

    async def get(self, reference: str) -> Gana:
        """Raises `GanaNotFound`."""
        return await self.look_up.get(reference)

    async def runs(self, reference: str | None = None, *, limit: int = 100) -> tuple[GanaRun, ...]:
        """Newest first."""
        return await self.look_up.runs(reference, limit=limit)

    async def create(self, fields: Mapping[str, Any], *, read_old_notes: bool = False) -> Gana:
        """From the fields of a draft and, if wished, `trigger` in plain words. Off until it is enabled.

        Raises `InvalidRequest` in one sentence.
        """
        return await self.save.create(self.draft(fields), read_old_notes=read_old_notes)

    async def change(self, reference: str, fields: Mapping[str, Any]) -> Gana:
        """Fields that are not given stay. Raises as `create` does, and `GanaNotFound`."""
        gana = await self.look_up.get(reference)
        gana = await self.save.change(gana.id, self.draft(fields, gana.draft))
        self.changed()
        return gana

    async def enable(self, reference: str, *, on: bool) -> Gana:
        """Switching it off stops a run that is going on."""
        gana = await self.enable_gana((await self.look_up.get(reference)).id, on=on)
        if not on:
            self.engine.stop(gana.id)
        self.changed()
        return gana

    async def remove(self, reference: str) -> Gana:
        """The notes that it wrote stay. Raises `GanaNotFound`."""
        gana = await self.look_up.get(reference)
        self.engine.stop(gana.id)
        await self.delete(gana.id)
        return gana

    async def run(self, reference: str, watch: Watch = lambda progress: None) -> GanaRun:
        """Run now."""
        return await self.engine.process_gana(await self.look_up.get(reference), "interactive", watch=watch)

    async def writing(self, gana: Gana) -> str | None:
        """The title of the note that its reaction waits for, since somebody is writing it."""
        note = await self.engine.writing(gana)
        return note.title if note is not None else None

    def stop(self, gana_id: str) -> None:
        """Ends a run at its next token."""
        self.engine.stop(gana_id)

    def read_trigger(self, words: str, fires: int = 3) -> "TriggerReading":
        """What a trigger in plain words means. Raises `InvalidField`."""
        draft = self.draft({"name": "?", "task": "?", "trigger": words})
        return TriggerReading(self._words(draft), self.next_fires(draft, fires), draft.reactive)

    async def preview(
        self,
        gana_id: str,
        fields: Mapping[str, Any] | None = None,
        watch: Watch = lambda progress: None,
        *,
        read_old_notes: bool = False,
    ) -> GanaRun:
        """What it would write, for a face that says by itself what the user looks at; publishes nothing."""
        return await self.preview_gana(gana_id, fields, watch, read_old_notes=read_old_notes)

    @contextmanager
    def form(self, gana_id: str | None = None) -> Iterator["GanaForm"]:
        """While entered, the user looks at this Gana's form, or at one for a new Gana."""
        form = GanaForm(gana_id or uuid.uuid4().hex, self.preview_gana)
        self.set_foreground(LlmTaskKind.GANA, form.gana_id)
        try:
            yield form
        finally:
            self.set_foreground(None)

    def describe(self, gana: Gana) -> str:
        """When it runs, in words."""
        return self._words(gana.draft)

    def _words(self, draft: GanaDraft) -> str:
        return describe_trigger(draft, self.local(draft.once_at) if draft.once_at is not None else "")

    def now(self) -> datetime:
        """On the clock by which Ganas run."""
        return self.next_fires.now()

    def local(self, moment: datetime) -> str:
        """A moment on the machine's own clock."""
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"


@dataclass(frozen=True)
class TriggerReading:
    """`fires` are the next moments that are known; `reactive` means that the words name an input to react to."""

    words: str
    fires: tuple[datetime, ...]
    reactive: bool


@dataclass(frozen=True)
class GanaForm:
    """One open form."""

    gana_id: str
    preview_gana: PreviewGanaUseCase

    async def preview(
        self, fields: Mapping[str, Any] | None = None, watch: Watch = lambda progress: None
    ) -> GanaRun:
        """What it would write, as stored or as the form has it now; publishes nothing."""
        return await self.preview_gana(self.gana_id, fields, watch)
