"""`uniun top` and `uniun ps`: what the running server's scheduler does."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Callable, Container, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager

from rich.console import RenderableType
from rich.live import Live

from domain.errors import NoServer, UniunError
from domain.reading_words import overview_words
from presentation.cli.openers import Library
from presentation.cli.scheduler_view import footing, print_jobs, screen
from presentation.cli.terminal import out
from presentation.cli.wrap import folded
from presentation.controllers.scheduler import SchedulerController
from presentation.flow_names import FlowNames, flows_of
from presentation.scheduler_words import loading_words

PERIOD_S = 0.5
OpenServersScheduler = Callable[[], AbstractAsyncContextManager[SchedulerController | None]]
OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]
OpenNames = Callable[[], AbstractAsyncContextManager[FlowNames]]


@asynccontextmanager
async def no_names() -> AsyncIterator[FlowNames]:
    """Everything goes by its id."""
    yield FlowNames({})


async def ps(
    open_scheduler: OpenServersScheduler,
    open_names: OpenNames = no_names,
    open_library: OpenLibrary | None = None,
    *,
    as_json: bool,
    installed: Callable[[], Container[str]] | None = None,
) -> None:
    """One look. `installed` gives the names of models. Raises `NoServer`."""
    async with open_scheduler() as found:
        scheduler = _required(found)
        snapshot = scheduler.snapshot()
        if not as_json:
            async with open_names() as names:
                await names.learn(flows_of(snapshot, scheduler.history()))
                snapshot = names.snapshot(snapshot)
    if as_json:
        print(snapshot.model_dump_json(indent=2))
        return
    console = out()
    if snapshot.running is None and not snapshot.queued:
        memory = loading_words(snapshot) or f"{snapshot.resident or 'No model'} is in memory"
        console.print(folded(f"Nothing runs, and nobody waits. {memory}."), soft_wrap=True)
    else:
        print_jobs(console, snapshot)
        console.print(folded(footing(snapshot)), style="dim", soft_wrap=True)
    if installed is not None and snapshot.resident is not None and snapshot.resident not in installed():
        removed = (
            f"{snapshot.resident} is removed; it stays in memory until another is loaded or UNIUN is closed."
        )
        console.print(folded(removed), soft_wrap=True)
    if open_library is not None and (reading := await _reading(open_library)):
        console.print(folded(f"{reading}."), soft_wrap=True)
    hint = "`uniun top` shows this live; `uniun models ps` the engine processes."
    console.print(folded(hint), style="dim", soft_wrap=True)


async def top(open_scheduler: OpenServersScheduler, open_names: OpenNames = no_names) -> None:
    """Until `q` or Ctrl-C on a terminal; once, anywhere else. Raises `NoServer`, or what the server is lost with."""
    async with open_scheduler() as found, open_names() as names:
        scheduler = _required(found)

        async def look(width: int, height: int) -> RenderableType:
            snapshot, history = scheduler.snapshot(), scheduler.history()
            await names.learn(flows_of(snapshot, history))
            return screen(names.snapshot(snapshot), names.history(history), width, height)

        console = out()
        if not console.is_terminal or console.is_dumb_terminal:
            console.print(await look(console.width, 10_000))
            return
        with (
            _interrupts() as leave,
            _keys(leave),
            Live(console=console, screen=True, auto_refresh=False) as live,
        ):
            while not leave.is_set():
                width, height = console.size
                live.update(await look(width, height), refresh=True)
                try:
                    await asyncio.wait_for(leave.wait(), PERIOD_S)
                except TimeoutError:
                    continue


async def _reading(open_library: OpenLibrary) -> str | None:
    """How far the reading of notes is. A database that is locked for the moment says nothing."""
    try:
        async with open_library() as library:
            overview = await library.knowledge().overview()
    except UniunError:
        return None
    return overview_words(overview) if overview.notes else None


def _required(scheduler: SchedulerController | None) -> SchedulerController:
    if scheduler is None:
        raise NoServer
    return scheduler


@contextmanager
def _interrupts() -> Iterator[asyncio.Event]:
    """Set by Ctrl-C, which is how a screen is left."""
    leave, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, leave.set)
    try:
        yield leave
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@contextmanager
def _keys(leave: asyncio.Event) -> Iterator[None]:
    """Sets it when `q` is typed. Keys are neither shown nor left for the shell."""
    loop = asyncio.get_running_loop()
    if not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def typed() -> None:
        read = os.read(keyboard, 64)
        if not read:
            loop.remove_reader(keyboard)
        if b"q" in read.lower():
            leave.set()

    tty.setcbreak(keyboard)
    loop.add_reader(keyboard, typed)
    try:
        yield
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
