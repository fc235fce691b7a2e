"""`uniun serve`: the web app and the API, until Ctrl-C."""

import asyncio
import gc
import os
import signal
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

from domain.errors import ServerRuns
from presentation.cli.first import stop as stop_at_once
from presentation.cli.openers import Place
from presentation.cli.terminal import say

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def serve(
    open_place: Callable[[str | None, int | None], AbstractAsyncContextManager[Place]],
    host: str | None,
    port: int | None,
    *,
    show: bool,
) -> None:
    """`show` opens the browser, also when a server is there already. Raises `ServerRuns`, `InvalidRequest`."""
    from presentation.server.app import build_server
    from presentation.server.listen import serve as answer

    with _stopping() as stop:
        try:
            async with open_place(host, port) as place:
                app = build_server(place.faces, place.options)

                def ready() -> None:
                    place.announce()
                    print(f"UNIUN is at {place.options.url}   (Ctrl-C ends it)", flush=True)
                    if place.options.token is not None:
                        print(f"Open it once with its token: {place.options.way_in}", flush=True)
                        print("From elsewhere, put this machine's name or address in its place.", flush=True)
                    if show:
                        _show(place.options.way_in)

                # What is there now stays: a full collection that looked at all of it stopped every page for 50 ms.
                gc.collect()
                gc.freeze()
                try:
                    await answer(app, place.listener, place.options, stop, ready)
                finally:
                    place.withdraw()
                say("stopping; answers on their way are kept as far as they are.")
        except ServerRuns as runs:
            if not show:
                raise
            print(str(runs), flush=True)
            _show(runs.url)


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """Set by the first signal; the second one ends the program at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def told() -> None:
        if stop.is_set():
            stop_at_once()
        stop.set()

    # What is ignored stays so: nohup, and a shell's `&`, see to that.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, told)
    try:
        yield stop
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _show(url: str) -> None:
    """In a browser that has a window; a text browser would take the terminal."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)
