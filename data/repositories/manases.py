"""Manases in the database."""

from collections.abc import Sequence

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from data.database.rows import chunks, insert, table, upsert
from data.database.session import Database
from data.database.tables.notes import ManasNoteRow, ManasRow, NoteArrivalRow, NoteRow
from data.repositories.note_arrivals import arrive, manas_place
from data.repositories.note_links import name_key
from domain.entities.note import Manas
from domain.errors import InvalidRequest, ManasNotFound, NoteNotFound
from domain.repositories.identity import Identities


class SqlManasRepository:
    """Implements `ManasRepository`. Names that differ by case or accents only count as one."""

    def __init__(self, database: Database, identities: Identities) -> None:
        self._database = database
        self._identities = identities

    async def all(self) -> tuple[Manas, ...]:
        def read(session: Session) -> tuple[Manas, ...]:
            rows = session.exec(select(ManasRow).order_by(col(ManasRow.key))).all()
            return tuple(_manas(session, row) for row in rows)

        return await self._database.read(read)

    async def create(self, name: str) -> Manas:
        manas = Manas(id=self._identities.new_id(), name=" ".join(name.split()))

        def write(session: Session) -> None:
            key = name_key(manas.name)
            if session.exec(select(ManasRow.id).where(ManasRow.key == key)).first() is not None:
                raise InvalidRequest(f"There is a Manas {manas.name} already. Choose another name.")
            insert(session, ManasRow, [{"id": manas.id, "name": manas.name, "key": key}])

        await self._database.write(write)
        return manas

    async def get(self, manas_id: str) -> Manas:
        return await self._database.read(lambda session: _manas(session, _find(session, manas_id)))

    async def of_note(self, note_id: str) -> tuple[Manas, ...]:
        def read(session: Session) -> tuple[Manas, ...]:
            rows = session.exec(
                select(ManasRow)
                .join(ManasNoteRow, col(ManasNoteRow.manas_id) == col(ManasRow.id))
                .where(ManasNoteRow.note_id == note_id)
                .order_by(col(ManasRow.key))
            ).all()
            return tuple(_manas(session, row) for row in rows)

        return await self._database.read(read)

    async def rename(self, manas_id: str, name: str) -> None:
        name = " ".join(name.split())
        key = name_key(name)

        def write(session: Session) -> None:
            row = _find(session, manas_id)
            taken = session.exec(
                select(ManasRow.id).where(ManasRow.key == key, ManasRow.id != row.id)
            ).first()
            if taken is not None:
                raise InvalidRequest(f"There is a Manas {name} already. Choose another name.")
            row.name, row.key = name, key
            session.add(row)

        await self._database.write(write)

    async def delete(self, manas_id: str) -> None:
        def write(session: Session) -> None:
            row = _find(session, manas_id)
            session.connection().execute(delete(table(ManasRow)).where(col(ManasRow.id) == row.id))
            gone = col(NoteArrivalRow.place) == manas_place(row.id)
            session.connection().execute(delete(table(NoteArrivalRow)).where(gone))

        await self._database.write(write)

    async def add(self, manas_id: str, note_ids: Sequence[str]) -> None:
        wanted = sorted(set(note_ids))

        def write(session: Session) -> None:
            row = _find(session, manas_id)
            for chunk in chunks(wanted):
                there = set(session.exec(select(NoteRow.id).where(col(NoteRow.id).in_(chunk))))
                missing = [note_id for note_id in chunk if note_id not in there]
                if missing:
                    raise NoteNotFound(
                        f"There is no note {missing[0]}. Nothing was added to the Manas {row.name}."
                    )
                rows = [{"manas_id": row.id, "note_id": note_id} for note_id in chunk]
                upsert(session, ManasNoteRow, rows, key=["manas_id", "note_id"])
                arrive(session, {note_id: [manas_place(row.id)] for note_id in chunk})

        await self._database.write(write)

    async def remove(self, manas_id: str, note_ids: Sequence[str]) -> None:
        def write(session: Session) -> None:
            row = _find(session, manas_id)
            of_manas = col(ManasNoteRow.manas_id) == row.id
            for chunk in chunks(note_ids):
                session.connection().execute(
                    delete(table(ManasNoteRow)).where(of_manas, col(ManasNoteRow.note_id).in_(chunk))
                )

        await self._database.write(write)


def _find(session: Session, manas_id: str) -> ManasRow:
    row = session.get(ManasRow, manas_id)
    row = row or session.exec(select(ManasRow).where(ManasRow.key == name_key(manas_id))).first()
    if row is None:
        raise ManasNotFound(f"There is no Manas {manas_id}. List them with: uniun notes manas list")
    return row


def _manas(session: Session, row: ManasRow) -> Manas:
    count = select(func.count()).select_from(ManasNoteRow).where(ManasNoteRow.manas_id == row.id)
    return Manas(id=row.id, name=row.name, note_count=session.exec(count).one())
