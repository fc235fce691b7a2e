"""What a look at the installation finds."""

from typing import Literal

from domain.entities.entity import Entity


class Finding(Entity):
    """One thing that was looked at."""

    area: str
    """`Python`, `engine`, `model`, …"""
    state: Literal["ok", "warn", "fail"]
    """`warn` works but not well; `fail` does not work."""
    text: str
    mend: str = ""
    """What to do about it; empty when nothing is wrong."""


class EngineProcess(Entity):
    """An engine process of this user that is alive now, whoever started it."""

    pid: int
    parent: str
    """The program that it works for and its arguments, shortened; empty when that is gone."""
    memory_bytes: int
    running_s: float
    other_folder: str = ""
    """The data folder of the UNIUN that it belongs to, if that is another one than ours."""
