"""Ctrl-C in the first milliseconds, in which only modules are imported.

This imports nothing that Python has not loaded itself. `signal` and what that needs would take another 8 ms, in which
Ctrl-C would end in a traceback.
"""

import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def stop(number: int = _signal.SIGINT, frame: object = None) -> "NoReturn":
    """Ends the process at once, with the status and the sentence of any other interruption."""
    try:
        os.write(2, b"uniun: stopped.\n")
    finally:
        os._exit(1)


class _Stoppable:
    """In here Ctrl-C ends the process, where it has Python's own meaning and not another, as that of being ignored."""

    def __enter__(self) -> None:
        self._before = _signal.getsignal(_signal.SIGINT)
        if self._before is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, stop)

    def __exit__(self, *_: "Any") -> None:
        if self._before is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, self._before)


stoppable = _Stoppable()
