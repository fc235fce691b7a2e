"""Statements that both databases understand and SQLAlchemy spells differently for each."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Insert, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session

from data.database.columns import Row

T = TypeVar("T")

PARAMETERS = 1_000
"""In one statement. Both databases take more, but not any number."""


def table(row: type[Row]) -> Table:
    return Row.metadata.tables[str(row.__tablename__)]


def is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"


def insert(session: Session, row: type[Row], values: Sequence[Mapping[str, Any]]) -> None:
    """Nothing happens for no values."""
    if values:
        session.connection().execute(_insert(row), list(values))


def upsert(
    session: Session, row: type[Row], values: Sequence[Mapping[str, Any]], *, key: Sequence[str]
) -> None:
    """Inserts, or replaces every other column of the row that has this key. All values have the same columns."""
    if values:
        statement = _upsert(is_sqlite(session), row, tuple(key), tuple(values[0]))
        session.connection().execute(statement, list(values))


@cache
def _insert(row: type[Row]) -> Insert:
    """Kept, as the next one is."""
    return table(row).insert()


@cache
def _upsert(for_sqlite: bool, row: type[Row], key: tuple[str, ...], columns: tuple[str, ...]) -> Insert:
    """Kept, since composing one takes longer than executing it."""
    statement = (sqlite if for_sqlite else postgresql).insert(table(row))
    replaced = {column: statement.excluded[column] for column in columns if column not in key}
    done: Insert = (
        statement.on_conflict_do_update(index_elements=key, set_=replaced)
        if replaced
        else statement.on_conflict_do_nothing(index_elements=key)
    )
    return done


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts that fit into one statement."""
    for start in range(0, len(items), PARAMETERS):
        yield items[start : start + PARAMETERS]
