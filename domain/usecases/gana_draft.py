"""What a form or a command line says of a Gana, and trying it before it is saved."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from domain.entities.gana import MIN_INTERVAL_MINUTES, Gana, GanaDraft, GanaProgress, GanaRun
from domain.errors import InvalidField, InvalidRequest
from domain.reasons import plain_reason
from domain.repositories.due_times import DueTimes
from domain.repositories.ganas import GanaRepository
from domain.repositories.identity import Identities
from domain.usecases.gana import GanaEngine
from domain.usecases.trigger_words import read_trigger

CALLED = {
    "name": "its name",
    "description": "its description",
    "manas_ids": "the knowledge it may draw on",
    "task": "what it should do",
    "input_tag": "the tag that it reads",
    "input_manas_id": "the Manas that it reads",
    "output_tag": "the tag of its notes",
    "webhook": "its webhook",
    "model": "its model",
    "mode": "whether it runs again or once",
    "reactive": "whether it runs on new notes",
    "interval_minutes": "the minutes between its runs",
    "cron": "its cron expression",
    "once_at": "the time at which it runs",
    "missed_runs": "what happens to missed runs",
    "agentic": "whether it may look things up",
}
"""The fields of a draft in a user's words."""
_SENTENCES = {
    ("name", "missing"): "give it a name",
    ("name", "string_too_short"): "give it a name",
    ("task", "missing"): "say what it should do",
    ("task", "string_too_short"): "say what it should do",
    ("interval_minutes", "greater_than_equal"): f"it can run at most once in {MIN_INTERVAL_MINUTES} minutes",
    ("interval_minutes", "less_than_equal"): "it has to run once a year at least",
}
"""By field and kind of error."""


def _reason(field: str, kind: str, message: str) -> str:
    if kind == "value_error":
        return plain_reason(message)  # ours, and whole
    if field == "webhook":
        return "its webhook should be a web address that begins with http:// or https://"
    return _SENTENCES.get((field, kind)) or f"{CALLED.get(field, field)}: {plain_reason(message)}"


class DraftGanaUseCase:
    """Reads the fields of a form."""

    def __init__(self, due_times: DueTimes, identities: Identities) -> None:
        self._due_times = due_times
        self._identities = identities

    def __call__(self, fields: Mapping[str, Any], before: GanaDraft | None = None) -> GanaDraft:
        """Fields of a draft, and `trigger` in plain words; those that are not given stay as they were.

        Raises `InvalidField` in one sentence.
        """
        told = dict(fields)
        words = told.pop("trigger", None)
        if words is not None:
            told = self._trigger(words, told) | told
        for one, other in (("input_tag", "input_manas_id"), ("input_manas_id", "input_tag")):
            if told.get(one) is not None:
                told.setdefault(other, None)
        try:
            return GanaDraft.model_validate((before.model_dump() if before is not None else {}) | told)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = str(first["loc"][0]) if first["loc"] else "trigger"
            raise InvalidField(
                field, f"The Gana was refused: {_reason(field, first['type'], first['msg'])}."
            ) from None

    def _trigger(self, words: str, told: Mapping[str, Any]) -> dict[str, Any]:
        now = self._identities.now()
        try:
            trigger = read_trigger(words, self._due_times.wall(now))
        except InvalidRequest as error:
            raise InvalidField("trigger", str(error)) from None
        found: dict[str, Any] = trigger.model_dump(include={"mode", "reactive", "interval_minutes", "cron"})
        wall = trigger.once_wall
        found["once_at"] = self._due_times.local(wall) if wall is not None else None
        if trigger.once_in_minutes is not None:
            found["once_at"] = now.replace(microsecond=0) + timedelta(minutes=trigger.once_in_minutes)
        if trigger.input_tag is not None or trigger.input_manas is not None:
            if told.get("input_tag") is not None or told.get("input_manas_id") is not None:
                raise InvalidField("trigger", "The trigger names the input already; name it once.")
            found |= {"input_tag": trigger.input_tag, "input_manas_id": trigger.input_manas}
        return found


class NextFiresUseCase:
    """When a trigger will fire, before anything is saved."""

    def __init__(self, due_times: DueTimes, identities: Identities) -> None:
        self._due_times = due_times
        self._identities = identities

    def __call__(self, draft: GanaDraft, count: int) -> tuple[datetime, ...]:
        """Up to `count` moments from now on; none for one that only reacts or runs by hand. Raises `InvalidField`."""
        try:
            self._due_times.validate(draft)
        except InvalidRequest as error:
            raise InvalidField("trigger", str(error)) from None
        fires: list[datetime] = []
        after = self._identities.now()
        while len(fires) < count:
            following = self._due_times.next_after(draft, after)
            if following is None:
                break
            fires.append(following)
            after = following
        return tuple(fires)

    def now(self) -> datetime:
        """On the clock that decides."""
        return self._identities.now()


class PreviewGanaUseCase:
    """What a Gana would write, as it is stored or as its form has it now. Publishes nothing."""

    def __init__(
        self, engine: GanaEngine, ganas: GanaRepository, draft: DraftGanaUseCase, identities: Identities
    ) -> None:
        self._engine = engine
        self._notes = engine.material.notes
        self._ganas = ganas
        self._draft = draft
        self._identities = identities

    async def __call__(
        self,
        gana_id: str,
        fields: Mapping[str, Any] | None = None,
        watch: Callable[[GanaProgress], None] = lambda progress: None,
        *,
        read_old_notes: bool = False,
    ) -> GanaRun:
        """`gana_id` may be that of no Gana yet, if there are fields; `read_old_notes` as it would be created with. Raises `GanaNotFound`, `InvalidRequest`."""
        known = next((gana for gana in await self._ganas.all() if gana.id == gana_id), None)
        if fields is None:
            gana = known or await self._ganas.get(gana_id)
        else:
            cursor = None if read_old_notes else await self._notes.last_arrival()
            gana = Gana(
                id=gana_id,
                draft=self._draft(fields, known.draft if known is not None else None),
                cursor=known.cursor if known is not None else cursor,
                created_at=self._identities.now(),
            )
        return await self._engine.process_gana(gana, "preview", watch=watch)
