"""Stops: asked for by the thread that reads the pipe, obeyed by the one that computes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stops:
    """Jobs that are to stop at their next boundary."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._running: tuple[str, Callable[[], None]] | None = None

    def ask(self, job_id: str) -> None:
        """If the job runs, what it is evaluating is interrupted."""
        # In this order: who finds no stop here has made the interruption possible before he looked.
        self._asked.add(job_id)
        running = self._running
        if running is not None and running[0] == job_id:
            running[1]()

    def withdraw(self, job_id: str) -> None:
        self._asked.discard(job_id)

    def asked(self, job_id: str) -> bool:
        return job_id in self._asked

    @contextmanager
    def running(self, job_id: str, interrupt: Callable[[], None]) -> Iterator[None]:
        """In here the job runs; `interrupt` may be called from the other thread until a moment after."""
        self._running = (job_id, interrupt)
        try:
            yield
        finally:
            self._running = None
