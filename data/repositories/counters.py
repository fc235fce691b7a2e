"""Numbers that only grow."""

from sqlalchemy import bindparam, update
from sqlmodel import Session

from data.database.rows import table
from data.database.tables.notes import CounterRow

_COUNTER = table(CounterRow).c
_GROW = (
    update(table(CounterRow))
    .where(_COUNTER.name == bindparam("counter"))
    .values(value=_COUNTER.value + bindparam("more"))
    .returning(_COUNTER.value)
)
"""Kept, since composing a statement takes longer than executing it."""


def next_value(session: Session, name: str, count: int = 1) -> int:
    """The last of `count` new values, in the order of the commits: whoever has seen a value has seen all that carry a
    smaller one."""
    return int(session.connection().execute(_GROW, {"counter": name, "more": count}).scalar_one())
