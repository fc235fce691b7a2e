"""Keys of other programs."""

from datetime import datetime

from sqlmodel import Field

from data.database.columns import Row, SafeText, UtcDateTime


class ApiKeyRow(Row, table=True):
    __tablename__ = "api_key"

    number: int | None = Field(default=None, primary_key=True)
    id: str = Field(sa_type=SafeText, unique=True)
    name: str = Field(sa_type=SafeText, unique=True)
    hash: str = Field(sa_type=SafeText, unique=True)
    kind: str = Field(sa_type=SafeText)
    weight: float
    per_minute: int | None
    created_at: datetime = Field(sa_type=UtcDateTime)
