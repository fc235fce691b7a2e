"""The deck in the database."""

import json
from collections.abc import Sequence

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from data.database.rows import chunks, insert, table
from data.database.session import Database
from data.database.tables.nataraj import CardNoteRow, CardRow
from domain.entities.nataraj import Card, CardState
from domain.errors import CardNotFound


class SqlCardRepository:
    """Implements `CardRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, card: Card) -> bool:
        def write(session: Session) -> bool:
            rows = table(CardRow)
            combination = json.dumps(card.note_ids)
            same = (rows.c.scope == card.scope, rows.c.combination == combination)
            session.connection().execute(delete(rows).where(*same, rows.c.state == "dropped"))
            if session.connection().execute(select(CardRow.id).where(*same)).first() is not None:
                return False
            insert(session, CardRow, [{**card.model_dump(), "combination": combination}])
            insert(
                session, CardNoteRow, [{"card_id": card.id, "note_id": note_id} for note_id in card.note_ids]
            )
            return True

        return await self._database.write(write)

    async def get(self, card_id: str) -> Card:
        def read(session: Session) -> Card:
            row = session.exec(select(CardRow).where(CardRow.id == card_id)).first()
            if row is None:
                raise _missing(card_id)
            return _card(row)

        return await self._database.read(read)

    async def list(self, scope: str, state: CardState, *, limit: int = 100) -> tuple[Card, ...]:
        def read(session: Session) -> tuple[Card, ...]:
            rows = (
                select(CardRow)
                .where(CardRow.scope == scope, CardRow.state == state)
                .order_by(col(CardRow.created_at), col(CardRow.number))
                .limit(limit)
            )
            return tuple(map(_card, session.exec(rows)))

        return await self._database.read(read)

    async def used_combinations(self, scope: str, *, with_dropped: bool) -> set[tuple[str, ...]]:
        def read(session: Session) -> set[tuple[str, ...]]:
            live = [] if with_dropped else [CardRow.state != "dropped"]
            combinations = session.exec(select(CardRow.combination).where(CardRow.scope == scope, *live))
            return {tuple(json.loads(combination)) for combination in combinations}

        return await self._database.read(read)

    async def set_state(
        self, card_id: str, state: CardState, note_id: str | None = None, *, was: CardState | None = None
    ) -> Card:
        def write(session: Session) -> Card:
            row = session.exec(select(CardRow).where(CardRow.id == card_id)).first()
            if row is None:
                raise _missing(card_id)
            if was in (None, row.state):
                row.state = state
                row.note_id = note_id
                session.add(row)
            return _card(row)

        return await self._database.write(write)

    async def counts(self, scope: str) -> dict[CardState, int]:
        def read(session: Session) -> dict[CardState, int]:
            counted = select(CardRow.state, func.count()).where(CardRow.scope == scope)
            found = dict(session.exec(counted.group_by(col(CardRow.state))).all())
            return {state: found.get(state, 0) for state in _STATES}

        return await self._database.read(read)

    async def forget_notes(self, note_ids: Sequence[str]) -> None:
        def write(session: Session) -> None:
            rows = table(CardRow)
            for chunk in chunks(sorted(set(note_ids))):
                theirs = select(CardNoteRow.card_id).where(col(CardNoteRow.note_id).in_(chunk))
                session.connection().execute(
                    delete(rows).where(rows.c.state == "buffered", rows.c.id.in_(theirs))
                )

        await self._database.write(write)


_STATES: tuple[CardState, ...] = ("buffered", "kept", "dropped", "barren")


def _card(row: CardRow) -> Card:
    return Card.model_validate(row.model_dump(exclude={"number", "combination"}))


def _missing(card_id: str) -> CardNotFound:
    return CardNotFound(f"There is no card {card_id}. List them with: uniun nataraj list")
