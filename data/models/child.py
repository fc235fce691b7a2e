"""Long work in child processes, so that it can be killed at any moment and its memory comes back.

As a program (`python -m data.models.child MODULE ARGUMENTS`) it runs another module as a program, and ends as soon as
its parent does: the parent holds the other end of its standard input.
"""

import asyncio
import os
import runpy
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from domain.reasons import thread_limit

_TAIL_LINES = 40
_LINE_BYTES = 1 << 20
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class ChildResult:
    """How a child ended: its exit code (0 is success) and its last lines of output."""

    code: int
    tail: str

    @property
    def cause(self) -> str:
        """Of a failure: the last line, unless the tail shows that the system gave it no thread or no process."""
        return thread_limit(self.tail) or self.tail[self.tail.rfind("\n") + 1 :] or "it said nothing"


async def run_module(
    module: str,
    *arguments: str,
    on_line: Callable[[str], None] = lambda line: None,
    env: Mapping[str, str] | None = None,
) -> ChildResult:
    """Runs `python -m module arguments`; `on_line` sees every line of its output.

    Whatever ends this call early (cancellation, `on_line` raising) kills the child first. A child that the system does
    not let us start has failed with the system's words.
    """
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the working directory is the user's and may hold anything
            "-m",
            "data.models.child",
            module,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={
                **os.environ,
                **(env or {}),
                "PYTHONPATH": os.pathsep.join(paths),
                "PYTHONIOENCODING": "utf-8",
            },
        )
    except (OSError, RuntimeError) as error:  # a thread waits for the end of each process
        return ChildResult(1, str(error))
    try:
        tail = await _read_lines(process, on_line)
        return ChildResult(await process.wait(), tail)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if process.stdin is not None:
            process.stdin.close()


async def _read_lines(process: asyncio.subprocess.Process, on_line: Callable[[str], None]) -> str:
    assert process.stdout is not None
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    rest = b""
    while chunk := await process.stdout.read(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[:_LINE_BYTES]
        for line in lines:
            text = line.decode("utf-8", errors="replace").rstrip()
            tail.append(text)
            on_line(text)
    tail.append(rest.decode("utf-8", errors="replace"))
    return "\n".join(tail).strip()


def _end_with_parent() -> None:
    # os.read and not sys.stdin: a reader blocked in the buffered object would abort the interpreter at its exit.
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
