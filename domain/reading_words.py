"""How far the reading of notes is, in words."""

from domain.counting import counted
from domain.entities.knowledge import ReadingOverview


def overview_words(overview: ReadingOverview) -> str:
    """A sentence without its full stop."""
    told = f"{overview.read:,} of {counted(overview.notes, 'note')} read into the graph"
    if overview.waiting and overview.hindrance is None:
        told += f", {counted(overview.waiting, 'waits', 'wait')}"
    if overview.paused and overview.waiting:
        told = f"Reading is paused: {told}"
    elif overview.left_s is not None:
        told += f", {rough(overview.left_s)} left"
    if overview.failed:
        told += f"; {overview.failed:,} could not be read"
    if overview.waiting and overview.hindrance is not None:
        told += f". {counted(overview.waiting, 'note waits', 'notes wait')}: {overview.hindrance}"
    return told


def rough(seconds: float) -> str:
    """An estimate, said as one."""
    if seconds < 60:
        return "less than a minute"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    if seconds < 48 * 3_600:
        return f"about {round(seconds / 3_600)} h"
    return f"about {round(seconds / 86_400)} days"
