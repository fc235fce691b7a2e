"""Writing down Ganas, switching them on and off, and looking them up."""

from domain.entities.gana import Gana, GanaDraft, GanaRun
from domain.errors import InvalidField, InvalidRequest
from domain.repositories.due_times import DueTimes
from domain.repositories.ganas import GanaRepository
from domain.repositories.identity import Identities
from domain.repositories.notes import ManasRepository, NoteRepository


class SaveGanaUseCase:
    """Creates a Gana, or changes one."""

    def __init__(
        self,
        ganas: GanaRepository,
        manases: ManasRepository,
        notes: NoteRepository,
        due_times: DueTimes,
        identities: Identities,
    ) -> None:
        self._ganas = ganas
        self._manases = manases
        self._notes = notes
        self._due_times = due_times
        self._identities = identities

    async def create(self, draft: GanaDraft, *, read_old_notes: bool = False) -> Gana:
        """Off until it is enabled. Only notes that come to its input from now on are read, unless told otherwise.

        Raises `InvalidRequest` for a name that is taken or a trigger that cannot be, `ManasNotFound`.
        """
        draft = await self._checked(draft, None)
        now = self._identities.now()
        gana = Gana(
            id=self._identities.new_id(),
            draft=draft,
            cursor=None if read_old_notes else await self._notes.last_arrival(),
            created_at=now,
        )
        await self._ganas.put(gana)
        return gana

    async def change(self, gana_id: str, draft: GanaDraft) -> Gana:
        """Its due time is computed anew if its trigger has changed; cursor and log stay. Raises as `create` does."""
        gana = await self._ganas.get(gana_id)
        draft = await self._checked(draft, gana)
        due_at = gana.due_at
        if gana.enabled and _trigger(draft) != _trigger(gana.draft):
            due_at = self._due_times.next_after(draft, self._identities.now())
        changed = gana.model_copy(update={"draft": draft, "due_at": due_at})
        await self._ganas.put(changed)
        return changed

    async def _checked(self, draft: GanaDraft, gana: Gana | None) -> GanaDraft:
        try:
            self._due_times.validate(draft)
        except InvalidRequest as error:
            raise InvalidField("trigger", str(error)) from None
        for other in await self._ganas.all():
            if other.draft.name == draft.name and (gana is None or other.id != gana.id):
                raise InvalidField("name", f"There is a Gana {draft.name} already. Choose another name.")
        manas_ids = [(await self._manases.get(manas)).id for manas in draft.manas_ids]
        watched = draft.input_manas_id
        return draft.model_copy(
            update={
                "manas_ids": tuple(dict.fromkeys(manas_ids)),
                "input_manas_id": (await self._manases.get(watched)).id if watched is not None else None,
            }
        )


class EnableGanaUseCase:
    """Switches a Gana on or off."""

    def __init__(self, ganas: GanaRepository, due_times: DueTimes, identities: Identities) -> None:
        self._ganas = ganas
        self._due_times = due_times
        self._identities = identities

    async def __call__(self, gana_id: str, *, on: bool) -> Gana:
        """Its next due time is computed from now: what it missed while it was off stays missed.

        Raises `GanaNotFound`, and `InvalidRequest` for a one-shot whose time has passed.
        """
        gana = await self._ganas.get(gana_id)
        if gana.enabled == on:
            return gana
        due_at = self._due_times.next_after(gana.draft, self._identities.now()) if on else None
        if on and gana.draft.once_at is not None and due_at is None and gana.draft.mode == "one_shot":
            raise InvalidRequest(
                f"The time of {gana.draft.name} has passed. Give it another one: uniun gana edit --trigger"
            )
        changed = gana.model_copy(update={"enabled": on, "due_at": due_at})
        await self._ganas.put(changed)
        return changed


class LookUpGanasUseCase:
    """Ganas and what they did."""

    def __init__(self, ganas: GanaRepository) -> None:
        self._ganas = ganas

    async def all(self) -> tuple[Gana, ...]:
        """By name."""
        return await self._ganas.all()

    async def get(self, gana_id: str) -> Gana:
        """By id or name. Raises `GanaNotFound`."""
        return await self._ganas.get(gana_id)

    async def runs(self, gana_id: str | None = None, *, limit: int = 100) -> tuple[GanaRun, ...]:
        """Newest first; of all Ganas if none is named. Raises `GanaNotFound`."""
        if gana_id is not None:
            gana_id = (await self._ganas.get(gana_id)).id
        return await self._ganas.runs(gana_id, limit=limit)


class DeleteGanaUseCase:
    """Deletes a Gana and its log; the notes that it wrote stay."""

    def __init__(self, ganas: GanaRepository) -> None:
        self._ganas = ganas

    async def __call__(self, gana_id: str) -> None:
        """Raises `GanaNotFound`."""
        await self._ganas.delete((await self._ganas.get(gana_id)).id)


def _trigger(draft: GanaDraft) -> tuple[object, ...]:
    return (draft.mode, draft.interval_minutes, draft.cron, draft.once_at)
