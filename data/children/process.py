"""A child process: started, spoken to, watched and killed."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import data
from data.children import lines
from data.children.lines import Line
from domain.errors import UniunError
from domain.reasons import thread_limit

_STDERR_LINES = 50
_STDERR_LINE_CHARS = 500
_REAP_S = 10.0
_LOOKS = 4
"""While a child is silent it is looked at so often before it is taken for hung."""
_PATIENCE = 6
"""A child that other programs leave little CPU may be silent for so many times as long."""


class _IdleError(Exception):
    """The child does nothing."""


@dataclass(frozen=True)
class Child:
    """What kind of process it is. `lost` makes the error that a loss ends in, from its cause and ours to do."""

    arguments: tuple[str, ...]
    """Of the Python interpreter; the parent's process id is added."""
    name: str
    """As in "The engine process"."""
    lost: Callable[[str], UniunError]
    what_now: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """The user's own setting has precedence."""


class ChildProcess:
    """One child. Every way of losing it ends in its kind's error with the cause, and with the child killed."""

    def __init__(self, kind: Child, process: asyncio.subprocess.Process) -> None:
        self._kind = kind
        self._process = process
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._listening = asyncio.create_task(self._listen())
        self._lost = False

    @classmethod
    async def start(cls, kind: Child) -> "ChildProcess":
        """Raises the kind's error if the system cannot start a process."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *kind.arguments,
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=lines.MAX_LINE_BYTES,
                # `-m` looks into the working folder first, where the user may have a `data` of their own.
                cwd=Path(data.__file__).parent.parent,
                env=kind.environment | os.environ,
                # A Ctrl-C in the terminal is for the parent, which then closes the child. It stays in the parent's session,
                # for Linux compares niceness only within one (autogroups, sched(7)): beside the embedding threads of its
                # own parent, which step back, an engine in a session of its own made 2.5 tokens a second instead of 118.
                process_group=0,
            )
        except (OSError, RuntimeError) as error:  # a thread waits for the end of each process
            why = thread_limit(str(error)) or error
            raise kind.lost(f"The {kind.name} process could not be started: {why}") from error
        return cls(kind, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._lost and self._process.returncode is None

    def send(self, line: Line) -> None:
        """Queues a line; a child that is gone is noticed by `receive`."""
        if self.alive and self._process.stdin is not None:
            self._process.stdin.write(lines.encode(line))

    async def receive(self, limit_s: float, doing: str, *, idle_s: float | None = None) -> Line:
        """The next line. Raises the kind's error on silence for `limit_s`, on exit, and on a line that makes no sense.

        A child that works and gets too little CPU for it is given longer, which a busy machine takes; not one that used none,
        or enough. With `idle_s` it raises also when the child has used neither CPU nor disk for about so long.
        """
        assert self._process.stdout is not None
        try:
            if idle_s is None:
                raw = await self._heard(limit_s)
            else:
                async with asyncio.timeout(limit_s):
                    raw = await self._readline(idle_s)
        except TimeoutError as error:
            silent_s = error.args[0] if error.args else limit_s
            raise await self._loss(f"gave no sign of life for {silent_s:g} s while {doing}") from None
        except _IdleError:
            raise await self._loss(f"used neither CPU nor disk for {idle_s:g} s while {doing}") from None
        except ValueError:
            raise await self._loss(
                f"sent a line of more than {lines.MAX_LINE_BYTES} bytes while {doing}"
            ) from None
        if not raw.endswith(b"\n"):
            raise await self._loss(f"ended while {doing}", exited=True)
        try:
            return lines.decode(raw)
        except ValueError as error:
            raise await self._loss(f"sent a line that makes no sense while {doing} ({error})") from error

    async def _heard(self, limit_s: float) -> bytes:
        """Raises `TimeoutError` with the seconds. Looks only when it has been silent for some time: it is asked for each token."""
        assert self._process.stdout is not None
        looks: list[tuple[Any, ...]] = []
        while True:
            try:
                async with asyncio.timeout(limit_s / _LOOKS):
                    return await self._process.stdout.readline()
            except TimeoutError:
                looks.append(self._vital_signs())
                idle = looks[-_LOOKS:] == [looks[-1]] * _LOOKS
                if len(looks) == _PATIENCE * _LOOKS or (
                    len(looks) >= _LOOKS and (idle or _cpu_s(looks[-1]) - _cpu_s(looks[0]) >= limit_s / 2)
                ):
                    raise TimeoutError(limit_s * len(looks) / _LOOKS) from None

    async def _readline(self, idle_s: float) -> bytes:
        """Raises `_IdleError`."""
        assert self._process.stdout is not None
        seen, idle_looks = self._vital_signs(), 0
        while True:
            try:
                async with asyncio.timeout(idle_s / _LOOKS):
                    return await self._process.stdout.readline()
            except TimeoutError:
                before, seen = seen, self._vital_signs()
                idle_looks = idle_looks + 1 if seen == before else 0
                if idle_looks >= _LOOKS:
                    raise _IdleError from None

    def _vital_signs(self) -> tuple[Any, ...]:
        """What changes while the child works: CPU time, bytes read and written where the system counts them, status."""
        try:
            child = psutil.Process(self.pid)
            with child.oneshot():
                io = child.io_counters() if hasattr(child, "io_counters") else ()
                return (child.cpu_times(), io, child.status())
        except psutil.Error:
            return ()

    async def nonsense(self, doing: str) -> UniunError:
        """For a line that is JSON but not what the call may answer."""
        return await self._loss(f"sent an answer that makes no sense while {doing}")

    def kill(self) -> None:
        """At once and without waiting; the event loop reaps it."""
        self._lost = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    async def close(self) -> None:
        """Kills and reaps."""
        self.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REAP_S):
                await self._process.wait()
                # Neither cancels it nor ends as it ended: a child that was not reaped in time is closed again.
                await asyncio.wait({self._listening})
                await self._read_to_the_end()
        self._listening.cancel()

    async def _read_to_the_end(self) -> None:
        """Only then asyncio lets go of the pipes; left to the end of the event loop, they end in a traceback on stderr."""
        assert self._process.stdout is not None
        with contextlib.suppress(RuntimeError):  # somebody else waits for a line, and sees the end
            while await self._process.stdout.read(65_536):
                pass

    async def _loss(self, what: str, *, exited: bool = False) -> UniunError:
        if exited:
            # Its end of the pipe is closed: it is dying. Its own exit code says more than our signal would.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._process.wait()
        code = self._process.returncode
        await self.close()
        if code is not None:
            what += f" ({_exit_name(code)})"
        last = next((line for line in reversed(self._stderr) if line.strip()), "")
        why = thread_limit("\n".join(self._stderr)) or (f"Its last words: {last}." if last else "")
        said = (f"The {self._kind.name} process {self.pid} {what}.", why, self._kind.what_now)
        return self._kind.lost(" ".join(filter(None, said)))

    async def _listen(self) -> None:
        """Keeps the last lines of stderr; a child whose stderr nobody reads would block."""
        assert self._process.stderr is not None
        rest = ""
        while chunk := await self._process.stderr.read(4096):
            *lines, rest = (rest + chunk.decode("utf-8", "replace")).split("\n")
            self._stderr.extend(line[:_STDERR_LINE_CHARS] for line in lines)
            rest = rest[-_STDERR_LINE_CHARS:]
        self._stderr.append(rest)


def _cpu_s(vital_signs: tuple[Any, ...]) -> float:
    return float(vital_signs[0].user + vital_signs[0].system) if vital_signs else 0.0


def _exit_name(code: int) -> str:
    if code < 0:
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"
