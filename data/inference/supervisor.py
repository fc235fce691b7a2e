"""The runner that everything else sees: one engine process, started at the first load and replaced when it is lost."""

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import platform
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

import psutil
from pydantic import ValidationError

from data.children.lines import Line
from data.children.process import ChildProcess
from data.clock import Clock
from data.inference import protocol
from data.inference.batches import Batches
from data.inference.options import EngineOptions
from data.inference.process import ENGINE
from data.inference.start_pace import StartPace
from domain.entities.models import InstalledModel
from domain.errors import (
    EngineError,
    EngineLost,
    EngineMissing,
    ModelLoadFailed,
)
from domain.repositories.inference_runner import LoadedModel, RunnerJob, RunnerOutcome, RunnerProgress
from domain.repositories.model_store import ModelStore

_MAX_JOBS = 100_000


@dataclass
class _Job:
    """What must outlive the engine process: the tokens that the job has produced, and how its prompt was evaluated."""

    model: str
    since: datetime
    """When it first ran: the prompt may say what day it is."""
    produced: list[int] = field(default_factory=list)
    batches: Batches = field(default_factory=Batches)


class EngineRunner:
    """Implements `InferenceRunner` on a child process (see `data.inference.engine`).

    A child that dies, hangs or speaks nonsense is killed and `EngineLost` says why; the next `load` starts another.
    """

    def __init__(
        self,
        store: ModelStore,
        options: EngineOptions,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self.use(options)
        self._clock = clock
        self._sleep = sleep
        self._process: ChildProcess | None = None
        self._resident: LoadedModel | None = None
        self._loaded_with: EngineOptions | None = None
        self._jobs: dict[str, _Job] = {}
        self._running: str | None = None
        self._stop_early: str | None = None
        """A stop that came before its run: the next run of this job ends at its first boundary."""
        self._calls = 0
        self._line = asyncio.Lock()
        """Held while somebody speaks with the process."""
        self._watching: asyncio.Task[None] | None = None
        self._pace = StartPace(options.start_limit, options.start_window_s, clock)
        self._starting = asyncio.Lock()
        self._model_lost = False
        """The model that the caller believes to be loaded went with its process, and another process was started."""

    @property
    def pid(self) -> int | None:
        """Of the engine process, while there is one."""
        return self._process.pid if self._process is not None and self._process.alive else None

    async def answers(self) -> bool:
        """Whether the process gives a sign of life; one that works is watched by whoever gave it the work."""
        if self._line.locked():
            return self.pid is not None
        if self.pid is None and self._pace.wait_s() > 0:
            return False  # it was lost again and again
        limit_s = self._options.watchdog_s if self.pid is not None else self._options.load_floor_s
        try:
            process = await self._started()
            await self._call(process, {"do": "ping"}, limit_s, "being asked for a sign of life")
        except EngineLost:
            return False
        return True

    def use(self, options: EngineOptions) -> None:
        """From the next load on, which loads the resident model anew too."""
        threads = options.threads or psutil.cpu_count(logical=False)
        self._options = options.model_copy(update={"threads": threads})

    async def load(self, model: str) -> LoadedModel:
        up_to_date = self._loaded_with == self._options and self.pid is not None
        if self._resident is not None and self._resident.name == model and up_to_date:
            return self._resident
        await self.unload()
        installed = await asyncio.to_thread(self._store.get, model)
        # It looks through the installed packages, which takes as long as some tokens.
        backend, path = await asyncio.to_thread(self._choose, installed)
        process = await self._started()
        options = self._options
        line = {
            "do": "load",
            "model": model,
            "backend": backend,
            "path": str(path.resolve()),
            "options": options.model_dump(),
        }
        limit_s = options.load_floor_s + installed.size_bytes / options.load_bytes_per_s
        try:
            done = await self._call(process, line, limit_s, f"loading {model}", idle_s=options.watchdog_s)
        except (EngineLost, asyncio.CancelledError):
            process.kill()
            raise
        try:
            self._resident = LoadedModel(name=model, **done)
            self._loaded_with = options
            self._model_lost = False
        except (ValidationError, TypeError):
            raise await process.nonsense(f"loading {model}") from None
        return self._resident

    async def unload(self) -> None:
        if self._resident is None:
            return
        self._resident = None
        process = self._process
        if process is None or not process.alive:
            return
        try:
            await self._call(process, {"do": "unload"}, self._options.watchdog_s, "unloading")
        except EngineLost:
            return  # its memory is free, which is what was asked for
        except asyncio.CancelledError:
            process.kill()
            raise

    async def run(self, job: RunnerJob, emit: Callable[[RunnerProgress], None]) -> RunnerOutcome:
        if self._model_lost:
            raise EngineLost("The engine process was lost while nothing ran. Load the model again.")
        if self._resident is None or self._process is None:
            raise EngineError("No model is loaded. Load one before running a job.")
        state = self._job(job)
        request: Line = {
            "do": "run",
            "job": protocol.job_to_line(job),
            "produced": state.produced,
            "batches": state.batches.runs,
            "since": state.since.isoformat(),
        }
        process = self._process
        try:
            async with self._line:
                # Only now: a stop that was sent before the run itself would be one for nothing.
                self._running = job.id
                request["stop"], self._stop_early = self._stop_early == job.id, None
                outcome = await self._run(process, request, state, emit)
        except asyncio.CancelledError:
            self.forget(job.id)
            raise
        finally:
            if self._running == job.id:
                self._running = None
            if not process.alive:
                self._resident = None
        if outcome.status == "finished":
            self._pace.clear()
            self._jobs.pop(job.id, None)
        return outcome

    def stop(self, job_id: str) -> None:
        if self._running != job_id:
            self._stop_early = job_id
        elif self._process is not None:
            self._process.send({"do": "stop", "job": job_id})

    def forget(self, job_id: str) -> None:
        self._jobs.pop(job_id, None)
        if self._stop_early == job_id:
            self._stop_early = None
        if self._process is not None:
            self._process.send({"do": "forget", "job": job_id})

    async def aclose(self) -> None:
        self._resident = None
        if self._watching is not None:
            self._watching.cancel()
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    # Speaking with the process.

    async def _call(
        self, process: ChildProcess, line: Line, limit_s: float, doing: str, idle_s: float | None = None
    ) -> Line:
        """One question, one answer."""
        async with self._line:
            call = self._next_call()
            process.send({"id": call, **line})
            answer = await process.receive(limit_s, doing, idle_s=idle_s)
            return await self._answer(process, answer, call, doing)

    async def _run(
        self, process: ChildProcess, request: Line, job: _Job, emit: Callable[[RunnerProgress], None]
    ) -> RunnerOutcome:
        call, job_id = self._next_call(), request["job"]["id"]
        doing, limit_s = f"running job {job_id}", self._options.watchdog_s
        process.send({"id": call, **request})
        try:
            goes_on = True
            while goes_on:
                line = await process.receive(limit_s, doing)
                goes_on = _goes_on(line) and line.get("id") == call
                try:
                    progress = _progress(line, job) if line.get("id") == call else None
                except (ValueError, TypeError):
                    raise await process.nonsense(doing) from None
                if progress is not None:
                    emit(progress)
        except EngineLost:
            raise
        except BaseException:
            # Cancelled, or `emit` failed: the engine goes on until it is told.
            await self._abandon(process, call, job_id)
            raise
        done = await self._answer(process, line, call, doing)
        try:
            return RunnerOutcome.model_validate(done)
        except ValidationError:
            raise await process.nonsense(doing) from None

    async def _answer(self, process: ChildProcess, line: Line, call: int, doing: str) -> Line:
        """The result in the line; raises the error that it holds instead."""
        if line.get("id") == call:
            try:
                if "error" in line:
                    error = protocol.error_from_line(line["error"])
                elif isinstance(line["done"], dict):
                    return line["done"]
                else:
                    raise ValueError("the result is not an object")
            except (KeyError, TypeError, ValueError):
                raise await process.nonsense(doing) from None
            raise error
        raise await process.nonsense(doing)

    async def _abandon(self, process: ChildProcess, call: int, job_id: str) -> None:
        """Stops and forgets the running job, and waits for its end so that the next call finds the line free."""
        process.send({"do": "stop", "job": job_id})
        self.forget(job_id)
        try:
            async with asyncio.timeout(self._options.watchdog_s):
                while _goes_on(await process.receive(self._options.watchdog_s, f"stopping job {job_id}")):
                    pass
        except EngineLost:
            pass  # killed already; the caller learns of the cancellation, the next call of the loss
        except BaseException as error:
            process.kill()
            if not isinstance(error, TimeoutError):
                raise

    def _next_call(self) -> int:
        self._calls += 1
        return self._calls

    def _job(self, job: RunnerJob) -> _Job:
        assert self._resident is not None
        state = self._jobs.get(job.id)
        if state is None or state.model != self._resident.name:
            if len(self._jobs) >= _MAX_JOBS:
                raise EngineError(f"{_MAX_JOBS} jobs are stopped and not forgotten. End some of them first.")
            state = self._jobs[job.id] = _Job(self._resident.name, self._clock.now())
        return state

    async def _started(self) -> ChildProcess:
        async with self._starting:
            return await self._alive()

    async def _alive(self) -> ChildProcess:
        if self._process is not None:
            if self._process.alive:
                return self._process
            await self._process.close()
        if (wait_s := self._pace.wait_s()) > 0:
            await self._sleep(wait_s)
        self._pace.started()
        self._model_lost = self._model_lost or self._resident is not None
        self._resident = None
        self._process = await ChildProcess.start(ENGINE)
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.create_task(self._watch_idle(self._process))
        return self._process

    async def _watch_idle(self, process: ChildProcess) -> None:
        """A process that hangs while nobody wants anything is killed now, so that the next job need not find it out."""
        while process.alive:
            await self._sleep(self._options.watchdog_s)
            if not self._line.locked():  # else whoever speaks with it watches it
                with contextlib.suppress(EngineLost):
                    await self._call(process, {"do": "ping"}, self._options.watchdog_s, "idling")

    def _choose(self, model: InstalledModel) -> tuple[str, Path]:
        """The back-end for a model on this machine, and the files that it reads."""
        if model.remote is not None:
            raise ModelLoadFailed(
                f"{model.name} runs on servers elsewhere, and a model on this machine is needed here. "
                "Choose another: uniun models list"
            )
        backend: str = self._options.backend
        if backend == "auto":
            llama = model.gguf_path is not None and importlib.util.find_spec("cyllama") is not None
            prefer_mlx = model.mlx_path is not None and (mlx_is_accelerated() or not llama)
            backend = "mlx" if prefer_mlx else "llama.cpp"
        path, package, needs = {
            "mlx": (model.mlx_path, "mlx_lm", "an MLX folder"),
            "llama.cpp": (model.gguf_path, "cyllama", "a GGUF file"),
        }[backend]
        if path is None:
            raise ModelLoadFailed(
                f"The engine {backend} needs {needs}, and model {model.name} has none. Use another engine."
            )
        if importlib.util.find_spec(package) is None:
            install = "mlx-lm and mlx (on Linux mlx[cpu])" if backend == "mlx" else "cyllama"
            raise EngineMissing(f"The engine {backend} is not installed. Run: pip install {install}")
        return backend, path


def _goes_on(line: Line) -> bool:
    """Whether the run does that the line is of."""
    return "done" not in line and ("at" in line or "batches" in line)


def _progress(line: Line, job: _Job) -> RunnerProgress | None:
    """Notes what must outlive the process, and reads the boundary if it is one. Raises `ValueError` or `TypeError` if the line
    makes no sense."""
    if "batches" in line:
        job.batches = Batches((int(size), int(tokens)) for size, tokens in line["batches"])
    if "at" not in line:
        return None
    prefilled, prompt, done, token, text = line["at"]
    if token is not None:
        job.produced.append(int(token))
    if done != len(job.produced):
        raise ValueError("a token is missing or too many")
    return RunnerProgress(prefilled_tokens=prefilled, prompt_tokens=prompt, tokens_done=done, text=text)


@cache
def mlx_is_accelerated() -> bool:
    """Metal on Apple silicon, or one of MLX's CUDA packages."""
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return True
    names = (dist.metadata["Name"] or "" for dist in importlib.metadata.distributions())
    return any(name.startswith("mlx-cuda") for name in names)
