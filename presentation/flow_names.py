"""Titles in place of the ids that flows go by: of conversations, notes, Ganas and Manases."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from domain.entities.llm import LlmTaskKind
from domain.entities.nataraj import WHOLE_LIBRARY
from domain.entities.scheduler import History, JobView, SchedulerSnapshot
from domain.errors import UniunError
from presentation.controllers.ask import ONE_QUESTION

if TYPE_CHECKING:
    from presentation.controllers.chat import ChatController
    from presentation.controllers.gana import GanaController
    from presentation.controllers.notes import ManasController, NotesController

Flow = tuple[LlmTaskKind, str]
Find = Callable[[list[str]], Awaitable[dict[str, str]]]
MOST_KEPT = 2_000
MOST_AT_ONCE = 20
"""Notes that are looked up in one go."""
CONVERSATIONS = 200


class FlowNames:
    """Looked up once; what nothing is found for keeps its id."""

    def __init__(self, finders: Mapping[LlmTaskKind, Find]) -> None:
        self._finders = finders
        self._names: dict[Flow, str] = {(LlmTaskKind.NATARAJ, WHOLE_LIBRARY): "all notes"}

    async def learn(self, flows: Iterable[Flow]) -> None:
        """Finds the names of those that are not known yet."""
        unknown: dict[LlmTaskKind, list[str]] = {}
        for kind, flow in dict.fromkeys(flows):
            if (kind, flow) not in self._names and not flow.startswith(ONE_QUESTION):
                unknown.setdefault(kind, []).append(flow)
        for kind, ids in unknown.items():
            if (find := self._finders.get(kind)) is None:
                continue
            try:
                found = await find(ids[:MOST_AT_ONCE])
            except UniunError:
                found = {}
            for flow in ids[:MOST_AT_ONCE]:
                self._names[kind, flow] = found.get(flow) or flow
        while len(self._names) > MOST_KEPT:
            del self._names[next(iter(self._names))]

    def snapshot(self, snapshot: SchedulerSnapshot) -> SchedulerSnapshot:
        """With names for ids."""
        running = snapshot.running
        flows = snapshot.flow_vruntime_s.items()
        return snapshot.model_copy(
            update={
                "running": None if running is None else self._job(running),
                "also_running": tuple(map(self._job, snapshot.also_running)),
                "tiers": {tier: tuple(map(self._job, jobs)) for tier, jobs in snapshot.tiers.items()},
                "flow_vruntime_s": {self._key(key): value for key, value in flows},
            }
        )

    def history(self, history: History) -> History:
        """With names for ids."""
        runs = tuple(run.model_copy(update={"flow": self.name(run.kind, run.flow)}) for run in history.runs)
        decisions = tuple(
            one.model_copy(update={"flow": self.name(one.kind, one.flow), "reason": self._reason(one.reason)})
            for one in history.decisions
        )
        return history.model_copy(update={"runs": runs, "decisions": decisions})

    def name(self, kind: LlmTaskKind, flow: str) -> str:
        """The id itself as long as nothing else is known."""
        return "a single question" if flow.startswith(ONE_QUESTION) else self._names.get((kind, flow), flow)

    def _job(self, job: JobView) -> JobView:
        return job.model_copy(update={"flow": self.name(job.kind, job.flow)})

    def _key(self, key: str) -> str:
        kind, _, flow = key.partition("/")
        return f"{kind}/{self.name(LlmTaskKind(kind), flow)}"

    def _reason(self, reason: str) -> str:
        """Reasons of the fair pool name the other flow."""
        before, has_had, _ = reason.partition(" has had less")
        if not has_had:
            return reason
        start, _, key = before.rpartition(", ")
        return f"{start}, {self._key(key)}{has_had}"


def names_of(
    chat: Callable[[str | None, str | None], "ChatController"],
    notes: "NotesController",
    ganas: "GanaController",
    manases: "ManasController",
) -> FlowNames:
    """Those that the database knows."""

    async def conversations(ids: list[str]) -> dict[str, str]:
        found = await chat(None, None).conversations(limit=CONVERSATIONS)
        return {one.id: one.title for one in found}

    async def titles(ids: list[str]) -> dict[str, str]:
        found = {}
        for note_id in ids:
            try:
                found[note_id] = (await notes.show(note_id)).note.title
            except UniunError:
                continue
        return found

    async def agents(ids: list[str]) -> dict[str, str]:
        return {one.id: one.draft.name for one in await ganas.list()}

    async def sets(ids: list[str]) -> dict[str, str]:
        return {one.id: one.name for one in await manases.list()}

    return FlowNames(
        {
            LlmTaskKind.CHAT: conversations,
            LlmTaskKind.EXTRACT: titles,
            LlmTaskKind.GANA: agents,
            LlmTaskKind.NATARAJ: sets,
        }
    )


def flows_of(snapshot: SchedulerSnapshot, history: History) -> list[Flow]:
    """All that are shown, most important first."""
    running = [job for job in (snapshot.running, *snapshot.also_running) if job is not None]
    waiting = [job for jobs in snapshot.tiers.values() for job in jobs[:MOST_AT_ONCE]]
    return [
        *((job.kind, job.flow) for job in (*running, *waiting)),
        *((one.kind, one.flow) for one in reversed(history.decisions)),
    ]
