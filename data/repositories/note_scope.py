"""Which notes are meant: those with a tag, those of a Manas."""

from sqlalchemy import ColumnElement, or_
from sqlmodel import col, select

from data.database.columns import storable
from data.database.tables.notes import ManasNoteRow, NoteRow, NoteTagRow


def within(tag: str | None, manas_id: str | None) -> list[ColumnElement[bool]]:
    """Conditions on notes. A tag means those nested below it too."""
    conditions: list[ColumnElement[bool]] = []
    if tag is not None:
        nested = col(NoteTagRow.tag).startswith(storable(f"{tag}/"), autoescape=True)
        tagged = select(NoteTagRow.note_id).where(or_(col(NoteTagRow.tag) == tag, nested))
        conditions.append(col(NoteRow.id).in_(tagged))
    if manas_id is not None:
        of_manas = select(ManasNoteRow.note_id).where(ManasNoteRow.manas_id == manas_id)
        conditions.append(col(NoteRow.id).in_(of_manas))
    return conditions
