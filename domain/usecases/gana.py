"""Gana: one run of an agent that the user defined."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from domain.counting import counted
from domain.entities.gana import (
    RUNS_PER_GANA,
    Gana,
    GanaDraft,
    GanaMode,
    GanaProgress,
    GanaRun,
    RunStatus,
    SkipReason,
    Tick,
)
from domain.entities.note import Note, NoteDraft
from domain.errors import (
    GanaNotFound,
    JobCancelled,
    JobStopped,
    ModelDamaged,
    QueueFull,
    TickLost,
    UniunError,
    UnknownModel,
    WebhookFailed,
)
from domain.prompts import gana as prompt
from domain.repositories.ganas import GanaRepository
from domain.repositories.identity import Identities
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.leases import Leases
from domain.repositories.model_store import ModelStore
from domain.repositories.note_changes import NoteChanges
from domain.repositories.notes import NoteRepository
from domain.repositories.webhook import Webhook
from domain.usecases.gana_calendar import pause_after, tries_again
from domain.usecases.gana_input import InputBatch, being_written, newest_input, read_input, watches
from domain.usecases.gana_rounds import MAX_ROUNDS, GanaJobs
from domain.usecases.gana_tools import GraphTools, PassageFinder, knowledge_text
from domain.usecases.llm import UNKNOWN_CONTEXT_TOKENS, GenerateOneShotUseCase

INPUT_SHARE = 0.3
KNOWLEDGE_SHARE = 0.2
TOOL_SHARE = 0.08
"""Of the context, for what one tool finds."""
ANSWER_SHARE = 0.15
LONGEST_ANSWER_TOKENS = 600
MAX_INPUT_TOKENS = 4_000
OLD_NOTES = "No note is new to it, so this was tried on the newest ones; a run waits for new ones."
"""Of a preview, which would have nothing to show else."""
_TRY_LATER = (JobCancelled, JobStopped, QueueFull)
"""What ends a job through no fault of the Gana's: its tick stays due."""


@dataclass
class _Work:
    """A run as far as it has come."""

    status: RunStatus = "succeeded"
    reason: SkipReason | None = None
    detail: str = ""
    inputs: tuple[str, ...] = ()
    cursor: int | None = None
    output: str = ""
    note: Note | None = None
    """What is to be published."""
    tokens: int = 0
    preemptions: int = 0

    def skip(self, reason: SkipReason, detail: str = "") -> None:
        self.status, self.reason, self.detail = "skipped", reason, detail

    def fail(self, detail: str) -> None:
        self.status, self.reason, self.detail = "failed", "error", detail


@dataclass(frozen=True)
class GanaMaterial:
    """What a Gana reads, and what it is written with."""

    notes: NoteRepository
    knowledge: KnowledgeRepository
    passages: PassageFinder
    compose: Callable[[NoteDraft], Note]
    changes: NoteChanges


@dataclass
class GanaEngine:
    """Runs Ganas. A run that is not settled, however it ends, leaves its tick due and publishes nothing."""

    ganas: GanaRepository
    material: GanaMaterial
    generate: GenerateOneShotUseCase
    models: ModelStore
    leases: Leases
    webhook: Webhook
    identities: Identities
    by: Literal["app", "background"] = "app"
    _running: dict[str, GanaJobs] = field(default_factory=dict, init=False)

    async def process_gana(
        self,
        gana: Gana,
        mode: GanaMode,
        *,
        tick: Tick | None = None,
        deadline: datetime | None = None,
        watch: Callable[[GanaProgress], None] = lambda progress: None,
    ) -> GanaRun:
        """One run, logged. `cron` carries the due time as deadline (the tick's, unless told otherwise); `preview` publishes and logs nothing.

        The note that it writes, the cursor and the log change together, or not at all if the tick has been lost.
        """
        now, began = self.identities.now(), self.identities.monotonic()
        run = GanaRun(
            id=self.identities.new_id(),
            gana_id=gana.id,
            due_at=tick.due_at if tick is not None else None,
            status="running",
            started_at=now,
            by=self.by,
        )
        if mode == "preview":
            jobs = GanaJobs(self.generate, gana, None, watch)
            return self._ended(run, await self._attempt(gana, mode, jobs), began)
        claim = tick or await self.ganas.claim(gana.id, None, None, by=self.by, now=now)
        if claim is None:
            busy = _Work()
            busy.skip("already_running", "It runs already. One run at a time.")
            return await self._logged(self._ended(run, busy, began))
        if mode == "cron":
            deadline = deadline or claim.due_at or now
        jobs = GanaJobs(self.generate, gana, deadline if mode == "cron" else None, watch)
        return await self._claimed_run(gana, mode, claim, run, jobs, began)

    def stop(self, gana_id: str) -> None:
        """Ends a run at its next token because the user says so; its tick counts as done."""
        jobs = self._running.get(gana_id)
        if jobs is not None:
            jobs.stop()

    async def _claimed_run(
        self, gana: Gana, mode: GanaMode, claim: Tick, run: GanaRun, jobs: GanaJobs, began: float
    ) -> GanaRun:
        self._running[gana.id] = jobs
        settled = False
        lost = "The program was closed, or gave way. Its tick stays due."
        try:
            await self.ganas.put_run(run)
            async with self.leases.hold(claim):
                # Between the caller's look and the claim another run may have ended, and moved the cursor.
                gana = await self.ganas.get(gana.id)
                work = await self._attempt(gana, mode, jobs)
            ended = await self._told_when_again(gana, self._ended(run, work, began))
            settled = await self.ganas.complete(claim, ended, cursor=work.cursor, publish=work.note)
            if not settled:
                lost = "Another process took its tick over."
        except TickLost as error:
            lost = str(error)
        except _TRY_LATER as error:
            lost = str(error)
        finally:
            # A run that lost its claim may end while the one that took it over goes on.
            if self._running.get(gana.id) is jobs:
                del self._running[gana.id]
            if not settled:
                ended = await self._give_back(claim, run, lost, began)
        if settled:
            if ended.output_note_id is not None:
                self.material.changes.announce([ended.output_note_id])
            await self._retire(gana, mode, claim, ended)
            ended = await self._tell_webhook(gana, ended)
        return ended

    async def _give_back(self, claim: Tick, run: GanaRun, why: str, began: float) -> GanaRun:
        """Leaves the tick due, unless the run was completed while it was being cancelled."""
        await self.ganas.release(claim)
        for logged in await self.ganas.runs(run.gana_id, limit=RUNS_PER_GANA):
            if logged.id == run.id and logged.status != "running" and logged.reason != "cancelled":
                return logged
        work = _Work()
        try:
            await self.ganas.get(run.gana_id)
        except GanaNotFound:
            why = "It was removed while it ran, and what it was writing was not kept."
        work.skip("cancelled", why)
        return await self._logged(self._ended(run, work, began))

    async def _attempt(self, gana: Gana, mode: GanaMode, jobs: GanaJobs) -> _Work:
        """The run without its consequences. Raises only what leaves the tick due."""
        work = _Work()
        try:
            await self._think(gana, mode, jobs, work)
        except (UnknownModel, ModelDamaged) as error:
            work.skip("no_model", str(error))
        except _TRY_LATER as error:
            if mode == "cron" and not jobs.stopped:
                raise
            if jobs.stopped:
                work.skip("stopped", "You stopped it.")
            else:
                work.skip("cancelled", str(error))
        except UniunError as error:
            work.fail(str(error))
        except Exception as error:  # noqa: BLE001 - one Gana's trouble must not keep the others from running
            work.fail(f"Something unexpected happened ({type(error).__name__}: {error}).")
        if work.status != "succeeded" and work.reason != "nothing_to_say":
            work.cursor = None
        work.tokens, work.preemptions = jobs.tokens, jobs.preemptions
        return work

    async def _think(self, gana: Gana, mode: GanaMode, jobs: GanaJobs, work: _Work) -> None:
        draft = gana.draft
        if self.by == "background" and draft.needs_app:
            return work.skip("needs_app", "It calls tools or a webhook, which only the app does.")
        model = self.models.get(draft.model or self.models.default_name())
        context = model.context_tokens or UNKNOWN_CONTEXT_TOKENS
        batch = await self._input(gana, mode, context, work)
        if watches(draft) and not batch.notes:
            return work.skip("no_new_input", await self._why_nothing(draft))
        work.inputs = tuple(note.id for note in batch.notes)
        work.cursor = batch.cursor
        knowledge = await self._knowledge(gana, batch, int(context * KNOWLEDGE_SHARE))
        longest = min(LONGEST_ANSWER_TOKENS, int(context * ANSWER_SHARE))
        if draft.agentic:
            found = int(context * TOOL_SHARE)
            tools = GraphTools(self.material.notes, self.material.knowledge, draft.manas_ids, found)
            asked = prompt.messages(draft.task, batch.text, knowledge, rounds=MAX_ROUNDS)
            work.output = await jobs.converse(model.name, asked, longest, tools)
        else:
            asked = prompt.messages(draft.task, batch.text, knowledge)
            work.output = prompt.read_output(await jobs.answer(model.name, asked, longest))
        if not work.output:
            return work.skip("nothing_to_say", f"It found nothing worth saying. {work.detail}".strip())
        tags = (draft.output_tag,) if draft.output_tag else ()
        if mode != "preview":
            work.note = self.material.compose(
                NoteDraft(text=work.output, tags=tags, source="gana", origin=gana.id)
            )
        return None

    async def _input(self, gana: Gana, mode: GanaMode, context: int, work: _Work) -> InputBatch:
        if not watches(gana.draft):
            return InputBatch((), "", None)
        budget = min(MAX_INPUT_TOKENS, int(context * INPUT_SHARE))
        # A reaction comes again when the note has been left alone; others might come a day later.
        whole_at = self.identities.now() if mode == "cron" and gana.draft.reactive else None
        batch = await read_input(self.material.notes, gana.draft, gana.cursor, budget, whole_at=whole_at)
        if not batch.notes and mode == "preview":
            batch = await newest_input(self.material.notes, gana.draft, budget)
            work.detail = OLD_NOTES
        return batch

    async def _why_nothing(self, draft: GanaDraft) -> str:
        if await self.material.notes.count(tag=draft.input_tag, manas_id=draft.input_manas_id):
            return "No note is new since its last run."
        if draft.input_tag is not None:
            return f"No note is tagged {draft.input_tag} yet."
        return "No note is in the Manas that it watches yet."

    async def writing(self, gana: Gana) -> Note | None:
        """The note that its reaction waits for, since somebody is writing it."""
        if not (gana.enabled and gana.draft.reactive):
            return None
        found = await self.material.notes.arrived_since(
            gana.cursor, tag=gana.draft.input_tag, manas_id=gana.draft.input_manas_id, limit=1
        )
        now = self.identities.now()
        return next((one.note for one in found if being_written(one.note, now)), None)

    async def _knowledge(self, gana: Gana, batch: InputBatch, budget: int) -> str:
        if not gana.draft.manas_ids:
            return ""
        question = "\n".join([gana.draft.task, *(note.title for note in batch.notes)])
        passages = await self.material.passages(question, gana.draft.manas_ids, budget)
        inputs = [note.id for note in batch.notes]
        return await knowledge_text(self.material.notes, passages, inputs, budget)

    def _ended(self, run: GanaRun, work: _Work, began: float) -> GanaRun:
        return run.model_copy(
            update={
                "status": work.status,
                "reason": work.reason,
                "detail": work.detail,
                "input_note_ids": work.inputs,
                "output": work.output,
                "output_note_id": work.note.id if work.note is not None else None,
                "seconds": self.identities.monotonic() - began,
                "tokens": work.tokens,
                "preemptions": work.preemptions,
            }
        )

    async def _told_when_again(self, gana: Gana, run: GanaRun) -> GanaRun:
        """Of a reaction, which nobody would expect again else."""
        if not (gana.enabled and gana.draft.reactive and tries_again(run)):
            return run
        logged = await self.ganas.runs(gana.id, limit=RUNS_PER_GANA)
        pause = pause_after((run, *(one for one in logged if one.id != run.id)))
        again = f"It tries again in about {counted(round(pause.total_seconds() / 60), 'minute')}."
        return run.model_copy(update={"detail": f"{run.detail} {again}".strip()})

    async def _logged(self, run: GanaRun) -> GanaRun:
        await self.ganas.put_run(run)
        return run

    async def _retire(self, gana: Gana, mode: GanaMode, claim: Tick, run: GanaRun) -> None:
        """A one-shot Gana is off once it has fired."""
        fired = claim.due_at is not None or run.status == "succeeded"
        if gana.draft.mode == "one_shot" and mode == "cron" and fired:
            latest = await self.ganas.get(gana.id)
            await self.ganas.put(latest.model_copy(update={"enabled": False, "due_at": None}))

    async def _tell_webhook(self, gana: Gana, run: GanaRun) -> GanaRun:
        """After the note is safe, so at most once; the address is the user's and nothing else."""
        if gana.draft.webhook is None or run.status != "succeeded":
            return run
        body = {
            "gana": gana.draft.name,
            "run": run.id,
            "note": run.output_note_id or "",
            "text": run.output,
        }
        try:
            await self.webhook.post(str(gana.draft.webhook), body)
        except WebhookFailed as error:
            return await self._logged(run.model_copy(update={"detail": f"The note was written. {error}"}))
        return run
