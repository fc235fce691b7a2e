"""Plays the load on a fresh engine for each policy, and measures at the places where the user would notice."""

import asyncio
import platform
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from data.clock import Clock
from data.demo.figures import ChatLog, Trace, measure
from data.demo.load import Glance, Load, Submission, build_load, describe
from data.demo.verdict import verdict
from data.scheduling.config import SchedulerConfig
from data.scheduling.dispatcher import Dispatcher
from domain.entities.demo import (
    DemoEvent,
    DemoMachine,
    DemoMoment,
    DemoPolicy,
    DemoReport,
    DemoRun,
    DemoStarting,
)
from domain.entities.llm import Finished, Sampling, TextDelta
from domain.errors import EngineError, JobCancelled
from domain.repositories.inference_runner import InferenceRunner, LoadedModel, RunnerJob
from domain.repositories.model_store import ModelStore

FRAME_S = 0.25
"""How often the watcher is called."""
_LOOK_S = 0.5
_PAUSE_S = 0.3
"""Between two chats on the idle machine."""
_WARM_UP = "Count slowly from one to one hundred, one number a line, and say a word about each of them. " * 4


class EngineDemo:
    """Implements `Demo`."""

    def __init__(
        self,
        open_runner: Callable[[], InferenceRunner],
        store: ModelStore,
        clock: Clock,
        config: SchedulerConfig,
    ) -> None:
        """`open_runner` makes a runner whose engine has not been started; it is closed here."""
        self._open_runner = open_runner
        self._store = store
        self._clock = clock
        self._config = config

    async def play(
        self, model: str, policies: Sequence[DemoPolicy], window_s: float, watch: Callable[[DemoEvent], None]
    ) -> DemoReport:
        config, scale = scaled(self._config, window_s)
        on = await machine()
        runs: list[DemoRun] = []
        engine = ""
        for number, policy in enumerate(policies, 1):
            watch(DemoStarting(policy=policy, number=number, count=len(policies), window_s=window_s))
            runner = self._open_runner()
            try:
                begun = self._clock.monotonic()
                loaded = await _warm_up(runner, model)
                load_s = self._clock.monotonic() - begun
                engine = loaded.engine
                scheduling = "uniun" if policy == "idle" else policy
                async with Dispatcher(
                    runner, self._store, self._clock, config, policy=scheduling
                ) as dispatcher:
                    await dispatcher.switch_model(model)
                    window = _Window(
                        policy, build_load(model, window_s), window_s, dispatcher, self._clock, watch
                    )
                    run = await window.play(load_s)
            finally:
                await runner.aclose()
            runs.append(run)
            watch(run)
        return DemoReport(
            at=self._clock.now().isoformat(timespec="seconds"),
            machine=on,
            engine=engine,
            model=model,
            load=describe(),
            policy_time_scale=scale,
            runs=tuple(runs),
            verdict=verdict(runs),
        )


def scaled(config: SchedulerConfig, window_s: float) -> tuple[SchedulerConfig, float]:
    """The policy's long times shrunk, so that a window shows what otherwise takes as long as extract's share looks back."""
    scale = window_s / config.share_window_s
    names = ("share_window_s", "share_min_busy_s", "fair_slice_s", "halving_period_s")
    return config.model_copy(update={name: getattr(config, name) * scale for name in names}), scale


async def machine() -> DemoMachine:
    """What the figures depend on; takes half a second, to see what others do meanwhile."""
    psutil.cpu_percent()
    await asyncio.sleep(_LOOK_S)
    busy = psutil.cpu_percent() / 100
    return DemoMachine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        busy_before=min(1.0, max(0.0, busy)),
        python=platform.python_version(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


async def _warm_up(runner: InferenceRunner, model: str) -> LoadedModel:
    """Loads the model and runs it once, so that no policy pays for cold memory or an engine that knows no speed yet."""
    loaded = await runner.load(model)
    job = RunnerJob(
        id="warm-up", cache_key="warm-up", prompt=_WARM_UP, sampling=Sampling(seed=0), max_tokens=4
    )
    await runner.run(job, lambda progress: None)
    runner.forget(job.id)
    return loaded


class _Window:
    """One policy's window."""

    def __init__(
        self,
        policy: DemoPolicy,
        load: Load,
        window_s: float,
        dispatcher: Dispatcher,
        clock: Clock,
        watch: Callable[[DemoEvent], None],
    ) -> None:
        self._policy = policy
        self._load = load
        self._window_s = window_s
        self._dispatcher = dispatcher
        self._clock = clock
        self._watch = watch
        self._start = clock.monotonic()
        self._trace = Trace(self._start)
        self._chats: list[ChatLog] = []
        self._surface = "nothing"
        self._tasks: set[asyncio.Task[None]] = set()
        dispatcher.observe(self._trace)

    async def play(self, load_s: float) -> DemoRun:
        """Until the window closes; on the idle machine until all chats are answered, if that is sooner."""
        swaps_before = self._dispatcher.snapshot().swaps
        idle = self._policy == "idle"
        script = self._spawn(self._ask_all() if idle else self._act_all())
        try:
            while (now := self._now()) < self._window_s and not (idle and script.done()):
                self._watch(self._moment(now))
                await asyncio.sleep(min(FRAME_S, self._window_s - now))
                self._raise_failures()
            return self._measured(load_s, swaps_before)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _measured(self, load_s: float, swaps_before: int) -> DemoRun:
        end_s = self._now()
        submissions = () if self._policy == "idle" else self._load.background
        return measure(
            self._policy,
            end_s,
            load_s,
            self._trace,
            [chat.seen(end_s) for chat in self._chats],
            {job.request.flow: job.due_s for job in submissions if job.due_s is not None},
            self._dispatcher.snapshot(),
            swaps_before,
        )

    def _moment(self, now_s: float) -> DemoMoment:
        snapshot = self._dispatcher.snapshot()
        return DemoMoment(
            policy=self._policy,
            at_s=now_s,
            window_s=self._window_s,
            surface=self._surface,
            snapshot=snapshot,
            chats=tuple(chat.seen(now_s) for chat in self._chats),
            spans=self._trace.spans_at(now_s),
            background_tokens=self._trace.background_tokens(snapshot),
        )

    def _now(self) -> float:
        return self._clock.monotonic() - self._start

    # -- what happens

    async def _ask_all(self) -> None:
        """The chats alone, each when the one before is answered."""
        for chat, question in zip(self._load.chats, self._load.questions, strict=True):
            await self._ask(chat, question)
            await asyncio.sleep(_PAUSE_S)

    async def _act_all(self) -> None:
        """The whole load, each part at its moment."""
        chats = zip(self._load.chats, self._load.questions, strict=True)
        acts: list[tuple[float, Callable[[], object]]] = [
            *((job.at_s, lambda job=job: self._submit(job)) for job in self._load.background),
            *((glance.at_s, lambda glance=glance: self._look(glance)) for glance in self._load.glances),
            *((chat.at_s, lambda chat=chat, q=q: self._spawn(self._ask(chat, q))) for chat, q in chats),
        ]
        for at_s, act in sorted(acts, key=lambda pair: pair[0]):
            if at_s > self._now():
                await asyncio.sleep(at_s - self._now())
            act()

    def _submit(self, job: Submission) -> None:
        request = job.request
        if job.due_s is not None:
            left = timedelta(seconds=job.due_s - self._now())
            request = request.model_copy(update={"deadline": self._clock.now() + left})
        self._dispatcher.submit(request)

    def _look(self, glance: Glance) -> None:
        self._surface = glance.words
        self._dispatcher.set_foreground(glance.kind, glance.subject)

    async def _ask(self, job: Submission, question: str) -> None:
        chat = ChatLog(question, self._now())
        self._chats.append(chat)
        try:
            async for event in self._dispatcher.submit(job.request).events():
                if isinstance(event, TextDelta):
                    chat.tell(self._now(), event.text, event.tokens)
                elif isinstance(event, Finished):
                    chat.finished = True
        except JobCancelled:
            pass  # the window has closed

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        return task

    def _raise_failures(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()
        if self._trace.failure is not None:
            raise EngineError(f"A job of the demo failed: {self._trace.failure}. See: uniun doctor")
