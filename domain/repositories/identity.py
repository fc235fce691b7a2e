"""New ids and the wall clock, for use cases, which read neither themselves."""

from datetime import datetime
from typing import Protocol


class Identities(Protocol):
    """Where ids and times of new things come from."""

    def new_id(self) -> str:
        """Unique for good; hexadecimal, so that its beginning can be typed."""
        ...

    def now(self) -> datetime:
        """The wall clock, aware."""
        ...
