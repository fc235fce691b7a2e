"""The scheduler of a running server, as if it were here: no second model is loaded."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Annotated, Any, Self

from pydantic import Field, TypeAdapter, ValidationError

from data.clock import Clock
from data.presence import ServerAddress
from data.remote_app.connection import ServerConnection
from data.scheduling.handle import CallerHandle
from domain.entities.llm import (
    Finished,
    GenerationEvent,
    GenerationRequest,
    LlmTaskKind,
    Preempted,
    Prefilling,
    TextDelta,
    Waiting,
)
from domain.entities.scheduler import (
    History,
    SchedulerChange,
    SchedulerMetrics,
    SchedulerSnapshot,
)
from domain.errors import EngineError, JobCancelled, UniunError
from domain.repositories.model_store import ModelStore

MAX_JOBS = 1_000
_EVENT: TypeAdapter[GenerationEvent] = TypeAdapter(Annotated[GenerationEvent, Field(discriminator="type")])
_CHANGE: TypeAdapter[SchedulerChange] = TypeAdapter(Annotated[SchedulerChange, Field(discriminator="type")])


class RemoteScheduler:
    """Implements `SchedulerCoordinator` and `SchedulerHistory`; an async context manager that owns the connection.

    What ends the server ends its jobs with `ServerLost`. A full queue is told by the job's events, not by `submit`.
    """

    def __init__(
        self,
        address: ServerAddress,
        look: Callable[[], ServerAddress | None],
        store: ModelStore,
        clock: Clock,
    ) -> None:
        self._server = ServerConnection(address, look)
        self._store = store
        self._clock = clock
        self._ids = itertools.count(1)
        self._jobs: dict[str, _Job] = {}
        self._surface: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.__aexit__(kind, error, trace)

    # -- SchedulerCoordinator

    def submit(self, request: GenerationRequest) -> CallerHandle:
        if self._closed:
            raise EngineError("UNIUN is closing and takes no more jobs.")
        self._store.get(request.model)
        if len(self._jobs) >= MAX_JOBS:
            raise EngineError(
                f"{MAX_JOBS} jobs of this program wait for the server. Try again when some have run."
            )
        job = _Job(f"{request.kind}-{next(self._ids)}", self._clock.monotonic(), self._end)
        self._jobs[job.id] = job
        self._spawn(self._run(job, request))
        return job.handle

    def set_foreground(self, kind: LlmTaskKind | None, subject: str | None = None) -> None:
        if self._surface is not None:
            self._surface.cancel()
            self._surface = None
        if kind is not None and not self._closed:
            self._surface = self._spawn(self._look_at(json.dumps({"kind": kind, "subject": subject})))

    async def switch_model(self, model: str, *, force: bool = False) -> None:
        if self._closed:
            raise EngineError("UNIUN is closing and loads no more models.")
        self._store.get(model)
        content = json.dumps({"model": model, "force": force})
        async with self._server.lines("POST", "/switch", content) as lines:
            async for line in lines:
                if line.get("done"):
                    return
        raise self._server.lost()

    def snapshot(self) -> SchedulerSnapshot:
        return SchedulerSnapshot.model_validate(self._server.get("/snapshot"))

    # -- SchedulerHistory

    def recent(self) -> History:
        return History.model_validate(self._server.get("/history"))

    async def watch(self) -> AsyncIterator[SchedulerChange]:
        async with self._server.lines("GET", "/watch") as lines:
            async for line in lines:
                yield _CHANGE.validate_python(line["change"])

    def export(self) -> tuple[str, ...]:
        return tuple(self._server.get("/export"))

    def metrics(self) -> SchedulerMetrics:
        return SchedulerMetrics.model_validate(self._server.get("/metrics"))

    # -- one connection for each job and for the surface

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _end(self, job_id: str) -> None:
        if job_id in self._jobs:
            self._jobs[job_id].stopped.set()

    async def _run(self, job: "_Job", request: GenerationRequest) -> None:
        try:
            reading = asyncio.ensure_future(self._read(job, request))
            stopped = asyncio.ensure_future(job.stopped.wait())
            try:
                await asyncio.wait((reading, stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
        except UniunError as error:
            job.handle.fail(error)
        except (ValidationError, ValueError, KeyError):
            job.handle.fail(
                EngineError("The UNIUN server is of another version than this program. Start it again.")
            )
        finally:
            self._jobs.pop(job.id, None)
            job.known.set()
            if not job.handle.done:
                why = (
                    "UNIUN is closing, so the job was cancelled."
                    if self._closed
                    else f"Job {job.id} was cancelled."
                )
                job.handle.fail(JobCancelled(why))

    async def _read(self, job: "_Job", request: GenerationRequest) -> None:
        first = self._jobs.get(request.waits_for or "")
        if first is not None:
            await first.known.wait()
            request = request.model_copy(update={"waits_for": first.id_there})
        async with self._server.lines("POST", "/jobs", request.model_dump_json()) as lines:
            async for line in lines:
                if "job" in line:
                    job.id_there = line["job"]
                    job.known.set()
                if "event" in line:
                    job.take(_EVENT.validate_python(line["event"]))
                if job.handle.done:
                    return
        raise self._server.lost()

    async def _look_at(self, surface: str) -> None:
        with suppress(UniunError):  # with the server goes what was looked at
            async with self._server.lines("POST", "/surface", surface) as lines:
                async for _ in lines:
                    pass


class _Job:
    """What the server says about a job goes into the same buffer as at home."""

    def __init__(self, job_id: str, submitted_at: float, cancel: Callable[[str], None]) -> None:
        self.id = job_id
        self.id_there: str | None = None
        """In the server, once `known`; none for a job that never came so far."""
        self.known = asyncio.Event()
        self.stopped = asyncio.Event()
        self.handle = CallerHandle(job_id, submitted_at, cancel, lambda caller_id: self._waiting)
        self._waiting: Waiting | None = None

    def take(self, event: GenerationEvent) -> None:
        if not isinstance(event, Waiting):
            self._waiting = None
        match event:
            case Waiting():
                self._waiting = event
                self.handle.moved()
            case Prefilling():
                self.handle.prefilling(event.done_tokens, event.total_tokens)
            case TextDelta():
                self.handle.text(event.text, event.tokens)
            case Preempted():
                self.handle.preempted(event.reason)
            case Finished():
                self.handle.finish(event.result)
