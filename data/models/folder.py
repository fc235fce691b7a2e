"""A folder that many read and one writes: complete things under their names, unfinished ones under `partial`."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

from domain.errors import ModelUnavailable, StoreBusy


class StoreFolder:
    """Readers need no lock: names only ever point to complete folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._partial = root / "partial"
        self._holder = root / "lock-holder"

    @contextmanager
    def exclusive(self, work: str = "") -> Iterator[None]:
        """Raises `StoreBusy`, naming the process, if somebody writes already. The lock ends with its process.

        `work` is what the others can read about it, in `work()`. What the operating system refuses, now or inside the
        block, becomes `ModelUnavailable`.
        """
        with self.writing(), self._locked(work):
            yield

    def work(self) -> str | None:
        """What the process that holds the lock does with it; none for a moment when it takes or leaves the lock."""
        try:
            _, written, work = self._holder.read_text(encoding="utf-8").partition(" ")
        except OSError:
            return None
        return work if written else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turns what the operating system refuses into `ModelUnavailable`."""
        try:
            yield
        except OSError as error:
            raise ModelUnavailable(
                f"The model store {self.root} cannot be written: {error}. Check that the folder belongs to you and that "
                "the disk is not full, then try again."
            ) from error

    @contextmanager
    def _locked(self, work: str) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(self.root / "lock", timeout=0, thread_local=False)
        try:
            lock.acquire()
        except filelock.Timeout as error:
            holder = "unknown"
            with suppress(OSError):
                holder = self._holder.read_text(encoding="utf-8").partition(" ")[0][:20] or holder
            raise StoreBusy(
                f"The model store {self.root} is being written by process {holder}. Wait until it is done "
                "(a pull can be stopped and resumed), then try again."
            ) from error
        try:
            # The note only serves the others' messages: removing a model from a full disk must not fail for it.
            with suppress(OSError):
                self._holder.write_text(f"{os.getpid()} {work}", encoding="utf-8")
            yield
        finally:
            with suppress(OSError):
                self._holder.unlink(missing_ok=True)
            lock.release()

    def new_partial(self) -> Path:
        """A fresh folder for unfinished work. Hold the lock."""
        path = self._partial / uuid.uuid4().hex
        path.mkdir(parents=True)
        return path

    def resumable_partial(self, name: str) -> Path:
        """The folder in which downloads of `name` go on where they stopped; it may not exist yet. Hold the lock."""
        return self._partial / f"resume-{name}"

    def sweep(self) -> None:
        """Deletes what killed writers left behind, except for resumable downloads. Hold the lock."""
        for path in self._partial.glob("*"):
            if not path.name.startswith("resume-"):
                shutil.rmtree(path, ignore_errors=True)

    def discard(self, path: Path) -> None:
        """Deletes a folder such that no reader sees half of it. Hold the lock."""
        self._partial.mkdir(exist_ok=True)
        doomed = self._partial / uuid.uuid4().hex
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
