"""How long llama.cpp's threads spin at a barrier before they sleep, where OpenMP is libgomp (Linux).

They meet hundreds of times per token. Where nobody else wants the cores, a long spin is the faster one; beside another
program it is a disaster: a thread spins for one that the other program keeps from running. The number of threads stays
what it is all the same: attention divides its sums by it, and a text must not depend on what else runs. Measurements and
what else was tried: docs/adr/0020.

libgomp reads its spin count once, but spins `GOMP_SPINCOUNT` times only while its threads are no more than the cores;
beyond that, with `OMP_WAIT_POLICY=active`, 1,000 times (`gomp_throttled_spin_count_var` in libgomp's env.c and wait.h). A
team of threads that sleep for good is what makes them more.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from data.clock import Clock

ENVIRONMENT = {"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "20000"} if sys.platform == "linux" else {}
"""For the engine process; the user's own setting has precedence. Other systems' OpenMP would spin for ever."""
_LOOK_S = 0.25
_GAP_S = 5.0
"""After so long without an evaluation nothing is known."""
_CONTENDED = 0.4
_ALONE = 0.3
"""Shares of the time that a thread was ready to run and had no core, all threads together. Beside a program that is always
busy it is half and more; beside one that wants half a core, a quarter, and the long spins are the faster ones."""


class Barriers:
    """Begins with short spins; long ones are for a machine on which the threads are seen to get the cores."""

    def __init__(
        self, waited_s: Callable[[], float], sleepers: Callable[[], Callable[[], None]], clock: Clock
    ) -> None:
        """`sleepers` makes the team that shortens the spins, and returns what ends it."""
        self._waited_s = waited_s
        self._sleepers = sleepers
        self._clock = clock
        self._wake: Callable[[], None] | None = sleepers()
        self._seen: tuple[float, float] | None = None
        self._last = clock.monotonic()

    @property
    def short(self) -> bool:
        return self._wake is not None

    def look(self) -> None:
        """Before every evaluation; costs next to nothing but every quarter of a second."""
        now, last = self._clock.monotonic(), self._last
        self._last = now
        if self._seen is None or now - last > _GAP_S:
            self._seen = now, self._waited_s()
            return
        since, before = self._seen
        if now - since < _LOOK_S:
            return
        waited = self._waited_s()
        share = (waited - before) / (now - since)
        self._seen = now, waited
        if self._wake is not None and share < _ALONE:
            self._wake()
            self._wake, self._seen = None, None
        elif self._wake is None and share > _CONTENDED:
            self._wake, self._seen = self._sleepers(), None

    def close(self) -> None:
        if self._wake is not None:
            self._wake()
            self._wake = None


def barriers(clock: Clock) -> Barriers | None:
    """Of this process, once its libgomp is loaded; none where it has none."""
    try:
        parallel = ctypes.CDLL(_libgomp()).GOMP_parallel
    except (OSError, AttributeError):
        return None
    return Barriers(waits(Path("/proc/self/task"), clock), lambda: _sleepers(parallel), clock)


def waits(tasks: Path, clock: Clock) -> Callable[[], float]:
    """How long the threads have waited so far. Where the system does not count it, they are taken to wait all the time, so
    that the spins stay short."""
    try:
        _waited_s(tasks)
    except (OSError, ValueError, IndexError):
        return clock.monotonic
    return lambda: _waited_s(tasks)


def _libgomp() -> str:
    """Path of the one that llama.cpp brought. Raises `OSError` where there is none."""
    with Path("/proc/self/maps").open() as maps:
        found = {line.split(maxsplit=5)[5].strip() for line in maps if "/libgomp" in line}
    if not found:
        raise OSError("No libgomp is loaded.")
    return min(found, key=lambda path: ("llama" not in path, path))


def _waited_s(tasks: Path) -> float:
    """How long the threads of this process have waited for a core so far (`run_delay`, sched-stats.rst)."""
    total = 0
    for task in tasks.iterdir():
        try:
            total += int((task / "schedstat").read_bytes().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            if not task.exists():
                continue  # the thread has ended
            raise
    return total / 1e9


def _sleepers(parallel: Callable[..., object]) -> Callable[[], None]:
    """One team more than the cores, begun by a thread of its own, in which it ends."""
    begun, over = threading.Event(), threading.Event()
    free = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)

    def hold() -> None:
        # Any C function of one pointer would do: `free(NULL)` does nothing.
        parallel(free, None, ctypes.c_uint((os.cpu_count() or 1) + 1), ctypes.c_uint(0))
        begun.set()
        over.wait()

    thread = threading.Thread(target=hold, name="sleepers", daemon=True)
    thread.start()
    begun.wait()

    def wake() -> None:
        over.set()
        thread.join()

    return wake
