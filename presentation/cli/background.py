"""`uniun background …`: what the commands do."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable

from presentation.cli.terminal import say, write
from presentation.controllers.background import BackgroundController


async def run(process: Callable[[Callable[[str], None]], Awaitable[None]]) -> None:
    """Until SIGTERM or Ctrl-C: a run that is going on is cut off, and its tick stays due."""
    running = asyncio.ensure_future(process(say))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await running
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    say("the background process has ended.")


def install(background: BackgroundController) -> None:
    """Says where the file is."""
    change = background.install()
    runs = "The background process runs, and starts again whenever you log in.\n" if change.told else ""
    write(f"{change.path} is written.\n{runs}")
    if change.hint:
        say(change.hint)


def uninstall(background: BackgroundController) -> None:
    """Says what was removed."""
    change = background.uninstall()
    write(f"{change.path} is removed.\n" if change.done else "The background process is not installed.\n")
    if change.hint:
        say(change.hint)


async def status(background: BackgroundController) -> None:
    """A few lines."""
    now = await background.status()
    write(f"installed: {now.installed or 'no'}\n")
    running = f"yes, process {now.pid}" if now.pid is not None else "no"
    write(f"running:   {f'{running}. {now.trouble}' if now.trouble else running}\n")
    write(f"app:       {'open, so it does nothing' if now.app_open else 'closed'}\n")
    if now.log:
        write(f"its log:   {now.log}\n")
    for run in now.runs:
        reason = f" ({run.reason.replace('_', ' ')})" if run.reason else ""
        write(
            f"{run.started_at.astimezone():%Y-%m-%d %H:%M}  {now.names.get(run.gana_id, run.gana_id)}  {run.status}{reason}  "
            f"{run.detail}".rstrip()
            + "\n"
        )
