"""Folding text at its spaces. Only for terminals: what is piped stays on its line, and as the model wrote it."""

import re
import shutil
import sys
from collections.abc import Callable

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from presentation.cli.terminal import printable, write

_PIECES = re.compile(r"\n|[^\S\n]|\S+")
_TAB = 8
_NARROWEST = 20
"""Cells; where less is left beside a label, the text goes on below it."""
_BELOW = 4


class WordWrap:
    """Shows every piece at once; a word that turns out too long for its line is taken back and put on the next one."""

    def __init__(self, emit: Callable[[str], None], columns: Callable[[], int]) -> None:
        """`columns` is the terminal's width in cells; asked again and again, because it changes."""
        self._emit = emit
        self._columns = columns
        self._at = 0
        self._word = ""
        """As much of the last word as is shown."""

    def write(self, text: str) -> None:
        """Untrusted text, from where the cursor is; the first of it at the beginning of a line."""
        # The last column stays free: behind it terminals differ in where the cursor is.
        width = max(2, self._columns()) - 1
        self._emit("".join(self._placed(piece, width) for piece in _PIECES.findall(printable(text))))

    def _placed(self, piece: str, width: int) -> str:
        if piece == "\n":
            self._at, self._word = 0, ""
            return piece
        if piece.isspace():
            self._word = ""
            step = _TAB - self._at % _TAB if piece == "\t" else cell_len(piece)
            if self._at + step > width:
                self._at = 0
                return "\n"
            self._at += step
            return piece
        shown, cells = cell_len(self._word), cell_len(piece)
        begins_line = self._at == shown
        self._word += piece
        if self._at + cells <= width or begins_line or shown + cells > width:
            self._at += cells
            self._at = self._at if self._at <= width else self._at % (width + 1)
            return piece
        self._at = shown + cells
        return "\b" * shown + "\x1b[K\n" + self._word


def write_beside(label: str, text: str) -> None:
    """A label, such as an id, and an untrusted text that stays to the right of it."""
    write(printable(label) + folded(text, cell_len(label)) + "\n")


def folded(text: str, label_cells: int = 0) -> str:
    """An untrusted text as it stands beside a label."""
    indent, lines = beside(label_cells, printable(text))
    return f"\n{' ' * indent}".join(lines)


def beside(label_cells: int, text: str) -> tuple[int, list[str]]:
    """How far all lines but the first are indented, and the lines."""
    if not sys.stdout.isatty():
        return label_cells, [text]
    # The last column stays free, as above.
    width = shutil.get_terminal_size().columns - 1
    fits = width - label_cells >= _NARROWEST
    indent = label_cells if fits else _BELOW
    room = max(_NARROWEST, width - indent)
    lines = [line.plain.rstrip() for line in Text(text).wrap(Console(width=room), room)]
    return indent, lines or [""] if fits else ["", *lines]
