"""A terminal that does not show what is typed into the middle of an answer, and keeps it for the next prompt."""

import os
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_KILLERS = (signal.SIGTERM, signal.SIGHUP)
_PASTES_MARKED, _PASTES_PLAIN = b"\x1b[?2004h", b"\x1b[?2004l"
"""Marked, several pasted lines are one message at the next prompt too."""


@contextmanager
def quiet_terminal() -> Iterator[None]:
    """Needs terminals on stdin and stdout, and the main thread. The echo comes back whatever ends it, except SIGKILL."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = list(before)
    quiet[3] &= ~termios.ECHO

    def restore() -> None:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)
        os.write(sys.stdout.fileno(), _PASTES_PLAIN)

    def restore_and_die(number: int, frame: FrameType | None) -> None:
        try:
            restore()
        except (OSError, termios.error):
            pass  # the terminal has gone
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    handled = [number for number in _KILLERS if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, restore_and_die)
    try:
        termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
        os.write(sys.stdout.fileno(), _PASTES_MARKED)
        yield
    finally:
        restore()
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
