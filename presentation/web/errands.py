"""Work that goes on when the page that began it is closed: a download, a run, a backup."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

MAX_RUNNING = 50
MAX_KEPT = 100
"""Ended ones that are remembered, so that a page that comes back sees how it went."""
Tell = Callable[[Any], None]


class TooManyErrands(RuntimeError):
    """Somebody begins without end; no page does."""


@dataclass
class Errand:
    """One piece of work. `version` grows with everything that can be seen of it."""

    key: str
    step: Any = None
    """What it told last; each sort of work has its own."""
    result: Any = None
    error: BaseException | None = None
    cancelled: bool = False
    version: int = 0
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def running(self) -> bool:
        return self.task is not None and not self.task.done()

    def tell(self, step: Any) -> None:
        self.step = step
        self.version += 1


class Errands:
    """One for the whole server. A key names what is worked on; two pieces of work of one key never run at once."""

    def __init__(self) -> None:
        self._errands: dict[str, Errand] = {}

    def begin(self, key: str, work: Callable[[Tell], Awaitable[Any]]) -> Errand:
        """Starts it, or returns the one that runs already. Raises `TooManyErrands`."""
        known = self._errands.get(key)
        if known is not None and known.running:
            return known
        if sum(errand.running for errand in self._errands.values()) >= MAX_RUNNING:
            raise TooManyErrands(f"{MAX_RUNNING} pieces of work run already")
        self._errands.pop(key, None)
        errand = self._errands[key] = Errand(key, version=known.version + 1 if known is not None else 0)
        errand.task = asyncio.create_task(self._run(errand, work))
        self._forget()
        return errand

    def get(self, key: str) -> Errand | None:
        """Running or ended."""
        return self._errands.get(key)

    def cancel(self, key: str) -> None:
        """Harmless when nothing runs."""
        errand = self._errands.get(key)
        if errand is not None and errand.task is not None:
            errand.task.cancel()

    def dismiss(self, key: str) -> None:
        """The user has seen how it ended."""
        errand = self._errands.get(key)
        if errand is not None and not errand.running:
            del self._errands[key]

    async def watch(self) -> None:
        """Cancelling this cancels all work, and waits for its end."""
        try:
            await asyncio.Event().wait()
        finally:
            tasks = [errand.task for errand in self._errands.values() if errand.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, errand: Errand, work: Callable[[Tell], Awaitable[Any]]) -> None:
        try:
            errand.result = await work(errand.tell)
        except asyncio.CancelledError:
            errand.cancelled = True
            raise
        except Exception as error:  # noqa: BLE001 - whoever looks at it is told
            errand.error = error
        finally:
            errand.version += 1

    def _forget(self) -> None:
        ended = [key for key, errand in self._errands.items() if not errand.running]
        for key in ended[: max(0, len(ended) - MAX_KEPT)]:
            del self._errands[key]
