"""Statements that both databases understand and SQLAlchemy spells differently for each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Table
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
        session.connection().execute(table(row).insert(), list(values))


def upsert(
    session: Session, row: type[Row], values: Sequence[Mapping[str, Any]], *, key: Sequence[str]
) -> None:
    """Inserts, or replaces every other column of the row that has this key. All values have the same columns."""
    if not values:
        return
    dialect = sqlite if is_sqlite(session) else postgresql
    statement = dialect.insert(table(row))
    replaced = {column: statement.excluded[column] for column in values[0] if column not in key}
    session.connection().execute(
        statement.on_conflict_do_update(index_elements=key, set_=replaced)
        if replaced
        else statement.on_conflict_do_nothing(index_elements=key),
        list(values),
    )


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts that fit into one statement."""
    for start in range(0, len(items), PARAMETERS):
        yield items[start : start + PARAMETERS]
