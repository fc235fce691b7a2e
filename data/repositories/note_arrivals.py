"""When notes first got a tag or came into a Manas. That makes them new to a Gana; an edit does not."""

from collections.abc import Collection, Mapping

from sqlalchemy import ColumnElement, Subquery, bindparam, func, or_
from sqlalchemy import select as select_columns
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from data.database.columns import storable
from data.database.rows import insert, table
from data.database.tables.notes import NoteArrivalRow
from data.repositories.counters import next_value

_ARRIVAL = table(NoteArrivalRow).c
_KNOWN = select_columns(_ARRIVAL.note_id, _ARRIVAL.place).where(
    _ARRIVAL.note_id.in_(bindparam("note_ids", expanding=True))
)
"""Kept, since composing a statement takes longer than executing it."""


def tag_place(tag: str) -> str:
    return f"tag:{tag}"


def manas_place(manas_id: str) -> str:
    return f"manas:{manas_id}"


def arrive(session: Session, places: Mapping[str, Collection[str]], *, new: Collection[str] = ()) -> None:
    """Note ids, as many as fit into a statement, to places; where a note has been before it does not arrive again. Those
    that are `new` have been nowhere."""
    known: set[tuple[str, str]] = set()
    if older := [note_id for note_id in places if note_id not in new]:
        rows = session.connection().execute(_KNOWN, {"note_ids": older})
        known.update((note_id, place) for note_id, place in rows)
    arriving = {
        note_id: fresh
        for note_id, wanted in places.items()
        if (fresh := {storable(place) for place in wanted if (note_id, storable(place)) not in known})
    }
    if arriving:
        first = next_value(session, "arrivals", len(arriving)) - len(arriving) + 1
        values = [
            {"note_id": note_id, "place": place, "number": number}
            for number, (note_id, fresh) in enumerate(arriving.items(), first)
            for place in fresh
        ]
        insert(session, NoteArrivalRow, values)


def arrivals(after: int | None, *, tag: str | None, manas_id: str | None) -> Subquery:
    """Columns `note_id` and `number` of what came to a tag, or one nested below it, or else to a Manas."""

    def there(row: type[NoteArrivalRow]) -> ColumnElement[bool]:
        if tag is None:
            return col(row.place) == manas_place(manas_id or "")
        place = storable(tag_place(tag))
        return or_(col(row.place) == place, col(row.place).startswith(f"{place}/", autoescape=True))

    new = select_columns(col(NoteArrivalRow.note_id), func.min(NoteArrivalRow.number).label("number"))
    new = new.where(there(NoteArrivalRow)).group_by(col(NoteArrivalRow.note_id))
    if after is not None:
        before = aliased(NoteArrivalRow)
        same = col(before.note_id) == col(NoteArrivalRow.note_id)
        been = select(before.note_id).where(same, there(before), col(before.number) <= after)
        new = new.where(col(NoteArrivalRow.number) > after, ~been.exists())
    return new.subquery()
