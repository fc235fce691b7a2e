"""The first and the last moment of the program, when there is nothing yet, or no longer, to clean up.

It runs before all other imports of ours, which take longer than all the rest of `--help`.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from presentation.cli.first import stop

_OURS = ("background", "data", "domain", "presentation", "uniun")
_PACKAGES = {"yaml": "pyyaml", "markdown_it": "markdown-it-py"}
"""Where a module goes by another name than its package."""


def begin() -> None:
    """From here on Ctrl-C ends the program with a word instead of a traceback, and every standard stream is there."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not when the shell has it ignored
        signal.signal(signal.SIGINT, stop)
    # In this order each one gets its own descriptor, so that no file is opened under a number that C code prints to.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until the process ends
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def not_imported(error: ImportError) -> str | None:
    """Which package an import lacks, and what to do; none for a module of ours, which is an error in the code."""
    module = (error.name or "").partition(".")[0]
    if not module or module in _OURS:
        return None
    package = _PACKAGES.get(module, module.replace("_", "-"))
    return (
        f"The Python package {package} is missing or broken ({error}). Set up again: delete .venv, then make run. "
        f"Or: pip install --force-reinstall {package}"
    )


@contextmanager
def interruptible() -> Iterator[None]:
    """In here Ctrl-C is a `KeyboardInterrupt`, for code that has something to clean up."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not stop:
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, handler)
    except KeyboardInterrupt:  # while an earlier one was being told of
        stop()
