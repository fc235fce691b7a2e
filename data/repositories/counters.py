"""Numbers that only grow."""

from sqlalchemy import update
from sqlmodel import Session

from data.database.rows import table
from data.database.tables.notes import CounterRow


def next_value(session: Session, name: str, count: int = 1) -> int:
    """The last of `count` new values, in the order of the commits: whoever has seen a value has seen all that carry a
    smaller one."""
    counter = table(CounterRow)
    grown = update(counter).where(counter.c.name == name).values(value=counter.c.value + count)
    return int(session.connection().execute(grown.returning(counter.c.value)).scalar_one())
