"""Notes in the database."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, or_
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database.rows import chunks, table
from data.database.session import Database
from data.database.tables.notes import (
    CounterRow,
    DeletedFileRow,
    ManasNoteRow,
    NoteLinkRow,
    NoteNameRow,
    NoteRow,
    NoteTagRow,
)
from data.repositories.full_text import SNIPPET_REACH, query_words, snippet
from data.repositories.note_arrivals import arrivals
from data.repositories.note_index import matches
from data.repositories.note_links import LinkTargets, last_component, name_key, name_keys
from data.repositories.note_scope import within
from data.repositories.note_writing import delete_note, write_notes
from domain.entities.note import ImportedOrigin, Link, Note, NoteArrival, NoteLine, SearchHit, hash_text
from domain.errors import NoteNotFound

_TEXTS_AT_ONCE = 200
"""In memory, when all texts are gone through."""


class SqlNoteRepository:
    """Implements `NoteRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, notes: Sequence[Note], *, extract: bool = True) -> None:
        await self._database.write(lambda session: write_notes(session, notes, extract=extract))

    async def replace(self, note: Note, seen: str) -> bool:
        def write(session: Session) -> bool:
            stored = session.exec(select(NoteRow.content_hash).where(NoteRow.id == note.id)).first()
            if stored != seen:
                return False
            write_notes(session, [note], extract=True)
            return True

        return await self._database.write(write)

    async def begin(self, note: Note) -> bool:
        def write(session: Session) -> bool:
            if session.exec(select(NoteRow.id).where(NoteRow.id == note.id)).first() is not None:
                return False
            write_notes(session, [note], extract=True)
            return True

        return await self._database.write(write)

    async def take_back(self, note_id: str, seen: str) -> bool:
        def write(session: Session) -> bool:
            row = session.exec(select(NoteRow).where(NoteRow.id == note_id)).first()
            if row is None or row.content_hash != seen or _links_to(session, note_of(row)):
                return False
            if session.exec(select(ManasNoteRow.note_id).where(ManasNoteRow.note_id == note_id)).first():
                return False
            return delete_note(session, note_id, again=True)

        return await self._database.write(write)

    async def get(self, note_id: str) -> Note:
        found = await self.many([note_id])
        if not found:
            raise NoteNotFound(f"There is no note {note_id}. List them with: uniun notes list")
        return found[0]

    async def many(self, note_ids: Sequence[str]) -> tuple[Note, ...]:
        def read(session: Session) -> tuple[Note, ...]:
            found = {
                row.id: note_of(row)
                for chunk in chunks(note_ids)
                for row in session.exec(select(NoteRow).where(col(NoteRow.id).in_(chunk)))
            }
            return tuple(found[note_id] for note_id in note_ids if note_id in found)

        return await self._database.read(read)

    async def by_origin(self, origins: Sequence[str]) -> dict[str, Note]:
        def read(session: Session) -> dict[str, Note]:
            return {
                str(row.origin): note_of(row)
                for chunk in chunks(origins)
                for row in session.exec(
                    select(NoteRow)
                    .where(col(NoteRow.origin).in_(chunk), NoteRow.source == "imported")
                    .order_by(col(NoteRow.number).desc())
                )
            }

        return await self._database.read(read)

    async def imported_origins(self) -> dict[str, ImportedOrigin]:
        def read(session: Session) -> dict[str, ImportedOrigin]:
            rows = session.exec(
                select(NoteRow.origin, NoteRow.id, NoteRow.content_hash, NoteRow.origin_mark)
                .where(NoteRow.source == "imported", col(NoteRow.origin).is_not(None))
                .order_by(col(NoteRow.number).desc())
            )
            return {
                str(origin): ImportedOrigin(note_id=note_id, content_hash=content_hash, mark=mark)
                for origin, note_id, content_hash, mark in rows
            }

        return await self._database.read(read)

    async def written_here(self) -> dict[str, tuple[str, str]]:
        def read(session: Session) -> dict[str, tuple[str, str]]:
            rows = session.exec(
                select(NoteRow.id, NoteRow.title, NoteRow.text)
                .where(NoteRow.source != "imported")
                .order_by(col(NoteRow.number).desc()),
                execution_options={"yield_per": _TEXTS_AT_ONCE},
            )
            return {hash_text(text): (note_id, title) for note_id, title, text in rows if text.strip()}

        return await self._database.read(read)

    async def deleted_origins(self) -> dict[str, str]:
        return await self._database.read(
            lambda session: dict(session.exec(select(DeletedFileRow.origin, DeletedFileRow.mark)).all())
        )

    async def delete(self, note_id: str, *, again: bool = False) -> None:
        if not await self._database.write(lambda session: delete_note(session, note_id, again=again)):
            raise NoteNotFound(f"There is no note {note_id}. List them with: uniun notes list")

    async def lines(
        self, *, tag: str | None = None, manas_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[NoteLine, ...]:
        def read(session: Session) -> tuple[NoteLine, ...]:
            rows = session.connection().execute(
                select_columns(*(table(NoteRow).c[name] for name in NoteLine.model_fields))
                .where(*within(tag, manas_id))
                .order_by(col(NoteRow.changed_at).desc(), col(NoteRow.number).desc())
                .limit(limit)
                .offset(offset)
            )
            return tuple(NoteLine.model_validate(dict(row._mapping)) for row in rows)

        return await self._database.read(read)

    async def count(self, *, tag: str | None = None, manas_id: str | None = None) -> int:
        counted = select(func.count()).select_from(NoteRow).where(*within(tag, manas_id))
        return await self._database.read(lambda session: session.exec(counted).one())

    async def search(
        self, query: str, *, tag: str | None = None, manas_id: str | None = None, limit: int = 20
    ) -> tuple[SearchHit, ...]:
        wanted = query_words(query)

        def read(session: Session) -> tuple[SearchHit, ...]:
            ranked = matches(session, wanted, called=name_key(query), tag=tag, manas_id=manas_id, limit=limit)
            scores = dict(ranked)
            found = {
                number: (note_id, title, text)
                for chunk in chunks(list(scores))
                for number, note_id, title, text in session.exec(
                    select(
                        NoteRow.number,
                        NoteRow.id,
                        NoteRow.title,
                        func.substr(col(NoteRow.text), 1, SNIPPET_REACH),
                    ).where(col(NoteRow.number).in_(chunk))
                )
            }
            hits: list[SearchHit] = []
            for number, score in scores.items():
                if number in found:
                    note_id, title, text = found[number]
                    excerpt = snippet(title, text, wanted)
                    hits.append(SearchHit(note_id=note_id, title=title, snippet=excerpt, score=score))
            return tuple(hits)

        return await self._database.read(read) if wanted and limit > 0 else ()

    async def matching(
        self, queries: Sequence[str], *, manas_id: str | None = None, limit: int = 20
    ) -> tuple[tuple[str, ...], ...]:
        def read(session: Session) -> tuple[tuple[str, ...], ...]:
            numbers = [
                [
                    number
                    for number, _ in matches(
                        session, wanted, called=name_key(query), manas_id=manas_id, limit=limit
                    )
                ]
                if (wanted := query_words(query)) and limit > 0
                else []
                for query in queries
            ]
            ids: dict[int | None, str] = {}
            for chunk in chunks(sorted({number for found in numbers for number in found})):
                rows = select(NoteRow.number, NoteRow.id).where(col(NoteRow.number).in_(chunk))
                ids.update(session.exec(rows).all())
            return tuple(tuple(ids[number] for number in found if number in ids) for found in numbers)

        return await self._database.read(read)

    async def tags(self) -> dict[str, int]:
        def read(session: Session) -> dict[str, int]:
            counted = select(NoteTagRow.tag, func.count()).group_by(col(NoteTagRow.tag))
            return dict(sorted(session.exec(counted)))

        return await self._database.read(read)

    async def links_from(self, note_id: str) -> tuple[Link, ...]:
        def read(session: Session) -> tuple[Link, ...]:
            of_note = select(NoteLinkRow).where(NoteLinkRow.source_id == note_id)
            return _resolved(session, session.exec(of_note.order_by(col(NoteLinkRow.position))).all())

        return await self._database.read(read)

    async def links_to(self, note_id: str) -> tuple[Link, ...]:
        def read(session: Session) -> tuple[Link, ...]:
            row = session.exec(select(NoteRow).where(NoteRow.id == note_id)).first()
            return () if row is None else _links_to(session, note_of(row))

        return await self._database.read(read)

    async def link_target(self, target: str) -> str | None:
        keys = (name_key(target), name_key(last_component(target)))
        return await self._database.read(lambda session: LinkTargets(session, keys).resolve(*keys))

    async def titles(self, beginning: str, *, limit: int) -> tuple[str, ...]:
        key = name_key(beginning)

        def read(session: Session) -> tuple[str, ...]:
            note = table(NoteRow).c
            if not key:
                newest = select_columns(note.title).order_by(note.changed_at.desc(), note.number.desc())
                rows = session.connection().execute(newest.limit(limit)).all()
            else:
                named = (
                    select_columns(note.title, func.min(func.length(col(NoteNameRow.key))).label("length"))
                    .join(NoteNameRow, note.id == col(NoteNameRow.note_id))
                    .where(col(NoteNameRow.key).startswith(key, autoescape=True))
                    .group_by(note.title)
                )
                rows = session.connection().execute(named.order_by("length", note.title).limit(limit)).all()
            return tuple(dict.fromkeys(row[0] for row in rows))

        return await self._database.read(read)

    async def arrived_since(
        self,
        after: int | None,
        *,
        tag: str | None,
        manas_id: str | None,
        limit: int,
        changed: tuple[datetime, datetime] | None = None,
    ) -> tuple[NoteArrival, ...]:
        def read(session: Session) -> tuple[NoteArrival, ...]:
            new = arrivals(after, tag=tag, manas_id=manas_id)
            when = (
                ()
                if changed is None
                else (changed[0] < col(NoteRow.changed_at), col(NoteRow.changed_at) <= changed[1])
            )
            rows = session.exec(
                select(NoteRow, new.c.number)
                .join(new, new.c.note_id == col(NoteRow.id))
                .where(NoteRow.source != "gana", *when, *within(tag, manas_id))
                .order_by(new.c.number)
                .limit(limit)
            )
            return tuple(NoteArrival(number=number, note=note_of(row)) for row, number in rows)

        return await self._database.read(read)

    async def last_arrival(self) -> int:
        return await self._database.read(
            lambda session: session.exec(select(CounterRow.value).where(CounterRow.name == "arrivals")).one()
        )

    async def note_ids(self, manas_id: str | None, *, tag: str | None = None) -> tuple[str, ...]:
        def read(session: Session) -> tuple[str, ...]:
            return tuple(sorted(session.exec(select(NoteRow.id).where(*within(tag, manas_id)))))

        return await self._database.read(read)


def note_of(row: NoteRow) -> Note:
    return Note.model_validate(row.model_dump(exclude={"number", "characters"}))


def _links_to(session: Session, note: Note) -> tuple[Link, ...]:
    keys = name_keys(note)
    rows = session.exec(
        select(NoteLinkRow)
        .where(or_(col(NoteLinkRow.key).in_(keys), col(NoteLinkRow.last_key).in_(keys)))
        .order_by(col(NoteLinkRow.source_id), col(NoteLinkRow.position))
    ).all()
    return tuple(link for link in _resolved(session, rows) if link.target_id == note.id)


def _resolved(session: Session, rows: Sequence[NoteLinkRow]) -> tuple[Link, ...]:
    targets = LinkTargets(session, [key for row in rows for key in (row.key, row.last_key)])
    return tuple(
        Link(source_id=row.source_id, target=row.target, target_id=targets.resolve(row.key, row.last_key))
        for row in rows
    )
