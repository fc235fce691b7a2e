"""The process that works while the app is closed, as seen from outside."""

from domain.entities.entity import Entity
from domain.entities.gana import GanaRun


class BackgroundStatus(Entity):
    """`installed` is the file that starts it at login."""

    installed: str | None
    pid: int | None
    """None: it does not run."""
    app_open: bool
    runs: tuple[GanaRun, ...] = ()
    """Its last ones, newest first."""
    names: dict[str, str]
    """Of their Ganas, by id."""


class ServiceChange(Entity):
    """What installing or uninstalling did."""

    path: str
    done: bool
    """Whether a file was written or removed."""
    hint: str = ""
    """What is left to do by hand; empty when nothing is."""
