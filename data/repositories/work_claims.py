"""Claims of shared work in the database."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Table, and_, delete, or_
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from data.database.rows import chunks, is_sqlite, table
from data.database.session import Database
from data.database.tables.claims import WorkClaimRow
from data.database.tables.knowledge import PendingExtractionRow
from data.database.tables.notes import PendingVectorRow
from data.gana.holders import ClaimHolders
from data.repositories.dead_holders import end_claims_of_dead
from domain.errors import DatabaseError
from domain.repositories.identity import Identities
from domain.repositories.work_claims import Work

LEASE_S = 60.0
RENEWAL_PERIOD_S = 15.0
"""A quarter of the lease, so that a busy machine loses none."""

_CLAIM = table(WorkClaimRow).c
_LISTS: dict[Work, Table] = {"read": table(PendingExtractionRow), "embed": table(PendingVectorRow)}


class SqlWorkClaims:
    """Implements `WorkClaims`. A claim bears the name of its process, which takes it in one transaction in which it also
    sees that the work is still to be done."""

    def __init__(
        self,
        database: Database,
        identities: Identities,
        holders: ClaimHolders | None = None,
        *,
        lease_s: float = LEASE_S,
        renewal_s: float = RENEWAL_PERIOD_S,
    ) -> None:
        self._database = database
        self._identities = identities
        self._holders = holders
        self._lease = timedelta(seconds=lease_s)
        self._renewal_s = renewal_s
        self._name = ""
        self._held: Counter[tuple[Work, str]] = Counter()
        """How many callers have each, or are about to: the last one gives it back."""

    @asynccontextmanager
    async def hold(self, work: Work, subjects: Sequence[str]) -> AsyncIterator[frozenset[str]]:
        """Raises `DatabaseError`."""
        subjects = list(dict.fromkeys(subjects))
        self._held.update((work, subject) for subject in subjects)
        ours: frozenset[str] | None = None
        try:
            ours = await self._take(work, subjects)
            renewing = asyncio.create_task(self._renew(work, sorted(ours)))
            try:
                yield ours
            finally:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
        finally:
            self._held.subtract((work, subject) for subject in subjects)
            free = [subject for subject in subjects if not self._held[work, subject]]
            for subject in free:
                del self._held[work, subject]
            # Cancelled while it took them, it may have them all the same.
            await self._release(work, free if ours is None else [each for each in free if each in ours])

    async def forget_dead(self) -> None:
        """Ends the claims of processes of this machine that were killed."""
        if self._holders is not None and self._holders.some_died():
            await self._database.write(lambda session: end_claims_of_dead(session, self._holders))

    def held_elsewhere(self, work: Work, subject: ColumnElement[str]) -> ColumnElement[bool]:
        """For a query over a list of work."""
        theirs = select(WorkClaimRow.holder).where(
            col(WorkClaimRow.work) == work,
            col(WorkClaimRow.subject) == subject,
            col(WorkClaimRow.holder) != self._holder(),
            ~self._lapsed(self._identities.now()),
        )
        return theirs.exists()

    async def _take(self, work: Work, subjects: Sequence[str]) -> frozenset[str]:
        """Or renews."""
        holder = self._holder()

        def write(session: Session) -> frozenset[str]:
            now = self._identities.now()
            end_claims_of_dead(session, self._holders)
            session.connection().execute(delete(table(WorkClaimRow)).where(self._lapsed(now)))
            wanted = _still_listed(session, work, subjects)
            rows = [
                {"work": work, "subject": subject, "holder": holder, "until": now + self._lease}
                for subject in wanted
            ]
            if not rows:
                return frozenset()
            insert = (sqlite if is_sqlite(session) else postgresql).insert(table(WorkClaimRow))
            taken = insert.on_conflict_do_update(
                index_elements=["work", "subject"],
                set_={"until": insert.excluded.until},
                where=_CLAIM.holder == holder,
            )
            session.connection().execute(taken, rows)
            return frozenset(
                subject
                for some in chunks(wanted)
                for subject in session.exec(
                    select(WorkClaimRow.subject).where(
                        _CLAIM.work == work, _CLAIM.holder == holder, _CLAIM.subject.in_(some)
                    )
                )
            )

        return await self._database.write(write)

    async def _release(self, work: Work, subjects: Sequence[str]) -> None:
        """What cannot be released lapses."""
        if not subjects:
            return
        ours = and_(_CLAIM.work == work, _CLAIM.holder == self._holder())

        def write(session: Session) -> None:
            for some in chunks(subjects):
                session.connection().execute(
                    delete(table(WorkClaimRow)).where(ours, _CLAIM.subject.in_(some))
                )

        with suppress(DatabaseError):
            await self._database.write(write)

    async def _renew(self, work: Work, subjects: Sequence[str]) -> None:
        while subjects:
            await asyncio.sleep(self._renewal_s)
            with suppress(DatabaseError):  # locked or full for the moment
                await self._take(work, subjects)

    def _holder(self) -> str:
        if not self._name:
            self._name = (
                self._holders.name() if self._holders is not None else ""
            ) or self._identities.new_id()
        return self._name

    def _lapsed(self, now: datetime) -> ColumnElement[bool]:
        """A claim that reaches further than two leases is from before the clock was set back, and says nothing; one lease
        is left for the difference between the clocks of two machines."""
        return or_(_CLAIM.until <= now, _CLAIM.until > now + 2 * self._lease)


def _still_listed(session: Session, work: Work, subjects: Sequence[str]) -> list[str]:
    rows = _LISTS.get(work)
    if rows is None:
        return list(subjects)
    return [
        subject
        for some in chunks(subjects)
        for subject in session.connection()
        .execute(select(rows.c.note_id).where(rows.c.note_id.in_(some)))
        .scalars()
    ]
