"""Work that goes on beside the app for as long as it is open."""

import asyncio
import re
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from data.clock import Clock

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
SOUND_AFTER_S = 600.0
"""A loop that has gone on for so long begins with short pauses again."""
_LOG_NAME = "background-work.txt"
_LOG_CHARACTERS = 200_000
_HEAD = re.compile(r"^(\S+) (\S+) failed: (.*)$", re.MULTILINE)


class LoopFailure(NamedTuple):
    """A loop that ended with an error that nobody had expected."""

    at: datetime
    loop: str
    error: str


class LoopLog:
    """A file of the newest failures, with their tracebacks, for whoever has to mend them; any process may read it."""

    def __init__(self, log_dir: Path) -> None:
        self.path = log_dir / _LOG_NAME

    def add(self, failure: LoopFailure, details: str) -> None:
        """A log that cannot be written must not end what it tells of."""
        entry = f"{failure.at.isoformat()} {failure.loop} failed: {failure.error}\n{details}\n"
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text((self._text() + entry)[-_LOG_CHARACTERS:], encoding="utf-8")

    def last(self) -> LoopFailure | None:
        """None if nothing has failed, or nothing can be read."""
        for at, loop, error in reversed(_HEAD.findall(self._text())):
            with suppress(ValueError):
                return LoopFailure(datetime.fromisoformat(at), loop, error)
        return None

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


class Loops:
    """Starts every loop when entered and cancels them when left.

    A loop that ends with an error leaves the app and the other loops alone; it is logged, and begins again after a pause
    that doubles. They start when their `turn` comes, which is at once unless somebody else does the same work.
    """

    def __init__(
        self,
        loops: Mapping[str, Callable[[], Coroutine[Any, Any, None]]],
        log: LoopLog,
        clock: Clock,
        first_pause_s: float = FIRST_PAUSE_S,
        *,
        turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._loops = loops
        self._log = log
        self._clock = clock
        self._first_pause_s = first_pause_s
        self._turn = turn
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        async with self._turn():
            tasks = [asyncio.create_task(self._keep(name, loop)) for name, loop in self._loops.items()]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        pause_s = self._first_pause_s
        while True:
            begun = self._clock.monotonic()
            try:
                return await loop()
            except Exception as error:  # noqa: BLE001 - a bug in one loop must not end what the user sees
                what = " ".join(f"{type(error).__name__}: {error}".split())
                details = "".join(traceback.format_exception(error))
                self._log.add(LoopFailure(self._clock.now(), name, what), details)
            if self._clock.monotonic() - begun >= SOUND_AFTER_S:
                pause_s = self._first_pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
