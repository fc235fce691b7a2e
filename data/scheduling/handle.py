"""A caller's view of its job: a buffer that never holds more than one answer."""

import asyncio
from collections.abc import AsyncIterator, Callable

from domain.entities.llm import (
    Finished,
    GenerationEvent,
    GenerationResult,
    Preempted,
    Prefilling,
    TextDelta,
    Waiting,
)
from domain.errors import JobCancelled

WAITING_PERIOD_S = 0.5
"""How often the next waiting caller is told where it stands …"""
PLACES_PER_PERIOD = 8
"""… and so many places further back half as often, then a third: 1,000 who wait cost 80 wake-ups a second, not 2,000."""
LONGEST_PERIOD_S = 30.0


class CallerHandle:
    """Implements `JobHandle`. Events that were not read yet are merged: a slow reader costs no memory."""

    def __init__(
        self,
        caller_id: str,
        submitted_at: float,
        cancel: Callable[[str], None],
        describe_wait: Callable[[str], Waiting | None],
    ) -> None:
        self._id = caller_id
        self.submitted_at = submitted_at
        self._cancel = cancel
        self._describe_wait = describe_wait
        self._changed = asyncio.Event()
        self._prefilling: Prefilling | None = None
        self._preempted: Preempted | None = None
        self._text: list[str] = []
        self._tokens = 0
        self._result: GenerationResult | None = None
        self.error: Exception | None = None

    @property
    def id(self) -> str:
        return self._id

    @property
    def done(self) -> bool:
        return self._result is not None or self.error is not None

    def cancel(self) -> None:
        if not self.done:
            self._cancel(self._id)

    async def events(self) -> AsyncIterator[GenerationEvent]:
        told: Waiting | None = None
        try:
            while True:
                while (event := self._take()) is not None:
                    yield event
                if self.error is not None:
                    raise self.error
                if self._result is not None:
                    yield Finished(result=self._result)
                    return
                waiting = self._describe_wait(self._id)
                if waiting is not None and waiting != told:
                    told = waiting
                    yield waiting
                    continue
                try:
                    await asyncio.wait_for(self._changed.wait(), _period_s(waiting))
                except TimeoutError:
                    continue
        finally:
            self.cancel()

    async def result(self) -> GenerationResult:
        try:
            while not self.done:
                self._changed.clear()
                await self._changed.wait()
        finally:
            self.cancel()
        if self.error is not None:
            raise self.error
        if self._result is None:
            raise JobCancelled(f"Job {self._id} ended without a result.")
        return self._result

    # -- the dispatcher's side

    def prefilling(self, done: int, total: int) -> None:
        self._prefilling = Prefilling(done_tokens=done, total_tokens=total)
        self._changed.set()

    def text(self, text: str, tokens: int) -> None:
        self._prefilling = None
        self._text.append(text)
        self._tokens = tokens
        self._changed.set()

    def preempted(self, reason: str) -> None:
        self._preempted = Preempted(reason=reason)
        self._changed.set()

    def moved(self) -> None:
        """Where it stands in the queue has changed, for those that are told so."""
        self._changed.set()

    def finish(self, result: GenerationResult) -> None:
        self._result = result
        self._changed.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._changed.set()

    def _take(self) -> GenerationEvent | None:
        self._changed.clear()
        if self._text:
            text, self._text = "".join(self._text), []
            return TextDelta(text=text, tokens=self._tokens)
        if self._preempted is not None:
            preempted, self._preempted = self._preempted, None
            return preempted
        if self._prefilling is not None:
            prefilling, self._prefilling = self._prefilling, None
            return prefilling
        return None


def _period_s(waiting: Waiting | None) -> float | None:
    if waiting is None:
        return None
    return min(LONGEST_PERIOD_S, WAITING_PERIOD_S * (1 + waiting.position / PLACES_PER_PERIOD))
