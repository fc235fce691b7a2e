"""Ganas, their claims and their run log in the database."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, case, delete, func, not_, or_, update
from sqlmodel import Session, col, select

from data.database.rows import table, upsert
from data.database.session import Database
from data.database.tables.gana import GanaRow, GanaRunRow
from data.gana.holders import ClaimHolders
from data.repositories.dead_holders import end_claims_of_dead
from data.repositories.note_writing import write_notes
from domain.entities.gana import RUNS_IN_ALL, RUNS_PER_GANA, Gana, GanaRun, Tick
from domain.entities.note import Note
from domain.errors import GanaNotFound
from domain.repositories.identity import Identities

LEASE_S = 60.0

_GANA = table(GanaRow).c
_FREE = {"claim": None, "claim_due_at": None, "claim_until": None}


class SqlGanaRepository:
    """Implements `GanaRepository`.

    A claim is one UPDATE that names the due time it takes: of two processes, one finds it gone. The end of a run is
    another that names the claim, in one transaction with what the run publishes and with the log, where a due time is
    completed once.
    """

    def __init__(
        self,
        database: Database,
        identities: Identities,
        lease_s: float = LEASE_S,
        holders: ClaimHolders | None = None,
    ) -> None:
        self._database = database
        self._identities = identities
        self._holders = holders
        self._lease = timedelta(seconds=lease_s)

    async def put(self, gana: Gana) -> None:
        row = {
            **gana.model_dump(exclude={"draft"}),
            "name": gana.draft.name,
            "draft": gana.draft.model_dump(mode="json"),
        }
        await self._database.write(lambda session: upsert(session, GanaRow, [row], key=["id"]))

    async def get(self, gana_id: str) -> Gana:
        return await self._database.read(lambda session: _gana(_find(session, gana_id)))

    async def all(self) -> tuple[Gana, ...]:
        def read(session: Session) -> tuple[Gana, ...]:
            return tuple(
                map(_gana, session.exec(select(GanaRow).order_by(col(GanaRow.name), col(GanaRow.id))))
            )

        return await self._database.read(read)

    async def delete(self, gana_id: str) -> None:
        def write(session: Session) -> None:
            row = _find(session, gana_id)
            session.connection().execute(delete(table(GanaRow)).where(_GANA.id == row.id))

        await self._database.write(write)

    async def due(self, now: datetime, limit: int) -> tuple[Gana, ...]:
        if self._holders is not None and self._holders.some_died():
            await self._database.write(lambda session: end_claims_of_dead(session, self._holders))

        def read(session: Session) -> tuple[Gana, ...]:
            at = case((_GANA.claim_due_at.is_not(None), _GANA.claim_due_at), else_=_GANA.due_at)
            rows = session.exec(
                select(GanaRow)
                .where(_GANA.enabled, or_(_GANA.claim.is_(None), self._lapsed(now)), at <= now)
                .order_by(at, _GANA.id)
                .limit(limit)
            )
            return tuple(
                _gana(row).model_copy(update={"due_at": row.claim_due_at or row.due_at}) for row in rows
            )

        return await self._database.read(read)

    async def claim(
        self,
        gana_id: str,
        due_at: datetime | None,
        next_due_at: datetime | None,
        *,
        by: str,
        now: datetime,
    ) -> Tick | None:
        holder = self._holders.name() if self._holders is not None else ""
        tick = Tick(gana_id=gana_id, due_at=due_at, claim=f"{by}@{holder}-{self._identities.new_id()}")
        lapsed = self._lapsed(now)
        values: dict[str, Any] = {
            "claim": tick.claim,
            "claim_due_at": due_at,
            "claim_until": now + self._lease,
        }
        if due_at is None:
            # A tick that its holder abandoned is not lost by this run: it is due again.
            values["due_at"] = func.coalesce(_GANA.claim_due_at, _GANA.due_at)
            free: tuple[ColumnElement[bool], ...] = (or_(_GANA.claim.is_(None), lapsed),)
        else:
            values["due_at"] = next_due_at
            # Nobody runs it, or somebody did outside the calendar and died.
            idle = or_(_GANA.claim.is_(None), and_(lapsed, _GANA.claim_due_at.is_(None)))
            abandoned = and_(lapsed, _GANA.claim_due_at == due_at)
            free = (_GANA.enabled, or_(and_(idle, _GANA.due_at == due_at), abandoned))

        def write(session: Session) -> Tick | None:
            end_claims_of_dead(session, self._holders)
            if due_at is not None and _completed(session, gana_id, due_at):
                # An edit brought back a due time that has had its run: it is passed over.
                over = update(table(GanaRow)).where(_GANA.id == gana_id, *free)
                session.connection().execute(over.values(due_at=next_due_at, **_FREE))
                return None
            taken = update(table(GanaRow)).where(_GANA.id == gana_id, *free).values(values)
            if session.connection().execute(taken).rowcount != 1:
                return None
            # One run at a time: whoever had it before could not say how its run ended, as when the database was away.
            runs = table(GanaRunRow)
            lost = update(runs).where(runs.c.gana_id == gana_id, runs.c.status == "running")
            session.connection().execute(lost.values(status="failed", reason="cancelled"))
            return tick

        return await self._database.write(write)

    async def renew(self, tick: Tick, now: datetime) -> bool:
        return await self._database.write(lambda session: _held(session, tick, claim_until=now + self._lease))

    async def release(self, tick: Tick) -> None:
        due = {} if tick.due_at is None else {"due_at": tick.due_at}
        await self._database.write(lambda session: _held(session, tick, **_FREE, **due))

    async def complete(
        self, tick: Tick | None, run: GanaRun, *, cursor: int | None, publish: Note | None
    ) -> bool:
        def write(session: Session) -> bool:
            if tick is not None:
                done = tick.due_at is not None and _completed(session, tick.gana_id, tick.due_at)
                if not _held(session, tick, **_FREE) or done:
                    return False
            if session.get(GanaRow, run.gana_id) is None:
                return False
            if cursor is not None:
                moved = update(table(GanaRow)).where(_GANA.id == run.gana_id).values(cursor=cursor)
                session.connection().execute(moved)
            if publish is not None:
                write_notes(session, [publish], extract=True)
            _log(session, run, completed_due_at=tick.due_at if tick is not None else None)
            return True

        return await self._database.write(write)

    async def put_run(self, run: GanaRun) -> None:
        def write(session: Session) -> None:
            # The log of a Gana goes with it.
            if session.get(GanaRow, run.gana_id) is not None:
                _log(session, run)

        await self._database.write(write)

    async def runs(self, gana_id: str | None = None, *, limit: int = 100) -> tuple[GanaRun, ...]:
        def read(session: Session) -> tuple[GanaRun, ...]:
            of_gana = [] if gana_id is None else [GanaRunRow.gana_id == gana_id]
            rows = (
                select(GanaRunRow)
                .where(*of_gana)
                .order_by(col(GanaRunRow.number).desc())  # clocks are set back
                .limit(limit)
            )
            return tuple(map(_run, session.exec(rows)))

        return await self._database.read(read)

    async def settle_running(self, now: datetime, *, by: str) -> int:
        rows = table(GanaRunRow)
        # On another machine it may be going on: as long as the Gana's claim holds, somebody says that it is.
        held = select(_GANA.id).where(
            _GANA.id == rows.c.gana_id, _GANA.claim.is_not(None), not_(self._lapsed(now))
        )
        lost = update(rows).where(rows.c.status == "running", rows.c.by == by, not_(held.exists()))
        settled = lost.values(status="failed", reason="cancelled")

        def write(session: Session) -> int:
            end_claims_of_dead(session, self._holders)
            return session.connection().execute(settled).rowcount

        return await self._database.write(write)

    def _lapsed(self, now: datetime) -> ColumnElement[bool]:
        """The claimer has not renewed in time. A claim that reaches further than two leases is from before the clock was
        set back, and says nothing; one lease is left for the difference between the clocks of two machines."""
        return or_(_GANA.claim_until <= now, _GANA.claim_until > now + 2 * self._lease)


def _find(session: Session, gana_id: str) -> GanaRow:
    row = session.get(GanaRow, gana_id)
    if row is None:
        named = select(GanaRow).where(GanaRow.name == gana_id)
        row = session.exec(named.order_by(col(GanaRow.created_at), col(GanaRow.id))).first()
    if row is None:
        raise GanaNotFound(f"There is no Gana {gana_id}. List them with: uniun gana list")
    return row


def _held(session: Session, tick: Tick, **values: Any) -> bool:
    """Changes the Gana if the tick's claim still holds."""
    ours = update(table(GanaRow)).where(_GANA.id == tick.gana_id, _GANA.claim == tick.claim)
    return session.connection().execute(ours.values(values)).rowcount == 1


def _completed(session: Session, gana_id: str, due_at: datetime) -> bool:
    found = select(GanaRunRow.number).where(
        GanaRunRow.gana_id == gana_id, GanaRunRow.completed_due_at == due_at
    )
    return session.exec(found).first() is not None


def _log(session: Session, run: GanaRun, **completed: datetime | None) -> None:
    upsert(session, GanaRunRow, [{**run.model_dump(), **completed}], key=["id"])
    rows = table(GanaRunRow)
    for of_gana, kept in (((rows.c.gana_id == run.gana_id,), RUNS_PER_GANA), ((), RUNS_IN_ALL)):
        newest = select(rows.c.number).where(*of_gana).order_by(rows.c.number.desc())
        last = session.connection().execute(newest.offset(kept - 1).limit(1)).scalar()
        if last is not None:
            session.connection().execute(delete(rows).where(*of_gana, rows.c.number < last))


def _gana(row: GanaRow) -> Gana:
    return Gana.model_validate({name: getattr(row, name) for name in Gana.model_fields})


def _run(row: GanaRunRow) -> GanaRun:
    return GanaRun.model_validate(row.model_dump(exclude={"number", "completed_due_at"}))
