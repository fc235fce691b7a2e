"""Tables on terminals of any width."""

import io

import pytest
from rich.console import Console

from presentation.cli.tables import Column, Row, print_table

COLUMNS = (
    Column(""),
    Column("name", folds=True),
    Column("size", right=True),
    Column("licence"),
    Column("from", folds=True),
)
ROWS = (
    Row(("*", "llama-3.1-8b-instruct", "4.7 GB", "llama 3.1", "the hub")),
    Row(
        ("", "a name of many words that says much", "12 MB", "unknown", "remote, at http://desk.lan:8118/v1")
    ),
)


def shown(width: int, *least: str) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, markup=False, highlight=False, color_system=None)
    print_table(console, COLUMNS, ROWS, least)
    return file.getvalue().splitlines()


def test_where_there_is_room_everything_stands_on_one_line() -> None:
    lines = shown(120, "licence")
    assert any("a name of many words that says much" in line and "desk.lan" in line for line in lines)
    assert not any("wider" in line for line in lines)


@pytest.mark.parametrize("width", [100, 80, 70, 60, 50, 40, 30])
def test_no_word_is_broken_and_no_name_is_cut(width: int) -> None:
    lines = shown(width, "licence", "from", "size")
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for name in ("llama-3.1-8b-instruct", "a", "many", "words", "much"):
        assert name in words
    told = " ".join(words).partition("(A wider terminal also shows: ")[2]
    for column, word in (("licence", "unknown"), ("from", "http://desk.lan:8118/v1"), ("size", "GB")):
        assert (column in told) != (word in words)


def test_the_least_important_columns_go_first_and_are_told() -> None:
    assert shown(70, "licence", "from", "size")[-1] == "(A wider terminal also shows: licence.)"
    told = " ".join(" ".join(shown(40, "licence", "from", "size")).split())
    assert told.endswith(" shows: licence, from.)")
