"""What is said about Ganas: when they run, how a run went, what it does now."""

from datetime import datetime, timedelta

from domain.entities.gana import Gana, GanaProgress, GanaRun
from domain.entities.llm import Preempted, Prefilling, TextDelta, Waiting
from presentation.counting import counted
from presentation.scheduler_words import because, wait_words

REASONS = {
    "no_model": "its model is not there",
    "no_new_input": "there was nothing new to read",
    "nothing_to_say": "it found nothing worth saying",
    "cancelled": "it was interrupted, and will be tried again",
    "stopped": "it was stopped",
    "missed": "UNIUN was not running when it was due",
    "already_running": "it was running already",
    "needs_app": "only the open app may run it",
    "error": "something failed",
}
NEWS_WORDS = "Waits for new notes. It looks seconds after one was written here, and every 15 s for those of other programs."
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def moment_words(moment: datetime, now: datetime) -> str:
    """On the machine's own clock: the day in words where there are some, and how far away it is."""
    local, today = moment.astimezone(), now.astimezone().date()
    days = (local.date() - today).days
    if days in (-1, 0, 1):
        day = ("yesterday", "today", "tomorrow")[days + 1]
    elif 1 < days < 7:
        day = f"on {_DAYS[local.weekday()]}"
    else:
        day = f"on {local:%Y-%m-%d}"
    return f"{day} at {local.hour}:{local:%M} ({distance_words(moment - now)})"


def due_words(gana: Gana, now: datetime, writing: str | None = None) -> str:
    """When a stored one runs next; `writing` is the title of the note that it waits for."""
    if not gana.enabled:
        return "Off: it runs only when you say so."
    if gana.due_at is not None:
        return f"Next: {moment_words(gana.due_at, now)}."
    if gana.draft.reactive:
        return NEWS_WORDS if writing is None else waiting_words(writing)
    return "Runs only when you say so."


def waiting_words(title: str) -> str:
    """Why it does not react yet."""
    return f"Reads “{title or 'Untitled'}” when it has been left alone for a minute."


def distance_words(distance: timedelta) -> str:
    """`in 3 hours`, `5 minutes ago`, `now`."""
    seconds = distance.total_seconds()
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = round(abs(seconds) / length)
        if count >= 1 and abs(seconds) >= length * 0.99:
            words = f"{count} {unit}{'' if count == 1 else 's'}"
            return f"in {words}" if seconds > 0 else f"{words} ago"
    return "in less than a minute" if seconds > 0 else "just now"


def run_words(run: GanaRun) -> str:
    """How it went, in a few words."""
    if run.status == "running":
        return "is running"
    if run.status == "succeeded":
        return "wrote a note"
    if run.status == "failed":
        return "failed"
    if run.reason == "no_new_input" and run.detail:
        return f"wrote nothing: {run.detail[:1].lower()}{run.detail[1:].rstrip('.')}"
    return f"wrote nothing: {REASONS.get(run.reason or '', 'it was skipped')}"


def run_figures(run: GanaRun) -> str:
    """Seconds, tokens, how often it gave way."""
    figures = [f"{run.seconds:.1f} s", counted(run.tokens, "token")]
    if run.preemptions:
        figures.append("gave way once" if run.preemptions == 1 else f"gave way {run.preemptions} times")
    if run.by == "background":
        figures.append("while the app was closed")
    return ", ".join(figures)


def progress_words(progress: GanaProgress | None) -> str:
    """What a run does now, or what it waits for."""
    if progress is None:
        return "Beginning…"
    before = f"Round {progress.round}, after {progress.tool}: " if progress.tool else ""
    match progress.event:
        case Waiting(reason=reason):
            words = f"waiting: {wait_words(reason)}"
        case Prefilling(done_tokens=done, total_tokens=total):
            words = f"reading, {done:,} of {counted(total, 'token')}"
        case TextDelta(tokens=tokens):
            words = f"writing, {tokens} {'token' if tokens == 1 else 'tokens'} so far"
        case Preempted(reason=reason):
            words = f"gave way, goes on soon: {because(reason)}"
        case _:
            words = "finishing"
    said = before + words
    return f"{said[:1].upper()}{said[1:]}…"
