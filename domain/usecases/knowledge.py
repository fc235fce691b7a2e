"""Reading notes into the knowledge graph, and looking at it."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from domain.entities.entity import Entity
from domain.entities.knowledge import Extraction, Neighbourhood, NoteReading
from domain.entities.llm import (
    GenerationEvent,
    GenerationResult,
    LlmTaskKind,
    Preempted,
    Prefilling,
    Sampling,
    TextDelta,
)
from domain.entities.note import Note
from domain.errors import EngineError, EngineMissing, InvalidRequest, NoteNotFound
from domain.prompts import extraction as prompt
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.model_store import ModelStore
from domain.repositories.notes import NoteRepository
from domain.repositories.scheduler_coordinator import SchedulerCoordinator
from domain.repositories.work_claims import WorkClaims
from domain.usecases.extraction_check import BadAnswer, checked, key
from domain.usecases.llm import UNKNOWN_CONTEXT_TOKENS, GenerateOneShotUseCase
from domain.usecases.text_budget import cut_middle

ATTEMPTS = 3
"""So often a note is tried before it counts as failed."""
NOTE_SHARE = 0.5
"""Of the context, for the note; halved at each further attempt. The instructions and the answer have the rest."""
ANSWER_SHARE = 0.3
LONGEST_ANSWER_TOKENS = 1024
LONGEST_NOTE_TOKENS = 6_000
"""A larger context is not filled: reading more would cost minutes, and a list of twelve concepts gains little by it."""

_LOOK_AHEAD = 20
OLD_TURN = 4
"""Every so manieth note is the one that waits longest, so that none waits for ever while others are changed."""

Reading = Literal["read", "not_pending", "being_read", "taken", "changed", "refused", "gone"]
"""What became of a note. `taken`: another process reads it, or has just read it. `changed`: it changed while it was read,
and is pending again. `refused`: one attempt failed; the reason is on the list."""


@dataclass(slots=True)
class _Try:
    """One attempt at a note. Several callers share it when the scheduler made one job of their requests."""

    callers: int = 0
    counted: bool = False


class ExtractKnowledgeUseCase:
    """Reads one note. One object for the whole program, so that it knows what is being read."""

    def __init__(
        self,
        generate: GenerateOneShotUseCase,
        models: ModelStore,
        notes: NoteRepository,
        knowledge: KnowledgeRepository,
        claims: WorkClaims,
    ) -> None:
        self._generate = generate
        self._models = models
        self._notes = notes
        self._knowledge = knowledge
        self._claims = claims
        self._begun: set[str] = set()
        """Coalesce keys of jobs that have started; a second request can no longer join those."""
        self._tries: dict[tuple[str, int], _Try] = {}
        """By coalesce key and attempt, while anybody waits for it."""

    async def __call__(
        self,
        note_id: str,
        *,
        opened: bool = False,
        on_event: Callable[[GenerationEvent], None] = lambda event: None,
    ) -> Reading:
        """Reads a pending note with the default model and keeps what it says.

        With `opened` the user looks at the note: the job is hoisted, and joins the backfill's if that is still queued.
        If it runs already, it is hoisted by what the user looks at and nothing is submitted (`being_read`). It does not
        wait for another process that has the note in its queue.

        A bad answer and a failed job count as attempts. What is not the note's fault does not, and is raised:
        `ModelError`, `EngineMissing`, `QueueFull`, `JobCancelled`, `JobStopped`.
        """
        pending = await self._knowledge.pending_of(note_id)
        if pending is None or pending.state == "failed":
            return "not_pending"
        try:
            note = await self._notes.get(note_id)
        except NoteNotFound:
            return "gone"
        if not note.text.strip():
            # Nothing is asked about it: a model would find concepts in the title, and in nothing.
            return await self._keep(note, Extraction())
        work = f"read/{note_id}/{note.content_hash}"
        if work in self._begun:
            return "being_read"
        async with self._claims.hold("read", [note_id]) as ours:
            if not ours and not (opened and await self._knowledge.pending_of(note_id)):
                return "taken"
            return await self._read(note, pending.attempts, work, opened, on_event)

    async def _read(
        self,
        note: Note,
        attempts: int,
        work: str,
        opened: bool,
        on_event: Callable[[GenerationEvent], None],
    ) -> Reading:
        def watch(event: GenerationEvent) -> None:
            if isinstance(event, Prefilling | TextDelta | Preempted):
                self._begun.add(work)
            on_event(event)

        attempt = (work, attempts)
        shared = self._tries.setdefault(attempt, _Try())
        shared.callers += 1
        try:
            text = cut_middle(note.text, self._room() >> attempts)
            result = await self._ask(note, text, attempts, work, opened, watch)
            extraction = checked(result, note.title, text)
        except EngineMissing:
            raise
        except (EngineError, InvalidRequest, BadAnswer) as error:
            if not shared.counted:
                shared.counted = True
                await self._knowledge.fail(note.id, note.content_hash, str(error), give_up_after=ATTEMPTS)
            return "refused"
        finally:
            self._begun.discard(work)
            shared.callers -= 1
            if not shared.callers:
                del self._tries[attempt]
        return await self._keep(note, extraction)

    async def _keep(self, note: Note, extraction: Extraction) -> Reading:
        stored = await self._knowledge.assert_extraction(note.id, note.content_hash, extraction)
        return "read" if stored else "changed"

    async def _ask(
        self,
        note: Note,
        text: str,
        attempts: int,
        work: str,
        opened: bool,
        watch: Callable[[GenerationEvent], None],
    ) -> GenerationResult:
        return await self._generate(
            LlmTaskKind.EXTRACT,
            note.id,
            prompt.messages(note.title, text),
            on_event=watch,
            json_schema=prompt.schema(text),
            max_tokens=min(LONGEST_ANSWER_TOKENS, max(1, int(self._context() * ANSWER_SHARE))),
            # The likeliest tokens first; the same again would fail in the same way.
            sampling=Sampling(temperature=0.4 * attempts, seed=attempts),
            foreground_hint=opened,
            coalesce_key=work,
        )

    def _room(self) -> int:
        return min(LONGEST_NOTE_TOKENS, int(self._context() * NOTE_SHARE))

    def _context(self) -> int:
        return self._models.get(self._models.default_name()).context_tokens or UNKNOWN_CONTEXT_TOKENS


class ReadingProgress(Entity):
    """One step of working off the list."""

    note_id: str
    title: str
    outcome: Reading
    done: int
    waiting: int
    """Notes that are still to be read."""
    failed: int


class ReadPendingNotesUseCase:
    """Works the list off, one note after another: the last changed first, and in every fourth turn the oldest."""

    def __init__(
        self, extract: ExtractKnowledgeUseCase, knowledge: KnowledgeRepository, notes: NoteRepository
    ) -> None:
        self._extract = extract
        self._knowledge = knowledge
        self._notes = notes

    async def __call__(
        self, on_event: Callable[[GenerationEvent], None] = lambda event: None
    ) -> AsyncGenerator[ReadingProgress, None]:
        """Ends when nothing waits any more. May be left at any moment: what was read is kept, the rest still waits.

        Raises what `ExtractKnowledgeUseCase` raises.
        """
        done = turns = 0
        while (step := await self._next(on_event, oldest=turns % OLD_TURN == OLD_TURN - 1)) is not None:
            note_id, outcome = step
            turns += 1
            done += outcome == "read"
            counts = await self._knowledge.pending_counts()
            found = await self._notes.many([note_id])
            yield ReadingProgress(
                note_id=note_id,
                title=found[0].title if found else "",
                outcome=outcome,
                done=done,
                waiting=counts.get("waiting", 0),
                failed=counts.get("failed", 0),
            )

    async def _next(
        self, on_event: Callable[[GenerationEvent], None], *, oldest: bool
    ) -> tuple[str, Reading] | None:
        """Reads the first note that is not being read already, by whatever process; none when there is no such note."""
        for pending in await self._knowledge.pending(_LOOK_AHEAD, oldest=oldest):
            outcome = await self._extract(pending.note_id, on_event=on_event)
            if outcome not in ("being_read", "taken", "gone", "not_pending"):
                return pending.note_id, outcome
        return None


class ExtractionFailure(Entity):
    """A note that could not be read."""

    note_id: str
    title: str
    error: str
    attempts: int


class ListFailuresUseCase:
    """Notes that were given up, and why."""

    def __init__(self, knowledge: KnowledgeRepository, notes: NoteRepository) -> None:
        self._knowledge = knowledge
        self._notes = notes

    async def __call__(self, limit: int = 100) -> tuple[ExtractionFailure, ...]:
        """Newest first."""
        failures = await self._knowledge.failures(limit)
        titles = {note.id: note.title for note in await self._notes.many([f.note_id for f in failures])}
        return tuple(
            ExtractionFailure(
                note_id=failure.note_id,
                title=titles.get(failure.note_id, ""),
                error=failure.error or "",
                attempts=failure.attempts,
            )
            for failure in failures
        )


class RetryExtractionUseCase:
    """Makes notes that were given up wait again."""

    def __init__(self, knowledge: KnowledgeRepository) -> None:
        self._knowledge = knowledge

    async def __call__(self, note_ids: Sequence[str] | None = None) -> int:
        """All of them when none are named. Returns how many."""
        return await self._knowledge.retry(note_ids)


class WatchReadingUseCase:
    """What becomes of one note at this moment."""

    def __init__(self, knowledge: KnowledgeRepository, coordinator: SchedulerCoordinator) -> None:
        self._knowledge = knowledge
        self._coordinator = coordinator

    async def __call__(self, note_id: str) -> NoteReading:
        """A note that is gone counts as read."""
        pending = await self._knowledge.pending_of(note_id)
        if pending is None:
            return NoteReading(state="read")
        if pending.state == "failed":
            return NoteReading(state="failed", error=pending.error)
        snapshot = self._coordinator.snapshot()
        running = snapshot.running
        if running is not None and (running.kind, running.flow) == (LlmTaskKind.EXTRACT, note_id):
            return NoteReading(state="reading", error=pending.error, tokens=running.tokens_done)
        for job in (job for jobs in snapshot.tiers.values() for job in jobs):
            if (job.kind, job.flow) == (LlmTaskKind.EXTRACT, note_id):
                return NoteReading(
                    state="waiting",
                    error=pending.error,
                    position=job.position,
                    estimated_start_s=job.estimated_start_s,
                )
        return NoteReading(state="waiting", error=pending.error)


class NotesNamingUseCase:
    """From a concept back to what was written about it."""

    def __init__(self, knowledge: KnowledgeRepository, notes: NoteRepository) -> None:
        self._knowledge = knowledge
        self._notes = notes

    async def __call__(self, concept_id: str, limit: int = 50) -> tuple[Note, ...]:
        """Notes that name the concept."""
        return await self._notes.many(await self._knowledge.notes_naming([concept_id], limit))


class ShowGraphUseCase:
    """The knowledge graph, or the part of it around what a name stands for."""

    def __init__(self, knowledge: KnowledgeRepository) -> None:
        self._knowledge = knowledge

    async def __call__(
        self, name: str | None = None, *, manas_id: str | None = None, hops: int = 1, limit: int = 100
    ) -> Neighbourhood:
        """Empty when nothing is called so."""
        if name is None:
            return await self._knowledge.graph(manas_id=manas_id, limit=limit)
        found = await self._knowledge.find_concepts(name)
        exact = [concept for concept in found if key(concept.name) == key(name)]
        return await self._knowledge.neighbours(
            [concept.id for concept in exact or found], hops=hops, limit=limit
        )
