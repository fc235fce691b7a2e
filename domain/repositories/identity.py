"""New ids and the clocks, for use cases, which read neither themselves."""

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

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment, on a clock that nobody sets."""
        ...
