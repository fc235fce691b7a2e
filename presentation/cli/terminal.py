"""What may reach the terminal, and how."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata
from typing import TYPE_CHECKING

from domain.errors import InvalidRequest, UniunError

if TYPE_CHECKING:
    from rich.console import Console

_NARROWEST = 20


def printable(text: str) -> str:
    """Text from a model or a file without control characters, which could move the cursor, retitle or type.

    Without its ESC an escape sequence is plain text, however it was split between two pieces of a stream.
    """
    if text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))


def write(text: str) -> None:
    """Untrusted text to stdout, at once, never read as markup."""
    sys.stdout.write(printable(text))
    sys.stdout.flush()


def say(sentence: str) -> None:
    """One line to stderr, for people."""
    print(_folded(f"uniun: {printable(sentence)}"), file=sys.stderr, flush=True)


def _folded(text: str) -> str:
    """At spaces, on a terminal. Without rich, which may be what a sentence says is missing."""
    if not sys.stderr.isatty():
        return text
    try:
        width, height = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        width, height = 80, 24
    # The last column stays free: behind it terminals differ in where the cursor is.
    room = max(_NARROWEST, shutil.get_terminal_size((width, height)).columns - 1)
    fold = textwrap.TextWrapper(
        room, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join("\n".join(fold.wrap(line)) for line in text.split("\n"))


def make_sure(deed: str, *, sure: bool) -> None:
    """Before what cannot be taken back: asks on a terminal, and wants to be told elsewhere. Raises `UniunError` after a no."""
    import typer

    if sure:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(f"Nobody can be asked whether to {deed}. Add --yes to be sure.")
    if not typer.confirm(f"{deed[:1].upper()}{deed[1:]}?", err=True):
        raise UniunError("Nothing was changed.")


def ask_first(deed: str, *, sure: bool) -> None:
    """Before what loses nothing that anybody typed: asks on a terminal; a script means what it says."""
    make_sure(deed, sure=sure or not sys.stdin.isatty())


def read_piped(limit: int) -> str:
    """All of stdin, as UTF-8 whatever the locale says. Raises `InvalidRequest` beyond `limit` bytes."""
    raw = sys.stdin.buffer.read(limit + 1)
    if len(raw) > limit:
        raise InvalidRequest(f"More than {limit} bytes were piped in. Pipe in less.")
    return decoded(raw).replace("\r\n", "\n")


def decoded(raw: bytes, first_line: int = 1) -> str:
    """Text that was piped in. Raises `InvalidRequest` naming the line, counted from `first_line`, and the byte in it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + raw.count(b"\n", 0, error.start)
        byte = error.start - raw.rfind(b"\n", 0, error.start)
        raise InvalidRequest(
            f"What was piped in is not UTF-8 text: byte {byte} of line {line} does not fit. Convert it first."
        ) from None


def out() -> Console:
    """Tables and other renderings, on stdout. Strings are taken literally, never as markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    """Progress, on stderr."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def size(count: float) -> str:
    """Bytes for people, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit in ("B", "kB") else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
