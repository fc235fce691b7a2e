"""One policy under the load: everything is asked for at its moment, and measured where the user would notice."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from data.clock import Clock
from data.demo.figures import ChatLog, Trace, measure
from data.demo.load import Glance, Load, Submission
from data.scheduling.dispatcher import Dispatcher
from domain.entities.demo import DemoEvent, DemoMoment, DemoPolicy, DemoRun
from domain.entities.llm import Finished, TextDelta
from domain.errors import EngineError, JobCancelled

FRAME_S = 0.25
"""How often the watcher is called."""
_PAUSE_S = 0.3
"""Between two chats on the idle machine."""


class Window:
    """Starts with its making; `play` once."""

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
