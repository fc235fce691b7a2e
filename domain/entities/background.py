"""The process that works while the app is closed, as seen from outside."""

from domain.entities.entity import Entity
from domain.entities.gana import GanaRun


class BackgroundStatus(Entity):
    """`installed` is the file that starts it at login."""

    installed: str | None
    pid: int | None
    """None: it does not run."""
    app_open: bool
    trouble: str = ""
    """Why it does not run, or not at login, although it is installed, and what to do; empty when all is well."""
    log: str = ""
    """The command that shows what it said; empty when it is not installed."""
    runs: tuple[GanaRun, ...] = ()
    """Its last ones, newest first."""
    names: dict[str, str]
    """Of their Ganas, by id."""


class ServiceChange(Entity):
    """What installing or uninstalling did."""

    path: str
    done: bool
    """Whether a file was written or removed."""
    told: bool = True
    """Whether the service manager did its part: started it, or stopped it."""
    hint: str = ""
    """What is left to do by hand, or why it did not start; empty when all is said."""
