"""Runs the scheduler for real: its instructions become engine calls, the engine's answers become events."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from data.clock import Clock
from data.scheduling import events as ev
from data.scheduling.config import SchedulerConfig
from data.scheduling.events import Cause, End, Outcome, Record
from data.scheduling.handle import CallerHandle
from data.scheduling.inspection import Gauges, gauges, snapshot
from data.scheduling.jobs import JobSpec, Phase
from data.scheduling.scheduler import InferenceScheduler
from data.scheduling.uniun_policy import T1
from data.scheduling.waits import Waits
from data.scheduling.work import Work, runner_job
from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.entities.scheduler import JobView, SchedulerSnapshot
from domain.errors import (
    EngineError,
    EngineLost,
    InvalidRequest,
    JobCancelled,
    JobStopped,
    ModelLoadFailed,
    QueueFull,
    UniunError,
)
from domain.repositories.inference_runner import InferenceRunner, RunnerProgress
from domain.repositories.model_store import ModelStore

Answer = TypeVar("Answer")


class Dispatcher:
    """Implements `SchedulerCoordinator`; an async context manager that owns the engine.

    All of its state lives on one event loop. `observe` adds a listener to the trace.
    """

    def __init__(
        self,
        runner: InferenceRunner,
        store: ModelStore,
        clock: Clock,
        config: SchedulerConfig | None = None,
        *,
        policy: str = "uniun",
        ids: Iterator[int] | None = None,
        resident: str | None = None,
        slots: int = 1,
    ) -> None:
        """`ids` numbers the jobs where several dispatchers share the numbers. `resident` is loaded already, with `slots`."""
        self._runner = runner
        self._store = store
        self._clock = clock
        self._scheduler = InferenceScheduler(
            config, policy=policy, at=clock.monotonic(), resident=resident, slots=slots
        )
        self._works: dict[str, Work] = {}
        self._callers: dict[str, CallerHandle] = {}
        self._switches: dict[str, asyncio.Future[None]] = {}
        self._load_errors: dict[str, UniunError] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._ids = ids if ids is not None else itertools.count(1)
        self._observers: list[Callable[[Record], None]] = []
        self._token_observers: list[Callable[[LlmTaskKind, int], None]] = []
        self._waits = Waits(self._scheduler, self._now)
        self._closed = False

    async def __aenter__(self) -> "Dispatcher":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends every job with `JobCancelled` and the engine with it."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for handle in self._callers.values():
            handle.fail(JobCancelled("UNIUN is closing, so the job was cancelled."))
        for future in self._switches.values():
            future.cancel()
        self._callers.clear()
        self._works.clear()
        await self._runner.aclose()

    def observe(self, listener: Callable[[Record], None]) -> None:
        """Calls `listener` with every trace record, in order, on the event loop."""
        self._observers.append(listener)

    def observe_tokens(self, listener: Callable[[LlmTaskKind, int], None]) -> None:
        """Calls `listener` with the kind of a job and how many tokens it has just produced."""
        self._token_observers.append(listener)

    def gauges(self) -> Gauges:
        """Queue lengths and shares, now."""
        return gauges(self._scheduler, self._now())

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""
        return not self._scheduler.jobs

    @property
    def somebody_waits(self) -> bool:
        """Whether what runs is waited for: a chat, or what the user looks at or a program waits for."""
        return any(self._scheduler.policy.tier(job) <= T1 for job in self._scheduler.on_device.values())

    def knows(self, caller_id: str) -> bool:
        """Whether a job of this name is live here."""
        return caller_id in self._scheduler.callers

    # -- the port

    def submit(self, request: GenerationRequest) -> CallerHandle:
        if self._closed:
            raise EngineError("UNIUN is closing and takes no more jobs.")
        self._store.get(request.model)
        caller_id = f"{request.kind}-{next(self._ids)}"
        now = self._now()
        deadline = None
        if request.deadline is not None:
            deadline = now + (request.deadline - self._clock.now()).total_seconds()
        spec = JobSpec(
            id=caller_id,
            kind=request.kind,
            flow=request.flow,
            model=request.model,
            deadline=deadline,
            foreground_hint=request.foreground_hint,
            weight=request.weight,
            coalesce_key=request.coalesce_key,
            waits_for=request.waits_for,
            ahead=request.ahead,
            rank=request.rank,
            keep_alive_s=request.keep_alive_s,
        )
        handle = CallerHandle(caller_id, now, self._cancel, self._waits.of)
        self._callers[caller_id] = handle
        self._feed(ev.Submit(now, spec), admit=lambda: self._admit(caller_id, request, handle))
        if handle.error is not None:
            raise handle.error
        return handle

    def set_foreground(self, kind: LlmTaskKind | None, subject: str | None = None) -> None:
        self._feed(ev.SetForeground(self._now(), kind, subject))

    def configure(self, config: SchedulerConfig) -> None:
        """Tunes the policy from now on."""
        self._feed(ev.Configure(self._now(), config))

    def reload(self) -> None:
        """Loads the resident model anew; what runs goes on afterwards from its tokens."""
        self._feed(ev.Reload(self._now()))

    async def switch_model(self, model: str, *, force: bool = False) -> None:
        if self._closed:
            raise EngineError("UNIUN is closing and loads no more models.")
        self._store.get(model)
        switch_id = f"{LlmTaskKind.MODEL_SWITCH}-{next(self._ids)}"
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._switches[switch_id] = future
        self._feed(ev.SwitchModel(self._now(), switch_id, model, force))
        try:
            await future
        except asyncio.CancelledError:
            if not self._closed:
                self._feed(ev.Cancel(self._now(), switch_id))
            raise
        finally:
            self._switches.pop(switch_id, None)

    def snapshot(self) -> SchedulerSnapshot:
        on_device = self._scheduler.on_device
        tokens = {name: self._works[name].tokens for name in on_device if name in self._works}
        view = snapshot(self._scheduler, self._now(), tokens)
        running = None if view.running is None else self._with_progress(view.running)
        also = tuple(self._with_progress(job) for job in view.also_running)
        return view.model_copy(update={"running": running, "also_running": also})

    def _with_progress(self, job: JobView) -> JobView:
        """The engine's part of a running job: how far it has read and written."""
        work = self._works.get(job.id)
        if work is None:
            return job
        progress = work.progress
        return job.model_copy(
            update={
                "max_tokens": work.runner_job.max_tokens,
                "prompt_tokens": None if progress is None else progress.prompt_tokens,
                "prefilled_tokens": None if progress is None else progress.prefilled_tokens,
            }
        )

    # -- events in, instructions out

    def _now(self) -> float:
        return max(self._clock.monotonic(), self._scheduler.now)

    def _feed(self, event: ev.Event, admit: Callable[[], None] | None = None) -> None:
        step = self._scheduler.handle(event)
        if admit is not None:
            admit()
        for record in step.records:
            self._tell(record)
        for instruction in step.instructions:
            self._obey(instruction)

    def _tell(self, record: Record) -> None:
        for listener in self._observers:
            listener(record)

    def _obey(self, instruction: ev.Instruction) -> None:
        match instruction:
            case ev.Start(job_id=job_id):
                self._runs[job_id] = self._spawn(self._run(self._works[job_id]))
            case ev.Stop(job_id=job_id):
                self._runner.stop(job_id)
            case ev.Load(model=model):
                self._spawn(self._load(model))
            case ev.Unload():
                self._spawn(self._runner.unload())
            case ev.End():
                self._answer(instruction)
            case ev.Release(job_id=job_id):
                self._works.pop(job_id, None)
                self._runner.forget(job_id)
            case ev.Wake(at=at):
                self._set_timer(at)

    def _spawn(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _set_timer(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None and not self._closed:
            delay = max(0.0, at - self._clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._feed(ev.Tick(self._now()))

    # -- the device

    async def _load(self, model: str) -> None:
        event: ev.Event
        try:
            loaded = await _answered(self._runner.load(model))
            event = ev.Loaded(self._now(), model, loaded.slots)
        except EngineLost as error:
            event = ev.EngineDied(self._now(), str(error))
        except UniunError as error:
            self._load_errors[model] = error
            event = ev.LoadFailed(self._now(), model, str(error))
        except Exception as error:  # noqa: BLE001 - the device must never be left waiting for an answer
            event = ev.LoadFailed(self._now(), model, f"{type(error).__name__}: {error}")
        self._feed(event)
        self._load_errors.pop(model, None)

    async def _run(self, work: Work) -> None:
        event: ev.Event
        job_id = work.job.id
        try:
            runner_job = work.runner_job.model_copy(update={"tier": self._scheduler.policy.tier(work.job)})
            run = self._runner.run(runner_job, lambda progress: self._progress(work, progress))
            outcome = await _answered(run)
            work.outcome = outcome
            if outcome.status == "finished":
                event = ev.Completed(self._now(), job_id, outcome.tokens_done)
            else:
                event = ev.Stopped(self._now(), job_id, outcome.tokens_done)
        except EngineLost as error:
            await self._give_up_others(job_id)
            event = ev.EngineDied(self._now(), str(error))
        except UniunError as error:
            work.error = error
            event = ev.JobFailed(self._now(), job_id, str(error))
        except Exception as error:  # noqa: BLE001 - the device must never be left waiting for an answer
            work.error = EngineError(
                f"The engine failed on job {job_id}: {type(error).__name__}: {error}. Try again."
            )
            event = ev.JobFailed(self._now(), job_id, str(work.error))
        finally:
            del self._runs[job_id]
        reason = work.job.stop_reason
        self._feed(event)
        if work.job.phase is Phase.QUEUED and reason:
            for handle in work.handles.values():
                handle.preempted(reason)

    async def _give_up_others(self, job_id: str) -> None:
        """The engine is lost for all that run on it: none may answer once the scheduler has put them back."""
        others = [task for name, task in self._runs.items() if name != job_id]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _progress(self, work: Work, progress: RunnerProgress) -> None:
        work.progress = progress
        if progress.tokens_done > work.tokens:
            for listener in self._token_observers:
                listener(work.job.kind, progress.tokens_done - work.tokens)
            work.tokens = progress.tokens_done
            if work.first_token_at is None:
                self._first_token(work)
        if progress.text:
            work.text.append(progress.text)
            for handle in work.handles.values():
                handle.text(progress.text, progress.tokens_done)
        elif not progress.tokens_done:
            for handle in work.handles.values():
                handle.prefilling(progress.prefilled_tokens, progress.prompt_tokens)

    def _first_token(self, work: Work) -> None:
        """The scheduler is not told of tokens; the trace is."""
        work.first_token_at = self._now()
        job = work.job
        tier = self._scheduler.policy.tier(job)
        for caller, spec in job.callers.items():
            fields = {"job": caller, "kind": job.kind, "flow": spec.flow, "tier": tier, "model": job.model}
            self._tell(Record(work.first_token_at, "first_token", fields))

    # -- callers

    def _admit(self, caller_id: str, request: GenerationRequest, handle: CallerHandle) -> None:
        """The scheduler has taken the request: as a job of its own, or as one more listener of another."""
        job = self._scheduler.callers.get(caller_id)
        if job is None:
            return
        work = self._works.get(job.id)
        if work is None:
            work = self._works[job.id] = Work(job, runner_job(job, request))
        elif work.text:
            handle.text("".join(work.text), work.tokens)
        work.handles[caller_id] = handle

    def _cancel(self, caller_id: str) -> None:
        if not self._closed and caller_id in self._callers:
            self._feed(ev.Cancel(self._now(), caller_id))

    def _answer(self, end: End) -> None:
        future = self._switches.get(end.id)
        if future is not None:
            if not future.done():
                if end.outcome is Outcome.FINISHED:
                    future.set_result(None)
                else:
                    future.set_exception(self._error(end, None))
            return
        handle = self._callers.pop(end.id, None)
        if handle is None:
            return
        work = self._works.get(end.job_id)
        if work is not None:
            work.handles.pop(end.id, None)
        if end.outcome is Outcome.FINISHED and work is not None and work.outcome is not None:
            handle.finish(work.result(work.outcome, handle.submitted_at))
        else:
            handle.fail(self._error(end, work))

    def _error(self, end: End, work: Work | None) -> UniunError:
        match end.cause:
            case Cause.QUEUE_FULL:
                return QueueFull(end.limit, end.depth, end.flow)
            case Cause.INVALID:
                return InvalidRequest(f"Job {end.id} was refused: {end.error}.")
            case Cause.FORCED_SWITCH:
                return JobStopped(f"The answer was {end.error}.")
            case Cause.LOAD_FAILED:
                known = next((e for m, e in self._load_errors.items() if f"model {m} " in end.error), None)
                return known or ModelLoadFailed(f"{end.error[:1].upper()}{end.error[1:]}")
            case Cause.ENGINE_LOST:
                return EngineError(
                    f"Job {end.id} failed: {end.error.rstrip('.')}. Try again, or see `uniun doctor`."
                )
            case Cause.JOB_ERROR if work is not None and work.error is not None:
                return work.error
            case _:
                return JobCancelled(f"Job {end.id} was cancelled.")


async def _answered(call: Awaitable[Answer]) -> Answer:
    """A cancellation that nobody asked for is an error like any other: untold, the device would wait for its answer for ever."""
    try:
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise EngineError("The engine gave up in the middle. Try again.") from None
