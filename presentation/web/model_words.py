"""What is said about a model's memory and about becoming resident."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from domain.entities.models import Memory, RemoteModel
from domain.entities.scheduler import RunSpan, SchedulerSnapshot
from domain.usecases.models import ModelShelf
from presentation.web.pulls import size

_SLOW_BYTES = 1_000_000_000
"""A model below this writes fast enough on any processor."""
_ENOUGH_TOKENS = 30
"""In a run that is shorter, reading the prompt takes most of the time."""
_WORDS_PER_TOKEN = 0.75
_HERE = ("localhost", "127.0.0.1", "::1")


def fit_words(needed: int, memory: Memory, *, about: bool = False) -> tuple[str, bool]:
    """Whether it fits into what is free, and how that is said."""
    fits = needed <= memory.free_bytes
    words = f"needs {'about ' if about else ''}{size(needed)}, {size(memory.free_bytes)} free"
    if needed > memory.total_bytes:
        words = f"needs {size(needed)}, this machine has {size(memory.total_bytes)}"
    return words, fits


def server_words(remote: RemoteModel) -> str:
    """Where a model runs that is not on this machine, or in another program on it."""
    hosts = sorted({urlsplit(url).hostname or url for url in remote.urls})
    if all(host in _HERE for host in hosts):
        return "runs in another program on this machine"
    return f"runs on {hosts[0]}" if len(hosts) == 1 else f"runs on {len(hosts)} servers"


def holds_words(context_tokens: int | None) -> str:
    """How much it keeps in view; empty when that is not known."""
    words = int((context_tokens or 0) * _WORDS_PER_TOKEN)
    return f"takes in about {words - words % 100 if words >= 100 else words:,} words at once" if words else ""


def speed_words(name: str, shelf: ModelShelf, memory: Memory, runs: Iterable[RunSpan]) -> str:
    """How fast a model would write on the processor alone; empty where a graphics processor does it.

    For every token a processor reads all weights once, so that a model of ten times the size takes about ten times as
    long. What is known is the speed of models that have written here of late; without one there is no number.
    """
    size_bytes = shelf.weights.get(name, 0)
    if memory.accelerated or size_bytes < _SLOW_BYTES:
        return ""
    bytes_a_second = max(
        (
            shelf.weights.get(run.model, 0) * run.tokens / (run.end - run.start)
            for run in runs
            if run.how == "finished" and not run.resumed and run.end is not None and run.end > run.start
            if run.tokens is not None and run.tokens >= _ENOUGH_TOKENS
        ),
        default=0.0,
    )
    hint = "There is no graphics processor here that UNIUN can use, and on the processor alone this model is slow"
    if not bytes_a_second:
        return f"{hint}."
    words = bytes_a_second / size_bytes * _WORDS_PER_TOKEN
    pace = f"{words:.0f} words a second" if words >= 1.5 else f"a word in {max(1.0, 1 / words):.0f} s"
    return f"{hint}: expect about {pace}, estimated from what was measured here."


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


def without_words(name: str, shelf: ModelShelf) -> str:
    """What no longer works when this one is removed; empty when all does."""
    if {model.name for model in shelf.installed} == {name}:
        return (
            "It is the only model: without it nothing answers, and cards, Ganas and the reading of notes stand still, until "
            "you fetch one on this page. A command in a terminal that needs a model, as uniun ask does, fetches the default."
        )
    if name == shelf.default:
        return "It is the model in use: choose another with “Use” first, or nothing may answer until you do."
    return ""
