"""The deck."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlmodel import Field

from data.database.columns import Row, SafeJson, SafeText, UtcDateTime


class CardRow(Row, table=True):
    __tablename__ = "card"
    __table_args__ = (UniqueConstraint("scope", "combination"),)

    number: int | None = Field(default=None, primary_key=True)
    """The order of arrival, for cards of one moment."""
    id: str = Field(sa_type=SafeText, unique=True)
    scope: str = Field(sa_type=SafeText)
    combination: str = Field(sa_type=SafeText)
    """The note ids, sorted, as one text: the card's identity within its scope."""
    note_ids: list[str] = Field(sa_type=SafeJson)
    text: str = Field(sa_type=SafeText)
    state: str = Field(sa_type=SafeText, index=True)
    note_id: str | None = Field(sa_type=SafeText)
    created_at: datetime = Field(sa_type=UtcDateTime)


class CardNoteRow(Row, table=True):
    """Which cards a note is on. The note may be gone."""

    __tablename__ = "card_note"

    card_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("card.id", ondelete="CASCADE")], primary_key=True
    )
    note_id: str = Field(sa_type=SafeText, primary_key=True, index=True)
