"""Reading the user's lines without stopping the event loop."""

import asyncio
import io
import sys
import threading
from typing import Protocol

from domain.errors import InvalidRequest
from presentation.cli.terminal import decoded, say

_LINE_LIMIT = 1_000_000
"""Characters of one piped line."""


class Reader(Protocol):
    """Where lines come from."""

    interactive: bool

    async def read(self) -> str | None:
        """The next line, without its end; none when the user leaves."""
        ...


def open_reader() -> Reader:
    """A line editor on a terminal, plain lines from anything else."""
    return _Editor() if sys.stdin.isatty() and sys.stdout.isatty() else _Pipe()


class _Editor:
    """prompt_toolkit: it lives on the event loop and leaves the terminal as it found it, whatever ends it."""

    interactive = True

    def __init__(self) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory

        self._session: PromptSession[str] = PromptSession(history=InMemoryHistory())

    async def read(self) -> str | None:
        interrupted = False
        while True:
            try:
                return await self._session.prompt_async("> ", handle_sigint=False)
            except EOFError:
                return None
            except KeyboardInterrupt:
                if interrupted and not self._session.default_buffer.text:
                    return None
                interrupted = True
                say("Ctrl-C again, or Ctrl-D, leaves.")


class _Pipe:
    """A daemon thread reads, because a blocked read cannot be cancelled and must not keep the program alive."""

    interactive = False

    def __init__(self) -> None:
        self._lines = 0
        if isinstance(sys.stdin, io.TextIOWrapper):
            # Whatever the locale says; what is not UTF-8 is told line by line.
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")

    async def read(self) -> str | None:
        self._lines += 1
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def hand_over(text: str | InvalidRequest) -> None:
            if line.done():
                return
            if isinstance(text, str):
                line.set_result(text)
            else:
                line.set_exception(text)

        def wait_for_line() -> None:
            text: str | InvalidRequest
            try:
                # Not from `sys.stdin.buffer`: Python aborts at its end while a thread reads that.
                line_read = sys.stdin.readline(_LINE_LIMIT)
                text = decoded(line_read.encode("utf-8", "surrogateescape"), self._lines)
            except InvalidRequest as error:
                text = error
            except (ValueError, OSError):  # closed: there is nothing more to read
                text = ""
            if not loop.is_closed():
                loop.call_soon_threadsafe(hand_over, text)

        threading.Thread(target=wait_for_line, name="stdin", daemon=True).start()
        text = await line
        return text.removesuffix("\n") if text else None
