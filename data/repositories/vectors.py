"""Vectors in the database, and the index over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, bindparam, delete, func
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database.rows import chunks, table, upsert
from data.database.session import Database
from data.database.tables.notes import NoteRow, PendingVectorRow, VectorRow
from data.repositories.counters import next_value
from data.repositories.note_scope import within
from data.repositories.work_claims import SqlWorkClaims

if TYPE_CHECKING:
    from data.repositories.vector_index import VectorIndex

EMBEDDED_CHARACTERS = 8_000
"""More than any embedder's window; a note of megabytes is not read whole for it."""

# Kept, since composing a statement takes longer than executing it.
_CONTENT = select_columns(table(NoteRow).c.content_hash).where(table(NoteRow).c.id == bindparam("subject"))
_DONE = delete(table(PendingVectorRow)).where(table(PendingVectorRow).c.note_id == bindparam("subject"))


class SqlVectorRepository:
    """Implements `VectorRepository`."""

    def __init__(self, database: Database, claims: SqlWorkClaims | None = None) -> None:
        """Without `claims` nobody else works on the queue."""
        self._database = database
        self._claims = claims
        self._made: VectorIndex | None = None

    async def waiting(
        self, limit: int, *, others_too: bool = False, oldest: bool = False
    ) -> tuple[tuple[str, str, str], ...]:
        others: list[ColumnElement[bool]] = []
        queued_at = col(PendingVectorRow.queued_at)
        if self._claims is not None and not others_too:
            await self._claims.forget_dead()
            others.append(~self._claims.held_elsewhere("embed", table(PendingVectorRow).c.note_id))

        def read(session: Session) -> tuple[tuple[str, str, str], ...]:
            rows = session.exec(
                select(
                    NoteRow.id,
                    NoteRow.content_hash,
                    NoteRow.title,
                    func.substr(col(NoteRow.text), 1, EMBEDDED_CHARACTERS),
                )
                .join(PendingVectorRow, col(PendingVectorRow.note_id) == col(NoteRow.id))
                .where(*others)
                .order_by(queued_at if oldest else queued_at.desc(), col(NoteRow.number))
                .limit(limit)
            )
            return tuple(
                (note_id, content_hash, f"{title}\n{text}") for note_id, content_hash, title, text in rows
            )

        return await self._database.read(read)

    async def waiting_count(self) -> int:
        return await self._database.read(
            lambda session: session.exec(select(func.count()).select_from(PendingVectorRow)).one()
        )

    async def store(self, note_id: str, content_hash: str, vector: Sequence[float]) -> bool:
        from data.repositories.vector_index import packed

        data = packed(vector)

        def write(session: Session) -> bool:
            subject = {"subject": note_id}
            if session.connection().execute(_CONTENT, subject).scalar() != content_hash:
                return False
            row = {
                "note_id": note_id,
                "version": next_value(session, "vectors"),
                "content_hash": content_hash,
                "vector": data,
            }
            upsert(session, VectorRow, [row], key=["note_id"])
            session.connection().execute(_DONE, subject)
            return True

        return await self._database.write(write)

    async def nearest(
        self,
        vector: Sequence[float],
        *,
        tag: str | None = None,
        manas_id: str | None = None,
        limit: int = 10,
    ) -> tuple[tuple[str, float], ...]:
        index = self._index()

        def read(session: Session) -> tuple[tuple[str, float], ...]:
            scope = within(tag, manas_id)
            chosen = set(session.exec(select(NoteRow.id).where(*scope))) if scope else None
            index.catch_up(session)
            # Twice as many, so that those left out seldom make the list shorter.
            found = index.nearest(vector, within=chosen, limit=2 * limit)
            blank = _without_text(session, [note_id for note_id, _ in found])
            return tuple(one for one in found if one[0] not in blank)[:limit]

        return await self._database.read(read)

    def _index(self) -> VectorIndex:
        """Made with the first search, since the numerics that it imports take a while."""
        from data.repositories.vector_index import VectorIndex

        if self._made is None:
            self._made = VectorIndex()
        return self._made


def _without_text(session: Session, note_ids: Sequence[str]) -> set[str]:
    """A bare title lies near every question."""
    start = func.substr(col(NoteRow.text), 1, EMBEDDED_CHARACTERS)
    rows = [
        row
        for some in chunks(note_ids)
        for row in session.exec(select(NoteRow.id, start).where(col(NoteRow.id).in_(some)))
    ]
    return {note_id for note_id, text in rows if not text.strip()}
