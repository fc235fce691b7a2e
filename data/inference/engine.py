"""The engine process (begun by `data.inference.start`): JSON lines on stdin and stdout.

The main thread does all model work. A second thread reads stdin, so that a stop is seen at the next boundary and the
parent's death (end of file) ends this process whatever the main thread does.
"""

import os
import queue
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import psutil

from data.children import lines
from data.children.lines import Line
from data.clock import Clock, SystemClock
from data.inference import protocol
from data.inference.backend import Backend
from data.inference.batches import Batches
from data.inference.options import EngineOptions
from data.inference.stops import Stops
from data.inference.token_loop import TokenLoop, check_logits
from domain.entities.llm import Sampling
from domain.errors import EngineError, EngineMissing, ModelDamaged, ModelLoadFailed, UniunError
from domain.repositories.inference_runner import RunnerJob

_MAX_INBOX = 100_000


class Engine:
    """Answers the lines of its supervisor, in order."""

    def __init__(self, send: Callable[[Line], None], stops: Stops, clock: Clock) -> None:
        self._send = send
        self._stops = stops
        self._clock = clock
        self._loop: TokenLoop | None = None

    def answer(self, line: Line) -> None:
        """Ends the process on a line that makes no sense; what it raises means that the process is broken.

        A job or a model that fails, however it fails, is answered with a `UniunError`.
        """
        try:
            call, work = line.get("id"), self._read(line)
        except (KeyError, TypeError, ValueError) as error:
            refuse(error)
        try:
            answer = work()
        except UniunError as error:
            self._send({"id": call, "error": protocol.error_to_line(error)})
        else:
            if call is not None:
                self._send({"id": call, **answer})

    def _read(self, line: Line) -> Callable[[], Line]:
        """What the line asks for, checked before any of it is done."""
        match line["do"]:
            case "load":
                options = EngineOptions.model_validate(line["options"])
                return partial(self._load, line["model"], line["backend"], Path(line["path"]), options)
            case "run":
                job = RunnerJob.model_validate(line["job"])
                produced = [int(token) for token in line["produced"]]
                since = datetime.fromisoformat(line["since"])
                return partial(self._run, line["id"], job, produced, Batches(line["batches"]), since)
            case "unload":
                return self._unload
            case "forget":
                return partial(self._forget, line["job"])
            case "ping":
                return _done
        raise KeyError(line["do"])

    def _load(self, model: str, name: str, path: Path, options: EngineOptions) -> Line:
        self._unload()
        before, start = _resident_bytes(), self._clock.monotonic()
        backend = _open(name, path, options, self._clock)
        try:
            _warm_up(backend, model, path)
            self._loop = TokenLoop(backend, options, self._clock)
        except BaseException as error:
            backend.close()
            if isinstance(error, UniunError) or not isinstance(error, Exception):
                raise
            raise ModelLoadFailed(f"{name} loaded {path}, but the model does not run: {error}") from error
        return {
            "done": {
                "engine": backend.name,
                "context_tokens": backend.context_tokens,
                "load_s": self._clock.monotonic() - start,
                "memory_bytes": max(0, _resident_bytes() - before),
            }
        }

    def _unload(self) -> Line:
        if self._loop is not None:
            loop, self._loop = self._loop, None
            loop.close()
        return _done()

    def _forget(self, job_id: str) -> Line:
        self._stops.withdraw(job_id)
        if self._loop is not None:
            self._loop.forget(job_id)
        return _done()

    def _run(self, call: int, job: RunnerJob, produced: list[int], batches: Batches, since: datetime) -> Line:
        loop = self._loop
        if loop is None:
            raise EngineError("The engine holds no model. Load one before running a job.")

        end: Line = {}

        def at(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
            line: Line = {"id": call, "at": [prefilled, prompt, done, token, text]}
            if token is None and text:
                # The end was drawn, which is not among the tokens that a new process begins with: told by itself, this text
                # would be told again if the process died now.
                end.update(line)
                return
            if done <= 1:  # of what comes later it is known: token by token
                line["batches"] = loop.batches(job.id).runs
            self._send(line)

        def begun() -> None:
            self._send({"id": call, "batches": loop.batches(job.id).runs})

        with self._stops.running(job.id, loop.interrupt):
            stopping = partial(self._stops.asked, job.id)
            outcome = loop.run(job, produced, at, stopping, batches, begun, since)
        return {**end, "done": outcome.model_dump(mode="json")}


def _done() -> Line:
    """For what has no result, and as a sign of life, sent by the thread that does the work."""
    return {"done": {}}


def _open(backend: str, path: Path, options: EngineOptions, clock: Clock) -> Backend:
    if backend == "llama.cpp":
        from data.inference.llama_backend import LlamaBackend

        return LlamaBackend(path, options, clock)
    if backend == "mlx":
        from data.inference.mlx_backend import MlxBackend

        return MlxBackend(path, options)
    raise EngineMissing(f"No engine is called {backend!r}. Use mlx or llama.cpp.")


def _warm_up(backend: Backend, model: str, path: Path) -> None:
    """One token: touches all weights, so that the first job is not slow and a broken model fails at its load.

    Raises `ModelDamaged`.
    """
    backend.evaluate(0, [backend.vocabulary.bos or 0], 0, want_logits=True)
    try:
        check_logits(backend)
    except EngineError as error:
        raise ModelDamaged(
            f"The weights of {model} in {path} are damaged. {error} Fetch them again with `uniun models pull {model}`, "
            "or put the undamaged file back."
        ) from error
    backend.sample(Sampling(), 0)
    backend.clear(0)


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _read(inbox: "queue.Queue[Line]", stops: Stops) -> None:
    """Runs in its own thread until the parent is gone."""
    while True:
        raw = sys.stdin.buffer.readline(lines.MAX_LINE_BYTES)
        if not raw:
            os._exit(0)
        try:
            line = lines.decode(raw)
            if line["do"] == "stop":
                stops.ask(line["job"])
                continue
            if line["do"] == "run" and line["stop"]:
                stops.ask(line["job"]["id"])
            elif line["do"] == "run":
                # A stop that came too late for the job's last run is not one for this run.
                stops.withdraw(line["job"]["id"])
            inbox.put_nowait(line)
        except (ValueError, KeyError, TypeError, queue.Full) as error:
            refuse(error)


def refuse(error: Exception) -> NoReturn:
    """Ends the process: a supervisor that speaks nonsense cannot be answered."""
    os.write(2, f"The supervisor sent a line that makes no sense: {error!r}\n".encode())
    os._exit(2)


def _last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ends the process with its traceback; an orderly shutdown would wait for the thread that reads stdin."""
    sys.__excepthook__(kind, error, trace)
    sys.stderr.flush()
    os._exit(1)


def main() -> None:
    sys.excepthook = _last_words
    # Native code prints to file descriptor 1; the protocol gets a descriptor of its own.
    pipe = os.dup(1)
    os.dup2(2, 1)
    out = os.fdopen(pipe, "wb", buffering=0)
    inbox: queue.Queue[Line] = queue.Queue(_MAX_INBOX)
    stops = Stops()

    def send(line: Line) -> None:
        rest = memoryview(lines.encode(line))
        while rest:
            rest = rest[out.write(rest) :]

    threading.Thread(target=_read, args=(inbox, stops), daemon=True).start()
    engine = Engine(send, stops, SystemClock())
    while True:
        engine.answer(inbox.get())
