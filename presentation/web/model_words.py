"""What is said about a model's memory and about becoming resident."""

from domain.entities.models import Memory
from domain.entities.scheduler import SchedulerSnapshot
from presentation.web.pulls import size


def fit_words(needed: int, memory: Memory, *, about: bool = False) -> tuple[str, bool]:
    """Whether it fits into what is free, and how that is said."""
    fits = needed <= memory.free_bytes
    words = f"needs {'about ' if about else ''}{size(needed)}, {size(memory.free_bytes)} free"
    if needed > memory.total_bytes:
        words = f"needs {size(needed)}, this machine has {size(memory.total_bytes)}"
    return words, fits


def switch_words(name: str, snapshot: SchedulerSnapshot, *, asked: bool) -> str:
    """What becoming resident waits for, if the user `asked` for it; empty when nothing is to be said."""
    if snapshot.loading == name:
        cost = snapshot.swap_cost_s.get(name)
        usual = f" of about {cost:.0f} s" if cost else ""
        so_far = f" {snapshot.loading_s:.0f} s{usual}" if snapshot.loading_s is not None else ""
        return f"Loading…{so_far}"
    if not asked:
        return ""
    if snapshot.running is not None:
        return f"Waiting for the job that runs now to end ({snapshot.running.kind})…"
    return f"Waiting: {snapshot.last_reason}…" if snapshot.last_reason else "Waiting…"
