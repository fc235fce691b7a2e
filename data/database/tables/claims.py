"""Who does which piece of shared work."""

from datetime import datetime

from sqlmodel import Field

from data.database.columns import Row, SafeText, UtcDateTime


class WorkClaimRow(Row, table=True):
    """Holds until its time; a process renews what it is still at."""

    __tablename__ = "work_claim"

    work: str = Field(sa_type=SafeText, primary_key=True)
    subject: str = Field(sa_type=SafeText, primary_key=True)
    holder: str = Field(sa_type=SafeText)
    until: datetime = Field(sa_type=UtcDateTime)
