"""Which processes of this machine that claim ticks are alive.

Each holds a lock on a file of its own for as long as it lives, and its claims bear the file's name. The kernel gives the
lock back however the process ends, so that a claim of one that was killed need not wait for its lease to run out. Claims
of other machines bear names that are unknown here; those wait.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER, _SUFFIX = "claims", ".lock"
_TRIES = 5


class ClaimHolders:
    """Lock files in one data folder. A process that ended well leaves its file too; whoever comes next tidies up."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / _FOLDER
        self._name: str | None = None
        self._descriptor: int | None = None
        """Open, and locked, until the process ends."""

    def name(self) -> str:
        """Of this process; empty where no file can be made, and its claims live by their leases alone."""
        if self._name is None:
            self._name = ""
            for _ in range(_TRIES):
                name = secrets.token_hex(8)
                with suppress(OSError):
                    self._descriptor = self._take(name)
                if self._descriptor is not None:
                    self._name = name
                    break
        return self._name

    def some_died(self) -> bool:
        """A few system calls."""
        with self.dead() as names:
            return bool(names)

    @contextmanager
    def dead(self, *, forget: bool = False) -> Iterator[tuple[str, ...]]:
        """Names of those whose process has ended; nobody else deals with them meanwhile, or ever after if `forget`."""
        held: dict[Path, int] = {}
        try:
            for path in self._files():
                descriptor = _try_lock(path)
                if descriptor is not None:
                    held[path] = descriptor
            yield tuple(path.name.removesuffix(_SUFFIX) for path in held)
            if forget:
                for path in held:
                    path.unlink(missing_ok=True)
        finally:
            for descriptor in held.values():
                os.close(descriptor)

    def _files(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if path.name.endswith(_SUFFIX)]
        except OSError:
            return []

    def _take(self, name: str) -> int | None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{name}{_SUFFIX}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        descriptor = _try_lock(path)
        # Between the two somebody may have taken it for a dead one's, and removed it.
        if descriptor is not None and not path.exists():
            os.close(descriptor)
            return None
        return descriptor


def _try_lock(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
