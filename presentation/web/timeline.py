"""The last minutes of the device as a picture: a lane a kind, one for model swaps, marks where somebody gave way."""

from collections.abc import Iterable, Iterator
from html import escape

from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import History, RunSpan
from presentation.scheduler_words import KINDS, because, kind_name, seconds, who

SPAN_S = 600.0
LANES = (
    LlmTaskKind.CHAT,
    LlmTaskKind.EXTRACT,
    LlmTaskKind.NATARAJ,
    LlmTaskKind.GANA,
    LlmTaskKind.API,
    LlmTaskKind.MODEL_SWITCH,
)
_LANE_H = 26
_BAR_H = 16
_MERGE_S = 0.6
"""About a pixel: pauses shorter than this are not drawn, so that the picture stays small however busy the device was."""
_TABLE_ROWS = 60
_HOW = {
    "running": "still runs",
    "finished": "finished",
    "preempted": "gave way",
    "cancelled": "cancelled",
    "failed": "failed",
    "lost": "the engine was lost; goes on later",
}


def picture(history: History) -> str:
    """The chart as HTML: names of the lanes, the drawing, the axis and the legend. `picture_label` says it in words."""
    height = _LANE_H * len(LANES)
    drawn = "".join((*_grid(height), *_lanes(history), *_swaps(history, height), *_marks(history)))
    names = "".join(f"<li>{escape(KINDS[kind])}</li>" for kind in LANES[:-1]) + "<li>Model swap</li>"
    ticks = "".join(f"<li>{'now' if not m else f'−{m} min'}</li>" for m in (10, 8, 6, 4, 2, 0))
    return (
        f'<div class="s-chart"><ul class="s-lanes" aria-hidden="true">{names}</ul>'
        f'<svg role="img" aria-label="{escape(picture_label(history))}" viewBox="0 0 {SPAN_S:g} {height}" '
        f'preserveAspectRatio="none" class="s-svg">{drawn}</svg>'
        f'<ul class="s-ticks" aria-hidden="true">{ticks}</ul></div>'
    )


def picture_label(history: History) -> str:
    """What the picture shows, in a sentence."""
    parts = []
    for kind in LANES:
        runs = [run for run in history.runs if run.kind is kind]
        if runs:
            used = sum((run.end or history.at) - max(run.start, history.at - SPAN_S) for run in runs)
            parts.append(f"{KINDS[kind]} {seconds(used)} in {_count(len(runs), 'run')}")
    gave_way = sum(run.how == "preempted" for run in history.runs)
    told = "; ".join(parts) or "nothing ran"
    return (
        f"The last 10 minutes: {told}. {_count(gave_way, 'time')} somebody gave way, "
        f"{_count(len(history.swaps), 'model swap')}."
    )


def table(history: History) -> str:
    """The same as rows of text, newest first."""
    rows = [(run.start, _run_row(history, run)) for run in history.runs]
    for swap in history.swaps:
        how = "goes on" if swap.ok is None else "loaded" if swap.ok else "failed"
        what = f"{swap.old or 'nothing'} → {swap.new}"
        took = seconds((swap.end or history.at) - swap.start)
        rows.append((swap.start, (_ago(history, swap.start), "Model swap", what, took, how)))
    rows.sort(key=lambda row: -row[0])
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("When", "Who", "Model", "For how long", "How it ended")
    )
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for _, row in rows[:_TABLE_ROWS]
    )
    more = f"<p class='u-muted u-small'>The newest {_TABLE_ROWS} of {len(rows)}.</p>"
    return (
        f'<div class="u-scroll"><table class="u-table u-number"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        + (more if len(rows) > _TABLE_ROWS else "")
    )


def legend() -> str:
    """What the colours and marks mean."""
    kinds = "".join(
        f'<li><span class="s-key s-fill-{kind.value}"></span>{escape(KINDS[kind])}</li>'
        for kind in LANES[:-1]
    )
    return (
        f'<ul class="s-legend">{kinds}<li><span class="s-key s-key-swap"></span>Model swap</li>'
        '<li><span class="s-key s-key-mark"></span>Gave way to something more urgent</li></ul>'
    )


def _run_row(history: History, run: RunSpan) -> tuple[str, ...]:
    how = _HOW[run.how]
    if run.how == "preempted":
        how = f"{how}: {because(run.why)}"
    took = seconds((run.end or history.at) - run.start)
    return _ago(history, run.start), who(run.kind, run.flow), run.model, took, how


def _ago(history: History, t: float) -> str:
    return f"{seconds(history.at - t)} ago"


def _x(history: History, t: float) -> float:
    return round(max(0.0, SPAN_S - (history.at - t)), 1)


def _grid(height: int) -> Iterator[str]:
    for lane in range(1, len(LANES)):
        yield f'<path class="s-rule" d="M0 {lane * _LANE_H}H{SPAN_S:g}"/>'
    for x in range(120, int(SPAN_S), 120):
        yield f'<path class="s-rule" d="M{x} 0V{height}"/>'


def _lanes(history: History) -> Iterator[str]:
    for lane, kind in enumerate(LANES[:-1]):
        y = lane * _LANE_H + (_LANE_H - _BAR_H) // 2
        for start, end, names in _merged(history, (run for run in history.runs if run.kind is kind)):
            title = f"{kind_name(kind)}: {', '.join(names[:3])}{' …' if len(names) > 3 else ''}, {seconds(end - start)}"
            yield (
                f'<rect class="s-fill-{kind.value}" x="{start:g}" y="{y}" width="{max(_MERGE_S, end - start):.1f}" '
                f'height="{_BAR_H}"><title>{escape(title)}</title></rect>'
            )


def _merged(history: History, runs: Iterable[RunSpan]) -> Iterator[tuple[float, float, list[str]]]:
    """Bars and whose runs they cover."""
    start = end = -1.0
    names: dict[str, None] = {}
    for run in sorted(runs, key=lambda run: run.start):
        x, x_end = _x(history, run.start), _x(history, run.end if run.end is not None else history.at)
        if end >= 0 and x - end <= _MERGE_S:
            end = max(end, x_end)
        else:
            if end >= 0:
                yield start, end, list(names)
            start, end, names = x, x_end, {}
        names[who(run.kind, run.flow)] = None
    if end >= 0:
        yield start, end, list(names)


def _swaps(history: History, height: int) -> Iterator[str]:
    y = (len(LANES) - 1) * _LANE_H + (_LANE_H - _BAR_H) // 2
    for swap in history.swaps:
        x = _x(history, swap.start)
        end = swap.end if swap.end is not None else history.at
        width = max(1.0, _x(history, end) - x)
        title = f"{swap.old or 'nothing'} → {swap.new}, {seconds(end - swap.start)}"
        yield f'<rect class="s-shade" x="{x:g}" y="0" width="{width:.1f}" height="{height}"/>'
        yield (
            f'<rect class="s-fill-model_switch" x="{x:g}" y="{y}" width="{width:.1f}" height="{_BAR_H}">'
            f"<title>{escape(title)}</title></rect>"
        )


def _marks(history: History) -> Iterator[str]:
    drawn: set[tuple[int, int]] = set()
    for run in history.runs:
        if run.how == "preempted" and run.end is not None and run.kind in LANES:
            lane, x = LANES.index(run.kind), _x(history, run.end)
            if (lane, int(x)) not in drawn:
                drawn.add((lane, int(x)))
                yield f'<path class="s-mark" d="M{x:g} {lane * _LANE_H + 1}V{(lane + 1) * _LANE_H - 1}"/>'


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
