"""What processes of this machine left behind that were killed: claims of ticks and other work, and answers half written."""

from datetime import UTC, datetime

from sqlalchemy import delete, update
from sqlmodel import Session

from data.database.rows import table
from data.database.tables.claims import WorkClaimRow
from data.database.tables.conversations import MessageRow
from data.database.tables.gana import GanaRow
from data.gana.holders import ClaimHolders

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def end_claims_of_dead(session: Session, holders: ClaimHolders | None) -> None:
    """All at once: a dead process is forgotten by whoever finds it first, and nobody else hears of it."""
    if holders is None:
        return
    ganas, messages, work = table(GanaRow), table(MessageRow), table(WorkClaimRow)
    with holders.dead(forget=True) as names:
        for name in names:
            theirs = update(ganas).where(ganas.c.claim.contains(f"@{name}-"))
            session.connection().execute(theirs.values(claim_until=_LONG_AGO))
            session.connection().execute(delete(work).where(work.c.holder == name))
            unfinished = update(messages).where(messages.c.state == "streaming", messages.c.writer == name)
            session.connection().execute(unfinished.values(state="stopped", writer=None))
