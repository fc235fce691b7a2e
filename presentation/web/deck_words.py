"""What is said about a deck."""

from domain.entities.llm import LlmTaskKind
from domain.entities.nataraj import DeckWork
from domain.entities.scheduler import JobView, SchedulerSnapshot

_WHO = {
    LlmTaskKind.CHAT: "the chat",
    LlmTaskKind.EXTRACT: "a note that is being read",
    LlmTaskKind.NATARAJ: "another deck",
    LlmTaskKind.GANA: "a Gana",
    LlmTaskKind.API: "another program",
}


def fill_words(ready: int, work: DeckWork, scope: str, snapshot: SchedulerSnapshot) -> str:
    """How full it is, what is being written, and what that waits for."""
    cards = "No card ready" if ready == 0 else f"{ready} {'card' if ready == 1 else 'cards'} ready"
    if not work.writing:
        return f"{cards}."
    more = f"{work.writing} more" if ready else str(work.writing)
    return f"{cards}, writing {more}{_waiting(scope, snapshot)}."


def _waiting(scope: str, snapshot: SchedulerSnapshot) -> str:
    if snapshot.loading is not None:
        return f"; waiting for {snapshot.loading} to load"
    running = snapshot.running
    if running is None or _ours(running, scope):
        return ""
    if any(_ours(job, scope) for jobs in snapshot.tiers.values() for job in jobs):
        return f"; waiting for {_WHO.get(running.kind, 'the model')}"
    return ""


def _ours(job: JobView, scope: str) -> bool:
    return job.kind is LlmTaskKind.NATARAJ and job.flow == scope
