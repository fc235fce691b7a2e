"""The knowledge graph and the list of notes to be read, in the database."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, func, update
from sqlmodel import Session, col, select

from data.database.rows import chunks, table
from data.database.session import Database
from data.database.tables.knowledge import PendingExtractionRow, SummaryRow
from data.database.tables.notes import NoteRow
from data.repositories import graph_reading, graph_walk
from data.repositories.graph import assert_all
from data.repositories.work_claims import SqlWorkClaims
from domain.entities.knowledge import Concept, Extraction, Neighbourhood, PendingExtraction, Relation


class SqlKnowledgeRepository:
    """Implements `KnowledgeRepository`."""

    def __init__(self, database: Database, claims: SqlWorkClaims | None = None) -> None:
        """Without `claims` nobody else works on the list."""
        self._database = database
        self._claims = claims

    async def pending(self, limit: int, *, oldest: bool = False) -> tuple[PendingExtraction, ...]:
        others: list[ColumnElement[bool]] = []
        queued_at = col(PendingExtractionRow.queued_at)
        if self._claims is not None:
            await self._claims.forget_dead()
            others.append(~self._claims.held_elsewhere("read", table(PendingExtractionRow).c.note_id))

        def read(session: Session) -> tuple[PendingExtraction, ...]:
            rows = session.exec(
                select(PendingExtractionRow)
                .join(NoteRow, col(NoteRow.id) == col(PendingExtractionRow.note_id))
                .where(PendingExtractionRow.state == "waiting", *others)
                .order_by(queued_at if oldest else queued_at.desc(), col(NoteRow.number))
                .limit(limit)
            )
            return tuple(map(_pending, rows))

        return await self._database.read(read)

    async def pending_counts(self) -> dict[str, int]:
        def read(session: Session) -> dict[str, int]:
            counted = select(PendingExtractionRow.state, func.count()).group_by(
                col(PendingExtractionRow.state)
            )
            return {"waiting": 0, "failed": 0, **dict(session.exec(counted).all())}

        return await self._database.read(read)

    async def pending_of(self, note_id: str) -> PendingExtraction | None:
        def read(session: Session) -> PendingExtraction | None:
            row = session.get(PendingExtractionRow, note_id)
            return None if row is None else _pending(row)

        return await self._database.read(read)

    async def failures(self, limit: int = 100) -> tuple[PendingExtraction, ...]:
        def read(session: Session) -> tuple[PendingExtraction, ...]:
            rows = session.exec(
                select(PendingExtractionRow)
                .join(NoteRow, col(NoteRow.id) == col(PendingExtractionRow.note_id))
                .where(PendingExtractionRow.state == "failed")
                .order_by(col(PendingExtractionRow.queued_at).desc(), col(NoteRow.number).desc())
                .limit(limit)
            )
            return tuple(map(_pending, rows))

        return await self._database.read(read)

    async def retry(self, note_ids: Sequence[str] | None = None) -> int:
        rows = table(PendingExtractionRow)
        again = update(rows).where(rows.c.state == "failed").values(state="waiting", attempts=0, error=None)

        def write(session: Session) -> int:
            if note_ids is None:
                return session.connection().execute(again).rowcount
            return sum(
                session.connection().execute(again.where(rows.c.note_id.in_(chunk))).rowcount
                for chunk in chunks(sorted(set(note_ids)))
            )

        return await self._database.write(write)

    async def assert_extraction(self, note_id: str, content_hash: str, extraction: Extraction) -> bool:
        def write(session: Session) -> bool:
            present = session.exec(select(NoteRow.content_hash).where(NoteRow.id == note_id)).first()
            if present != content_hash:
                return False
            assert_all(session, note_id, extraction)
            rows = table(PendingExtractionRow)
            session.connection().execute(delete(rows).where(rows.c.note_id == note_id))
            return True

        return await self._database.write(write)

    async def fail(self, note_id: str, content_hash: str, error: str, *, give_up_after: int) -> None:
        def write(session: Session) -> None:
            row = session.get(PendingExtractionRow, note_id)
            if row is not None and row.content_hash == content_hash:
                row.attempts += 1
                row.error = error
                row.state = "failed" if row.attempts >= give_up_after else "waiting"
                session.add(row)

        await self._database.write(write)

    async def summary(self, note_id: str) -> str | None:
        def read(session: Session) -> str | None:
            row = session.get(SummaryRow, note_id)
            return None if row is None else row.summary

        return await self._database.read(read)

    async def summaries(self, note_ids: Sequence[str]) -> dict[str, str]:
        return await self._database.read(lambda session: graph_reading.summaries(session, note_ids))

    async def relations_of(self, note_ids: Sequence[str]) -> tuple[Relation, ...]:
        return await self._database.read(lambda session: graph_walk.relations_of(session, note_ids))

    async def related_notes(
        self, names: Sequence[str], note_ids: Sequence[str], *, manas_id: str | None = None, limit: int = 10
    ) -> tuple[str, ...]:
        return await self._database.read(
            lambda session: graph_walk.related_notes(session, names, note_ids, manas_id=manas_id, limit=limit)
        )

    async def concepts_of(self, note_ids: Sequence[str]) -> tuple[Concept, ...]:
        return await self._database.read(lambda session: graph_reading.concepts_of(session, note_ids))

    async def notes_naming(self, concept_ids: Sequence[str], limit: int) -> tuple[str, ...]:
        return await self._database.read(
            lambda session: graph_reading.notes_naming(session, concept_ids, limit)
        )

    async def neighbours(
        self, concept_ids: Sequence[str], *, hops: int = 1, limit: int = 50
    ) -> Neighbourhood:
        return await self._database.read(
            lambda session: graph_reading.neighbours(session, concept_ids, hops=hops, limit=limit)
        )

    async def find_concepts(self, text: str, limit: int = 20) -> tuple[Concept, ...]:
        return await self._database.read(lambda session: graph_reading.find_concepts(session, text, limit))

    async def graph(self, *, manas_id: str | None = None, limit: int = 500) -> Neighbourhood:
        return await self._database.read(
            lambda session: graph_reading.most_named(session, manas_id=manas_id, limit=limit)
        )


def _pending(row: PendingExtractionRow) -> PendingExtraction:
    return PendingExtraction.model_validate(row.model_dump())
