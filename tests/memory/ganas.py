"""Ganas, their claims and their log in dictionaries."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.entities.gana import RUNS_IN_ALL, RUNS_PER_GANA, Gana, GanaRun, Tick
from domain.entities.note import Note
from domain.errors import GanaNotFound
from domain.repositories.notes import NoteRepository

LEASE_S = 60.0


@dataclass
class _Held:
    tick: Tick
    until: datetime


class MemoryGanas:
    """Implements `GanaRepository`. Published notes go to `published`, and to `notes` where there are some."""

    def __init__(self, notes: NoteRepository | None = None) -> None:
        self.published: list[Note] = []
        self._notes = notes
        self._ganas: dict[str, Gana] = {}
        self._held: dict[str, _Held] = {}
        self._runs: dict[str, GanaRun] = {}
        self._claims = 0

    async def put(self, gana: Gana) -> None:
        self._ganas[gana.id] = gana

    async def get(self, gana_id: str) -> Gana:
        for gana in self._ganas.values():
            if gana_id in (gana.id, gana.draft.name):
                return gana
        raise GanaNotFound(f"There is no Gana {gana_id}.")

    async def all(self) -> tuple[Gana, ...]:
        return tuple(sorted(self._ganas.values(), key=lambda gana: gana.draft.name))

    async def delete(self, gana_id: str) -> None:
        gana = await self.get(gana_id)
        del self._ganas[gana.id]
        self._held.pop(gana.id, None)
        self._runs = {key: run for key, run in self._runs.items() if run.gana_id != gana.id}

    async def due(self, now: datetime, limit: int) -> tuple[Gana, ...]:
        found: list[tuple[datetime, Gana]] = []
        for gana in self._ganas.values():
            held = self._held.get(gana.id)
            due_at = gana.due_at
            if held is not None:
                if held.until > now:
                    continue
                due_at = held.tick.due_at or due_at
            if gana.enabled and due_at is not None and due_at <= now:
                found.append((due_at, gana.model_copy(update={"due_at": due_at})))
        return tuple(gana for _, gana in sorted(found, key=lambda pair: pair[0])[:limit])

    async def claim(
        self,
        gana_id: str,
        due_at: datetime | None,
        next_due_at: datetime | None,
        *,
        by: str,
        now: datetime,
    ) -> Tick | None:
        gana = self._ganas.get(gana_id)
        held = self._held.get(gana_id)
        if gana is None or (held is not None and held.until > now):
            return None
        if due_at is not None:
            abandoned = held.tick.due_at if held is not None else None
            if not gana.enabled or due_at not in (gana.due_at, abandoned):
                return None
            self._ganas[gana_id] = gana.model_copy(update={"due_at": next_due_at})
        elif held is not None and held.tick.due_at is not None:
            self._ganas[gana_id] = gana.model_copy(update={"due_at": held.tick.due_at})
        for run in await self.runs(gana_id):
            if run.status == "running":
                self._runs[run.id] = run.model_copy(update={"status": "failed", "reason": "cancelled"})
        self._claims += 1
        tick = Tick(gana_id=gana_id, due_at=due_at, claim=f"{by}-{self._claims}")
        self._held[gana_id] = _Held(tick, now + timedelta(seconds=LEASE_S))
        return tick

    async def renew(self, tick: Tick, now: datetime) -> bool:
        held = self._held.get(tick.gana_id)
        if held is None or held.tick != tick:
            return False
        held.until = now + timedelta(seconds=LEASE_S)
        return True

    async def release(self, tick: Tick) -> None:
        if self._owns(tick):
            del self._held[tick.gana_id]
            gana = self._ganas.get(tick.gana_id)
            if gana is not None and tick.due_at is not None:
                self._ganas[gana.id] = gana.model_copy(update={"due_at": tick.due_at})

    async def complete(
        self, tick: Tick | None, run: GanaRun, *, cursor: int | None, publish: Note | None
    ) -> bool:
        if tick is not None:
            if not self._owns(tick):
                return False
            del self._held[tick.gana_id]
        gana = self._ganas.get(run.gana_id)
        if gana is not None and cursor is not None:
            self._ganas[gana.id] = gana.model_copy(update={"cursor": cursor})
        if publish is not None:
            self.published.append(publish)
            if self._notes is not None:
                await self._notes.save([publish])
        await self.put_run(run)
        return True

    async def put_run(self, run: GanaRun) -> None:
        self._runs[run.id] = run
        own = [each.id for each in self._runs.values() if each.gana_id == run.gana_id]
        for old in own[:-RUNS_PER_GANA] + list(self._runs)[:-RUNS_IN_ALL]:
            self._runs.pop(old, None)

    async def runs(self, gana_id: str | None = None, *, limit: int = 100) -> tuple[GanaRun, ...]:
        newest = reversed(self._runs.values())
        return tuple(run for run in newest if gana_id in (None, run.gana_id))[:limit]

    async def settle_running(self, now: datetime, *, by: str) -> int:
        lost = [run for run in self._runs.values() if run.status == "running" and run.by == by]
        for run in lost:
            self._runs[run.id] = run.model_copy(update={"status": "failed", "reason": "cancelled"})
        return len(lost)

    def _owns(self, tick: Tick) -> bool:
        held = self._held.get(tick.gana_id)
        return held is not None and held.tick == tick
