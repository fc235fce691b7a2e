"""Saving and deleting notes with all that hangs on them, within a transaction that may do more."""

import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam, delete, update
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database.columns import storable
from data.database.rows import chunks, insert, table, upsert
from data.database.tables.knowledge import PendingExtractionRow
from data.database.tables.notes import (
    DeletedFileRow,
    NoteLinkRow,
    NoteNameRow,
    NoteRow,
    NoteTagRow,
    PendingVectorRow,
    VectorRow,
)
from data.repositories.concept_merging import refresh_named
from data.repositories.counters import next_value
from data.repositories.graph import withdraw
from data.repositories.note_arrivals import arrive, tag_place
from data.repositories.note_index import index_notes, unindex_notes
from data.repositories.note_links import last_component, name_key, name_keys
from domain.entities.note import Note
from domain.errors import InvalidRequest

# Kept, since composing a statement takes longer than executing it.
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_NOTE, _NAME = table(NoteRow).c, table(NoteNameRow).c
_STORED = select_columns(_NOTE.id, _NOTE.number, _NOTE.content_hash).where(_NOTE.id.in_(_IDS))
_NAMED = select_columns(_NOTE.id, _NAME.key, _NOTE.title).where(_NAME.note_id == _NOTE.id, _NOTE.id.in_(_IDS))
_CLEAR = (
    delete(table(NoteTagRow)).where(table(NoteTagRow).c.note_id.in_(_IDS)),
    delete(table(NoteNameRow)).where(_NAME.note_id.in_(_IDS)),
    delete(table(NoteLinkRow)).where(table(NoteLinkRow).c.source_id.in_(_IDS)),
)


def write_notes(session: Session, notes: Sequence[Note], *, extract: bool) -> None:
    """Creates or replaces notes, and queues what follows from those whose content changed.

    Raises `InvalidRequest` if another process has imported one of these files meanwhile: it would be there twice.
    """
    latest = {note.id: note for note in notes}
    for chunk in chunks(list(latest.values())):
        _write(session, chunk, extract=extract)


def delete_note(session: Session, note_id: str, *, again: bool) -> bool:
    """With all that hangs on it; false if there is none. Its file is remembered, unless it may be imported again."""
    found = session.exec(
        select(NoteRow.number, NoteRow.source, NoteRow.origin, NoteRow.origin_mark).where(
            NoteRow.id == note_id
        )
    ).first()
    if found is None:
        return False
    number, source, origin, mark = found
    if source == "imported" and origin is not None and not again:
        row = {"key": _file_key(origin), "origin": origin, "mark": mark or ""}
        upsert(session, DeletedFileRow, [row], key=["key"])
    withdraw(session, note_id)
    named = _named(session, [note_id])
    unindex_notes(session, [number or 0])
    # The row stays, without its vector, for the indexes that other processes hold in memory.
    session.connection().execute(
        update(table(VectorRow))
        .where(col(VectorRow.note_id) == note_id)
        .values(vector=None, content_hash=None, version=next_value(session, "vectors"))
    )
    session.connection().execute(delete(table(NoteRow)).where(col(NoteRow.id) == note_id))
    refresh_named(session, {key for _, key, _ in named})
    return True


def _write(session: Session, notes: Sequence[Note], *, extract: bool) -> None:
    ids = [note.id for note in notes]
    _refuse_second_import(session, notes)
    _bring_back(session, notes)
    before = _stored(session, ids)
    named = _named(session, list(before))
    changed = [note for note in notes if note.id not in before or before[note.id][1] != note.content_hash]
    upsert(session, NoteRow, [_row(note) for note in notes], key=["id"])
    if before:
        for parts in _CLEAR:
            session.connection().execute(parts, {"ids": list(before)})
    insert(
        session, NoteTagRow, [{"note_id": note.id, "tag": tag} for note in notes for tag in set(note.tags)]
    )
    arrive(
        session,
        {note.id: [tag_place(tag) for tag in note.tags] for note in notes if note.tags},
        new=set(ids) - before.keys(),
    )
    names = {(note.id, key, storable(note.title)) for note in notes for key in name_keys(note)}
    insert(session, NoteNameRow, [{"note_id": note_id, "key": key} for note_id, key, _ in names])
    insert(
        session,
        NoteLinkRow,
        [
            {
                "source_id": note.id,
                "position": position,
                "target": target,
                "key": name_key(target),
                "last_key": name_key(last_component(target)),
            }
            for note in notes
            for position, target in enumerate(note.links)
        ],
    )
    unindex_notes(session, [number for number, _ in before.values()])
    index_notes(session, notes)
    _queue(session, changed, extract=extract)
    refresh_named(session, {key for _, key, _ in named ^ names})


def _queue(session: Session, changed: Sequence[Note], *, extract: bool) -> None:
    upsert(
        session,
        PendingVectorRow,
        [{"note_id": note.id, "queued_at": note.changed_at} for note in changed],
        key=["note_id"],
    )
    if not extract:
        # What waits already waits for the newest text.
        waiting = select(PendingExtractionRow.note_id).where(
            col(PendingExtractionRow.note_id).in_([note.id for note in changed])
        )
        still = set(session.exec(waiting))
        changed = [note for note in changed if note.id in still]
    upsert(
        session,
        PendingExtractionRow,
        [
            {
                "note_id": note.id,
                "content_hash": note.content_hash,
                "state": "waiting",
                "attempts": 0,
                "error": None,
                "queued_at": note.changed_at,
            }
            for note in changed
        ],
        key=["note_id"],
    )


def _refuse_second_import(session: Session, notes: Sequence[Note]) -> None:
    origins = {note.origin for note in notes if note.source == "imported" and note.origin is not None}
    if not origins:
        return
    found = session.exec(
        select(NoteRow.origin)
        .where(NoteRow.source == "imported", col(NoteRow.origin).in_(origins))
        .where(col(NoteRow.id).not_in([note.id for note in notes]))
    ).first()
    if found is not None:
        raise InvalidRequest(f"{found} was imported by another process at the same moment. Import once more.")


def _bring_back(session: Session, notes: Sequence[Note]) -> None:
    """Files that are imported are no longer those of deleted notes."""
    keys = [_file_key(note.origin) for note in notes if note.source == "imported" and note.origin is not None]
    if keys:
        session.connection().execute(delete(table(DeletedFileRow)).where(col(DeletedFileRow.key).in_(keys)))


def _file_key(origin: str) -> str:
    return hashlib.sha256(storable(origin).encode()).hexdigest()


def _stored(session: Session, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Note id to number and content hash."""
    rows = session.connection().execute(_STORED, {"ids": ids})
    return {note_id: (number, content_hash) for note_id, number, content_hash in rows}


def _named(session: Session, ids: Sequence[str]) -> set[tuple[str, str, str]]:
    """Note id, key of a name, and title."""
    rows = session.connection().execute(_NAMED, {"ids": ids}) if ids else ()
    return {(note_id, key, title) for note_id, key, title in rows}


def _row(note: Note) -> dict[str, Any]:
    return {**note.model_dump(), "characters": len(note.text)}
