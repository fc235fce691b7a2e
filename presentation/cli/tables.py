"""Tables that fit their terminal: columns that matter least are left out, and words stay whole."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_LONGEST_WORD = 30
"""Cells; what is longer, as an address, is broken where its column ends."""
_ANY_WIDTH = 10_000


@dataclass(frozen=True)
class Column:
    """Its cells stand on one line each, unless it folds."""

    name: str
    right: bool = False
    folds: bool = False


@dataclass(frozen=True)
class Row:
    """A cell for every column."""

    cells: Sequence[str]
    style: str = ""


def print_table(
    console: Console, columns: Sequence[Column], rows: Sequence[Row], least: Sequence[str]
) -> None:
    """`least` are columns that may be left out, the least important one first; which ones were, stands below."""
    left_out: list[str] = []
    table = build_table(columns, rows)
    for name in least:
        if fits(console, table):
            break
        left_out.append(name)
        table = build_table(columns, rows, left_out)
    console.print(table)
    if left_out:
        console.print(f"(A wider terminal also shows: {', '.join(left_out)}.)", style="dim")


def build_table(columns: Sequence[Column], rows: Sequence[Row], left_out: Sequence[str] = ()) -> Table:
    """Without the columns that are left out."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    shown = [number for number, column in enumerate(columns) if column.name not in left_out]
    for number in shown:
        column = columns[number]
        texts = [column.name, *(row.cells[number] for row in rows)]
        whole = [word for text in texts for word in text.split()] if column.folds else texts
        least = max(map(cell_len, whole), default=0)
        table.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=not column.folds,
            overflow="fold",
            min_width=min(_LONGEST_WORD, least) if column.folds else least,
        )
    for row in rows:
        table.add_row(*(row.cells[number] for number in shown), style=row.style)
    return table


def fits(console: Console, table: Table) -> bool:
    """Whether no word need be broken."""
    least = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), table).minimum
    return least <= console.width
