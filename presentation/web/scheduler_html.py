"""The parts of the scheduler page as HTML, made of nothing but numbers, words of ours and escaped names."""

from collections.abc import Mapping
from html import escape

from domain.entities.scheduler import Decision, History, JobView, SchedulerSnapshot
from presentation.counting import counted
from presentation.scheduler_words import (
    TIERS,
    decision_sentence,
    kind_name,
    loading_words,
    progress_part,
    progress_words,
    seconds,
    short_flow,
    start_words,
    stay_words,
    why_now,
)

JOBS_SHOWN = 10
"""Of each tier."""
FLOWS_SHOWN = 12
COSTS_SHOWN = 4
DECISIONS_SHOWN = 8


def now_html(snapshot: SchedulerSnapshot) -> str:
    """Who has the model, how far it is, and why."""
    running = [job for job in (snapshot.running, *snapshot.also_running) if job is not None]
    parts = [_running(job) for job in running]
    if (loading := loading_words(snapshot)) is not None:
        part = min(1.0, (snapshot.loading_s or 0.0) / (snapshot.loading_expected_s or 1.0))
        parts.append(f'<p class="s-who">{_dot("model_switch")}<strong>Model switch</strong></p>')
        parts.append(_bar(part, "Loading") + f'<p class="u-muted u-number">{escape(loading)}</p>')
    if not parts:
        parts.append('<p class="s-who"><strong>Nothing runs</strong></p>')
    return (
        f'{"".join(parts)}<p class="s-why"><span class="u-muted">Why:</span> {escape(why_now(snapshot))}</p>'
    )


def facts_html(snapshot: SchedulerSnapshot) -> str:
    """The model in memory and what its changes cost."""
    waiting = sum(snapshot.queued.values())
    facts = {
        "Model in memory": snapshot.resident or ("none yet" if snapshot.loading is None else "being loaded"),
        "After a chat": stay_words(snapshot) or "may be swapped",
        "Swaps so far": f"{snapshot.swaps}",
        "Times somebody gave way": f"{snapshot.preemptions}",
        "Waiting": f"{waiting:,}",
    }
    for name, cost in sorted(snapshot.swap_cost_s.items())[:COSTS_SHOWN]:
        facts[f"A swap to {name}"] = f"about {seconds(cost)}"
    if snapshot.switches:
        facts["Asked for next"] = ", ".join(switch.model for switch in snapshot.switches)
    return _facts(facts)


def share_html(snapshot: SchedulerSnapshot) -> str:
    """Extract's part of the busy time, against its limit."""
    share, limit = round(100 * snapshot.extract_share), round(100 * snapshot.extract_share_limit)
    if snapshot.extract_exhausted:
        back = round(100 * snapshot.extract_share_resume)
        words = f"Used up: notes are read only while nothing else waits, until this is below {back} %."
    else:
        words = "Within its limit."
    return (
        f'<div class="s-share" role="img" aria-label="Reading notes had {share} % of the busy time, its limit is {limit} %">'
        f'<span class="s-share-fill s-fill-extract" style="width:{min(100, share)}%"></span>'
        f'<span class="s-share-limit" style="left:{limit}%"></span></div>'
        f'<p class="u-number"><strong>{share} %</strong> of at most {limit} %. <span class="u-muted">{words}</span></p>'
    )


def queue_html(snapshot: SchedulerSnapshot) -> str:
    """Who waits, tier by tier, in the order in which they would run."""
    if not snapshot.queued:
        return '<p class="s-none u-muted">Nobody waits.</p>'
    return "".join(_tier(tier, snapshot) for tier in sorted(snapshot.queued))


def turns_html(snapshot: SchedulerSnapshot) -> str:
    """Virtual runtimes of kinds and of flows, as bars."""
    kinds, flows = snapshot.kind_vruntime_s, snapshot.flow_vruntime_s
    if not kinds:
        return '<p class="s-none u-muted">Nobody has taken a turn yet.</p>'
    shown = dict(sorted(flows.items(), key=lambda item: item[1])[:FLOWS_SHOWN])
    top = max((*kinds.values(), *shown.values(), 1e-9))
    rows = []
    for kind, value in sorted(kinds.items(), key=lambda item: item[1]):
        rows.append(_turn(kind.value, kind_name(kind), value, top, "s-turn"))
        for name, spent in _flows_of(kind.value, shown).items():
            rows.append(_turn(kind.value, short_flow(name), spent, top, "s-turn s-turn-flow"))
    more = len(flows) - len(shown)
    rest = f'<p class="u-muted u-small">and {more:,} more that have had longer</p>' if more > 0 else ""
    return f'<ul class="s-turns">{"".join(rows)}</ul>{rest}'


def decisions_html(history: History) -> str:
    """The last decisions, newest first."""
    if not history.decisions:
        return '<p class="s-none u-muted">Nothing has been decided in the last ten minutes.</p>'
    lines = (_decision(history, decision) for decision in history.decisions[: -DECISIONS_SHOWN - 1 : -1])
    return f'<ol class="s-decisions">{"".join(lines)}</ol>'


def _decision(history: History, decision: Decision) -> str:
    ago = _whole(history.at - decision.at)
    sentence = escape(decision_sentence(decision))
    return f'<li><span class="s-ago u-number u-muted">{ago} ago</span><span>{sentence}</span></li>'


def _running(job: JobView) -> str:
    part, words = progress_part(job), progress_words(job)
    parts = [words, f"{_whole(job.service_s)} on the model"]
    if job.preemptions:
        parts.append(f"gave way {job.preemptions} {'time' if job.preemptions == 1 else 'times'} before")
    return (
        f'<p class="s-who">{_dot(job.kind.value)}<strong>{escape(kind_name(job.kind))}</strong>'
        f'<span class="u-muted" title="{escape(job.flow)}">{escape(short_flow(job.flow))}</span>'
        f'<span class="u-chip">{escape(job.model)}</span></p>'
        f"{_bar(part, words)}"
        f'<p class="u-muted u-number">{escape(" · ".join(parts))}</p>'
    )


def _tier(tier: int, snapshot: SchedulerSnapshot) -> str:
    jobs, total = snapshot.tiers.get(tier, ()), snapshot.queued[tier]
    name, meaning = TIERS.get(tier, (f"T{tier}", ""))
    rows = "".join(_job(job) for job in jobs[:JOBS_SHOWN])
    more = total - min(total, JOBS_SHOWN, len(jobs))
    rest = f'<p class="u-muted u-small u-number">and {more:,} more</p>' if more else ""
    return (
        f'<section class="s-tier"><h3>{escape(name)} <span class="u-chip u-number">{total:,}</span></h3>'
        f'<p class="u-muted u-small">{escape(meaning)}</p>'
        f'<table class="u-table u-number"><thead><tr><th scope="col">Place</th><th scope="col">Who</th>'
        f'<th scope="col" class="s-wide">Model</th><th scope="col">Waits</th><th scope="col">Starts in about</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>{rest}</section>"
    )


def _job(job: JobView) -> str:
    notes = []
    if job.state == "waiting":
        notes.append("waits for another job")
    if job.preemptions:
        notes.append(f"gave way, {counted(job.tokens_done, 'token')} kept")
    note = f'<br><span class="u-muted u-small">{"; ".join(notes)}</span>' if notes else ""
    return (
        f"<tr><td>{job.position}</td><td>{_dot(job.kind.value)}{escape(kind_name(job.kind))} "
        f'<span class="u-muted" title="{escape(job.flow)}">{escape(short_flow(job.flow))}</span>{note}</td>'
        f'<td class="s-wide">{escape(job.model)}</td><td>{_whole(job.waited_s)}</td>'
        f"<td>{start_words(job, _whole)}</td></tr>"
    )


def _turn(kind: str, name: str, value: float, top: float, classes: str) -> str:
    return (
        f'<li class="{classes}"><span class="u-ellipsis">{escape(name)}</span>'
        f'<span class="s-track"><span class="s-fill-{kind}" style="width:{100 * value / top:.0f}%"></span></span>'
        f'<span class="u-number">{_whole(value)}</span></li>'
    )


def _flows_of(kind: str, flows: Mapping[str, float]) -> dict[str, float]:
    prefix = f"{kind}/"
    return {name.removeprefix(prefix): value for name, value in flows.items() if name.startswith(prefix)}


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items()
    )
    return f'<dl class="s-facts u-number">{rows}</dl>'


def _bar(part: float | None, label: str) -> str:
    if part is None:
        return f'<progress class="s-progress" aria-label="{escape(label)}"></progress>'
    return f'<progress class="s-progress" max="1" value="{part:.3f}" aria-label="{escape(label)}"></progress>'


def _dot(kind: str) -> str:
    return f'<span class="s-dot s-fill-{kind}"></span>'


def _whole(value: float) -> str:
    """In whole seconds, so that a page at rest sends little."""
    return seconds(value) if value >= 9.95 else f"{max(0.0, value):.0f} s"
