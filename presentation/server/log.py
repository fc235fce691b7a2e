"""The server's log: what happened and where in the code, never what was typed, sent or generated."""

import logging
import traceback
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from starlette.requests import ClientDisconnect

from domain.errors import UniunError

_LOGGERS = ("uniun", "uvicorn.error", "nicegui", "asyncio")
_BYTES, _FILES = 1_000_000, 2
_NOBODY_WAITS = "No response returned."
"""Starlette's words when a client has left before it was answered."""
_GRACE_OVER = "timeout graceful shutdown exceeded"
"""uvicorn's words when the server ends while requests are in work; they are answered with that."""
_Caught = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class _Formatter(logging.Formatter):
    """An error's own words may quote what was sent, so only its kind and its way through the code are written."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        if record.exc_info:
            record.message = "an error in the code"
        elif "Traceback (most recent call last)" in record.message:  # as uvicorn tells of a start that failed
            told = record.message.splitlines()
            places = [line for line in told if line.startswith("  File ")]
            record.message = "\n".join([*places, told[-1].partition(":")[0]])
        return super().formatMessage(record)

    def formatException(self, ei: _Caught) -> str:  # noqa: N802 - the name is logging's
        kind, _, trace = ei
        if kind is None:
            return ""
        return "".join(traceback.format_tb(trace)) + f"{kind.__module__}.{kind.__qualname__}"


def _worth_keeping(record: logging.LogRecord) -> bool:
    """NiceGUI warns of pages that are not there with their whole address, and what was searched for in it.

    It also logs every error of an event, those too that the page has shown and that are nobody's mistake in the code. And
    that a client hung up, or the server was ended before it had answered, is no error.
    """
    error = record.exc_info[1] if record.exc_info is not None else None
    if isinstance(error, ClientDisconnect | CancelledError) or (
        isinstance(error, RuntimeError) and str(error) == _NOBODY_WAITS
    ):
        return False
    if record.name == "uvicorn.error" and _GRACE_OVER in record.getMessage():
        return False
    foreseen = isinstance(error, UniunError)
    return record.name != "nicegui" or (record.levelno >= logging.ERROR and not foreseen)


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """While entered, warnings of the server and of what it stands on go to this file, and not to the terminal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8", delay=True)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(_worth_keeping)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(logger.handlers[:], logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    try:
        yield
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
        handler.close()
