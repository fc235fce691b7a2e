"""The scheduler's doings in plain words, for whoever has never read docs/scheduler.md."""

import re
from collections.abc import Callable

from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import Decision, JobView, SchedulerSnapshot
from presentation.counting import counted

KINDS: dict[LlmTaskKind, str] = {
    LlmTaskKind.CHAT: "Chat",
    LlmTaskKind.EXTRACT: "Reading notes",
    LlmTaskKind.NATARAJ: "Deck",
    LlmTaskKind.GANA: "Gana",
    LlmTaskKind.API: "Other programs",
    LlmTaskKind.MODEL_SWITCH: "Model switch",
}
TIERS: dict[int, tuple[str, str]] = {
    0: ("Chat", "You are waiting for an answer, so nothing comes before it."),
    1: ("What you look at", "Work for the page that is open, and for programs that wait."),
    2: ("Reading notes", "Finding the concepts in new notes, up to a share of the time."),
    3: ("Past its due time", "Should have started by now; the most overdue first."),
    4: ("Fair turns", "The rest of the deck, Ganas and other programs. Whoever has had least goes next."),
    5: ("Reading notes, over its share", "Goes on only while nothing else wants the model."),
}
ANOTHER: dict[LlmTaskKind, str] = {
    LlmTaskKind.CHAT: "another chat",
    LlmTaskKind.EXTRACT: "the reading of a note",
    LlmTaskKind.NATARAJ: "a deck card",
    LlmTaskKind.GANA: "a Gana",
    LlmTaskKind.API: "another program's question",
}
"""Whose job it is that somebody waits for, where nobody looks up which one."""
_STATES = {
    "queued": "waits",
    "waiting": "waits for another job",
    "running": "runs",
    "stopping": "is stopping",
}


def kind_name(kind: str | LlmTaskKind) -> str:
    """What people call it."""
    return KINDS.get(LlmTaskKind(kind), str(kind)) if kind in set(LlmTaskKind) else str(kind)


def tier_name(tier: int) -> str:
    """Its name; docs/scheduler.md calls it `T` and the number."""
    return TIERS[tier][0] if tier in TIERS else f"T{tier}"


def state_name(job: JobView) -> str:
    """What it does now."""
    return _STATES.get(job.state, job.state)


def short_flow(flow: str) -> str:
    """A title is cut at its end. Ids are alike at the front; their ends tell them apart."""
    if len(flow) <= 24:
        return flow
    return f"{flow[:23].rstrip()}…" if " " in flow else f"{flow[:8]}…{flow[-6:]}"


def who(kind: str | LlmTaskKind, flow: str) -> str:
    """A job's owner."""
    return f"{kind_name(kind)} ({short_flow(flow)})" if flow else kind_name(kind)


def seconds(value: float) -> str:
    """A duration, no finer than anybody needs."""
    if value < 9.95:
        return f"{max(0.0, value):.1f} s"
    if value < 100:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} h"


def start_words(job: JobView, in_words: Callable[[float], str] = seconds) -> str:
    """In what time a waiting job starts. An estimate of nothing, as while a job takes longer than its like, is no time."""
    if job.estimated_start_s < 0.5:
        return "next" if job.position <= 1 else "soon"
    return in_words(job.estimated_start_s)


_LEAST = "smallest vruntime; "
_After = Callable[[re.Match[str]], str]
_REASONS: tuple[tuple[str, _After], ...] = (
    (r"chat outranks all but model switches \(flow .*\)", lambda _: "a chat comes before everything else"),
    (r"what the user looks at", lambda _: "it belongs to the page that is open"),
    (r"somebody waits for it \(hint\)", lambda _: "somebody waits for it"),
    (r"model (.+) was loaded for it", lambda m: f"model {m[1]} was loaded for it"),
    (r"model (.+) due after (\d+) s", lambda m: f"work for model {m[1]} has waited {m[2]} s"),
    (r"extract before the fair pool; (.+)", lambda m: f"notes are read before the fair turns{_place(m[1])}"),
    (r"its deadline has passed; (.+)", lambda m: f"it should have started already{_place(m[1])}"),
    (rf"{_LEAST}(.+)", lambda m: f"it has had the least time so far{_place(m[1])}"),
    (
        r"share of extract used up, but nothing better to do; (.+)",
        lambda m: f"reading notes has had its share, but nothing else wants the model{_place(m[1])}",
    ),
    (
        r"a prompt read ahead, nothing better to do; (.+)",
        lambda m: f"you may send it soon, and nothing else wants the model{_place(m[1])}",
    ),
    (r"nobody asked for (.+) as long as it was to be kept", lambda _: "nobody has asked for it for a while"),
    (
        r"share of extract used up, (\w+) is T(\d)",
        lambda m: f"reading notes has had its share, and {kind_name(m[1])} waits",
    ),
    (
        r"(\w+) \(T(\d)\) outranks T(\d)",
        lambda m: f"“{tier_name(int(m[2]))}” comes before “{tier_name(int(m[3]))}”",
    ),
    (
        r"slice of (.+) s used, (\w+)/(.+) has had less",
        lambda m: f"its turn of {m[1]} s is over, and {who(m[2], m[3])} has had less",
    ),
    (r"forced switch to model (.+)", lambda m: f"a switch to model {m[1]} was asked for at once"),
    (r"the user asked for model (.+)", lambda m: f"model {m[1]} was asked for"),
    (r"cancelled by its caller", lambda _: "whoever asked for it took it back"),
    (r"all wait: the model of the last chat lingers", lambda _: _LINGERS),
    (r"nothing to do", lambda _: "nothing waits"),
    (r"nothing has been asked for yet", lambda _: "nothing has been asked for yet"),
)
_LINGERS = "the last chat's model stays a while, in case you answer, and nothing can use it meanwhile"


def because(reason: str) -> str:
    """A reason of the policy as the end of a sentence; as it is when it is not known here."""
    for pattern, words in _REASONS:
        if (match := re.fullmatch(pattern, reason)) is not None:
            return words(match)
    return reason


def wait_words(reason: str) -> str:
    """Why a job waits, without the ids that a reason names."""
    if (stopping := re.fullmatch(r"stopping (\w+) \(.*\)", reason)) is not None:
        return f"stopping {_another(stopping[1])}"
    if (
        runs := re.fullmatch(r"(\w+) \(.*\) runs(?:(, \d+ (?:or more|more)) before it)?", reason)
    ) is not None:
        goes = "goes" if runs[2] == ", 1 more" else "go"
        return f"{_another(runs[1])} has the model{f'{runs[2]} {goes} first' if runs[2] else ''}"
    return because(reason)


def _another(kind: str) -> str:
    return ANOTHER.get(LlmTaskKind(kind), kind) if kind in set(LlmTaskKind) else kind


def _place(residence: str) -> str:
    return ", and nothing waits for the loaded model" if residence.startswith("nothing to do") else ""


def decision_sentence(decision: Decision) -> str:
    """What was decided, and why."""
    name = who(decision.kind, decision.flow)
    match decision.what:
        case "start":
            what = f"{name} started"
        case "resume":
            what = f"{name} went on where it had stopped"
        case "stop":
            other = kind_name(decision.by_kind) if decision.by_kind is not None else decision.by
            what = f"{name} made way for {other}"
        case "unload":
            what = f"Model {decision.model} was unloaded"
        case "swap":
            old = f" in place of {decision.by}" if decision.by else ""
            what = f"Model {decision.model} was loaded{old}"
    return f"{what}: {because(decision.reason)}."


def why_now(snapshot: SchedulerSnapshot) -> str:
    """Why the device does what it does."""
    words = because(snapshot.last_reason)
    if snapshot.last_reason.startswith(_LEAST) and not snapshot.queued and not snapshot.also_running:
        words = "nothing else wants the model"  # less time than whom?
    return f"{words[:1].upper()}{words[1:]}."


def progress_words(job: JobView) -> str:
    """How far a running job has come."""
    if job.state == "stopping":
        return f"stopping after {counted(job.tokens_done, 'token')}"
    if (
        job.prompt_tokens is not None
        and job.prefilled_tokens is not None
        and job.prefilled_tokens < job.prompt_tokens
    ):
        return f"reading the prompt: {job.prefilled_tokens:,} of {counted(job.prompt_tokens, 'token')}"
    if not job.tokens_done:
        return "beginning"
    if job.max_tokens is None:
        return f"writing: {counted(job.tokens_done, 'token')}"
    return f"writing: {job.tokens_done:,} of at most {counted(job.max_tokens, 'token')}"


def progress_part(job: JobView) -> float | None:
    """The same from 0 to 1; none while it is not known. An answer may end long before its limit."""
    if job.prompt_tokens and job.prefilled_tokens is not None and job.prefilled_tokens < job.prompt_tokens:
        return job.prefilled_tokens / job.prompt_tokens
    if job.max_tokens and job.tokens_done:
        return min(1.0, job.tokens_done / job.max_tokens)
    return None


def stay_words(snapshot: SchedulerSnapshot) -> str | None:
    """How long the model of the last chat may not be swapped away for background work."""
    left = None if snapshot.linger_until is None else snapshot.linger_until - snapshot.at
    return None if left is None or left <= 0 else f"kept for {seconds(left)} more, in case you answer"


def loading_words(snapshot: SchedulerSnapshot) -> str | None:
    """What is being loaded, and how long that takes."""
    if snapshot.loading is None:
        return None
    spent, expected = snapshot.loading_s or 0.0, snapshot.loading_expected_s or 0.0
    if snapshot.loading not in snapshot.swap_cost_s:
        return f"loading {snapshot.loading}, {seconds(spent)} so far"
    return f"loading {snapshot.loading}, {seconds(spent)} of about {seconds(expected)}"
