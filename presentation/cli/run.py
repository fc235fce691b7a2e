"""Runs a command line and turns whatever happens into an exit status and one sentence on stderr."""

import errno
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer

from domain.errors import InvalidRequest, UniunError, UnknownModel
from domain.reasons import plain_reason, thread_limit
from presentation.cli.start import not_imported
from presentation.cli.terminal import say

T = TypeVar("T")
OK, FAILED, BAD_USAGE = 0, 1, 2
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_INTERRUPTED = 130
"""What typer returns for Ctrl-C."""


def run(app: typer.Typer, args: Sequence[str], log_file: Callable[[], Path]) -> int:
    """The exit status: 0 done, 1 failed, 2 asked for wrongly, as by a name or an id that nothing has.

    An unexpected exception's traceback goes to `log_file()`, its sentence to stderr.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        status = app(args=list(args), prog_name="uniun", standalone_mode=False)
        sys.stdout.flush()
    except UniunError as error:
        say(str(error))
        return BAD_USAGE if isinstance(error, InvalidRequest | UnknownModel) else FAILED
    except typer.TyperException as error:
        say(_usage(error))
        return BAD_USAGE
    except (KeyboardInterrupt, typer.Abort):
        return _stopped()
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as error:
        return _reader_gone() if error.code == FAILED else int(error.code or 0)
    except OSError as error:
        if error.errno not in _DISK_FULL:
            say(_unexpected(error, log_file))
            return FAILED
        say(f"The output could not be written: {error.strerror}. Free some disk space and try again.")
        return FAILED
    except ImportError as error:
        say(not_imported(error) or _unexpected(error, log_file))
        return FAILED
    except RuntimeError as error:
        say(thread_limit(str(error)) or _unexpected(error, log_file))
        return FAILED
    except Exception as error:  # noqa: BLE001 - the last line of defence: the user gets a sentence, the log the rest
        say(_unexpected(error, log_file))
        return FAILED
    if status == _INTERRUPTED:
        return _stopped()
    return status if isinstance(status, int) else OK


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs a command's coroutine; Ctrl-C cancels it and everything that it has open."""
    import asyncio  # 50 ms that `--help` need not spend

    return asyncio.run(work)


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the command line, and which command's help says more."""
    context: typer.Context | None = getattr(error, "ctx", None)
    # "Invalid value for '--seed': " and then the validation library's words.
    where, colon, reason = error.format_message().partition(": ")
    said = f"{where}{colon}{plain_reason(reason)}".rstrip(".")
    end = "" if said.endswith("?") else "."
    return f"{said}{end} See: {context.command_path if context else 'uniun'} --help"


def _stopped() -> int:
    say("stopped.")
    return FAILED


def _reader_gone() -> int:
    """Whoever read our output has left; what is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return FAILED


def _unexpected(error: Exception, log_file: Callable[[], Path]) -> str:
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    try:
        path = log_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as log:
            log.write("".join(traceback.format_exception(error)))
    except Exception as unwritable:  # noqa: BLE001 - whatever it is, nobody is left to catch it
        return f"Something unexpected happened ({what}), and the log could not be written ({unwritable})."
    return f"Something unexpected happened ({what}). The details are in {path}; please report them."
