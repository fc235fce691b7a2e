"""The reading of notes that goes on by itself."""

from typing import Protocol


class BackgroundReading(Protocol):
    """What this process knows of it; another one may do the work."""

    @property
    def hindrance(self) -> str | None:
        """Why nothing is read at present; none when all is well, or nobody knows."""
        ...

    def paused(self) -> bool:
        """Whether the user wants nothing to be read by itself."""
        ...

    def pace_s(self) -> float | None:
        """Seconds for a note, as measured over the last ones; none before there were enough."""
        ...
