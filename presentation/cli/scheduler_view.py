"""The scheduler on a terminal: `uniun ps` as a table, `uniun top` as a screen."""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.text import Text

from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import History, JobView, SchedulerSnapshot
from presentation.cli.gantt import STYLES
from presentation.cli.tables import Column, Row, print_table
from presentation.cli.terminal import printable
from presentation.counting import counted
from presentation.scheduler_words import (
    decision_sentence,
    kind_name,
    loading_words,
    progress_part,
    progress_words,
    seconds,
    short_flow,
    start_words,
    state_name,
    stay_words,
    tier_name,
    why_now,
)

SPAN_S = 600.0
_LABEL = 15
_AGO = 10
_LEGEND = ("^ gave way", "C chat", "R reading", "D deck", "G Gana", "P programs", "= swap")
_NARROW = 72
_LETTERS = {"chat": "C", "extract": "R", "nataraj": "D", "gana": "G", "api": "P", "model_switch": "="}
_SWAP = "model_switch"
_JOBS = (
    Column("", right=True),
    Column("who", folds=True),
    Column("model", folds=True),
    Column("rank"),
    Column("state"),
    Column("waited", right=True),
    Column("starts in", right=True),
    Column("tokens", right=True),
)
_MODEL = 2
_LEAST = ("tokens", "rank", "model", "waited")


def print_jobs(console: Console, snapshot: SchedulerSnapshot) -> None:
    """Everything that runs or waits, in the order in which it would run. The model is named where there are several."""
    rows = [Row(_cells(job), _style(job.kind)) for job in _running(snapshot)]
    for tier, waiting in snapshot.tiers.items():
        rows += [Row(_cells(job), _style(job.kind)) for job in waiting]
        hidden = snapshot.queued.get(tier, 0) - len(waiting)
        if hidden > 0:
            rows.append(Row(("", f"and {hidden:,} more", "", tier_name(tier), "", "", "", "")))
    models = {row.cells[_MODEL] for row in rows} - {""}
    if len(models) < 2:
        rows = [Row((*row.cells[:_MODEL], *row.cells[_MODEL + 1 :]), row.style) for row in rows]
    columns = [column for column in _JOBS if column.name != "model" or len(models) > 1]
    print_table(
        console,
        columns,
        rows,
        least=[each for each in _LEAST if any(each == column.name for column in columns)],
    )


def footing(snapshot: SchedulerSnapshot) -> str:
    """What the table does not say."""
    model = loading_words(snapshot) or f"{snapshot.resident or 'no model'} in memory"
    waiting = sum(snapshot.queued.values())
    return f"{model}; {waiting:,} waiting. {why_now(snapshot)}"


def screen(snapshot: SchedulerSnapshot, history: History, width: int, height: int) -> RenderableType:
    """All of it, in at most `height` lines of `width` cells."""
    decisions = max(2, min(6, height // 6))
    fixed = [*_head(snapshot, width), *_strip(history, width), *_shares(snapshot, width)]
    tail = [*_decisions(history, decisions, width), Text("q or Ctrl-C leaves", style="dim")]
    room = max(3, height - len(fixed) - len(tail) - 2)
    lines = [*fixed, Text(""), *_queue(snapshot, width, room), Text(""), *tail]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
        line.truncate(width, overflow="ellipsis")
    return Group(*lines[:height])


def _head(snapshot: SchedulerSnapshot, width: int) -> Iterator[Text]:
    facts = [
        snapshot.resident or "no model in memory",
        counted(snapshot.swaps, "swap"),
        f"{snapshot.preemptions} gave way",
    ]
    if (stay := stay_words(snapshot)) is not None:
        facts.insert(1, stay)
    first, *more = _packed("UNIUN", ((printable(fact), "") for fact in facts), width, gap=" · ")
    first.stylize("bold", 0, _LABEL)
    yield from (first, *more)
    if (loading := loading_words(snapshot)) is not None:
        part = min(1.0, (snapshot.loading_s or 0.0) / (snapshot.loading_expected_s or 1.0))
        yield Text.assemble(
            "now".ljust(_LABEL), (_bar(part, 20), STYLES.get(_SWAP, "red")), " ", printable(loading)
        )
    for job in _running(snapshot):
        name = f"{kind_name(job.kind)} {short_flow(job.flow)}"
        done = progress_part(job)
        bar = [] if done is None else [(_bar(done, 12), _style(job.kind))]
        pieces = [(printable(name), _style(job.kind)), *bar, (progress_words(job), "")]
        yield from _packed("now", pieces, width, gap="  ")
    if snapshot.loading is None and snapshot.running is None:
        yield Text.assemble("now".ljust(_LABEL), "nothing runs")
    yield from _packed("why", ((word, "") for word in printable(why_now(snapshot)).split()), width)


def _strip(history: History, width: int) -> Iterator[Text]:
    """The last ten minutes as one line of letters."""
    cells = max(10, width - _LABEL)
    kinds: list[str | None] = [None] * cells
    for run in history.runs:
        _fill(kinds, history, run.start, run.end, run.kind.value)
    for swap in history.swaps:
        _fill(kinds, history, swap.start, swap.end, _SWAP)
    line = Text("10 minutes".ljust(_LABEL))
    for kind in kinds:
        line.append(
            "·" if kind is None else _LETTERS[kind], style="dim" if kind is None else STYLES.get(kind, "red")
        )
    yield line
    marks = [" "] * cells
    for run in history.runs:
        if run.how == "preempted" and run.end is not None:
            marks[_cell(history, run.end, cells)] = "^"
    yield Text.assemble(" " * _LABEL, "".join(marks).rstrip())
    yield from _packed("", ((mark, "dim") for mark in _LEGEND), width, gap="  ")


def _shares(snapshot: SchedulerSnapshot, width: int) -> Iterator[Text]:
    cells = min(30, max(4, width - _LABEL - 38))
    filled = _bar(min(1.0, snapshot.extract_share), cells)
    mark = min(cells - 1, round(snapshot.extract_share_limit * cells))
    bar = f"{filled[:mark]}|{filled[mark + 1 :]}"
    limit_words = f"{snapshot.extract_share_limit:.0%}"
    words = f" {snapshot.extract_share:.0%}, at most {limit_words} while others wait"
    yield Text.assemble("reading notes".ljust(_LABEL), (bar, STYLES["extract"]), words)
    if snapshot.extract_exhausted:
        words = "that is used up: notes are read only while nothing else waits"
        yield from _packed("", ((word, "dim") for word in words.split()), width)
    turns = sorted(snapshot.kind_vruntime_s.items(), key=lambda item: item[1])
    if turns:
        had = ((f"{kind_name(kind)} {seconds(value)}", _style(kind)) for kind, value in turns)
        yield from _packed("turns had", had, width, gap="   ")


def _queue(snapshot: SchedulerSnapshot, width: int, room: int) -> Iterator[Text]:
    if not snapshot.queued:
        yield Text("Nobody waits.")
        return
    ranked = width >= _NARROW
    name_cells = max(16, width - (46 if ranked else 29))

    def line(place: object, who: str, rank: str, waited: str, starts: str) -> str:
        rank = f"{rank[:16]:16} " if ranked else ""
        return f"{place:>5} {_cropped(who, name_cells)} {rank}{waited:>8} {starts:>10}"

    yield Text(line("", "who", "rank", "waited", "starts in"), style="bold")
    shown = 0
    for jobs in snapshot.tiers.values():
        for job in jobs:
            if shown == room - 2:
                break
            shown += 1
            name = printable(f"{kind_name(job.kind)} {short_flow(job.flow)}")
            cells = (name, tier_name(job.tier), seconds(job.waited_s), start_words(job))
            yield Text(line(job.position, *cells), style=_style(job.kind))
    if (more := sum(snapshot.queued.values()) - shown) > 0:
        yield Text(f"{'':>5} and {more:,} more", style="dim")


def _decisions(history: History, most: int, width: int) -> Iterator[Text]:
    """The newest ones, whole, in so many lines; the newest of all in any case."""
    lines: list[Text] = []
    for decision in history.decisions[: -most - 1 : -1]:
        ago = f"{seconds(history.at - decision.at)} ago".rjust(_AGO)
        words = ((word, "") for word in printable(decision_sentence(decision)).split())
        told = list(_packed(f"{ago}  ", words, width, indent=_AGO + 2))
        if lines and len(lines) + len(told) > most:
            break
        told[0].stylize("dim", 0, _AGO)
        lines += told
    yield from lines


def _running(snapshot: SchedulerSnapshot) -> list[JobView]:
    return [job for job in (snapshot.running, *snapshot.also_running) if job is not None]


def _cells(job: JobView) -> tuple[str, ...]:
    name = printable(f"{kind_name(job.kind)} {short_flow(job.flow)}")
    on_device = job.state in ("running", "stopping")
    waited = "" if on_device else seconds(job.waited_s)
    starts = "" if on_device else start_words(job)
    tokens = str(job.tokens_done) if job.tokens_done or on_device else ""
    place = "" if on_device else str(job.position)
    return (place, name, printable(job.model), tier_name(job.tier), state_name(job), waited, starts, tokens)


def _style(kind: LlmTaskKind) -> str:
    return STYLES.get(kind.value, "")


def _packed(
    label: str, pieces: Iterable[tuple[str, str]], width: int, gap: str = " ", indent: int = _LABEL
) -> Iterator[Text]:
    """Pieces and their styles beside a label, on as many lines as it takes; none is broken."""
    line, used = Text(label.ljust(indent)), indent
    for piece, style in pieces:
        if used > indent and used + len(gap) + cell_len(piece) > width:
            yield line
            line, used = Text(" " * indent), indent
        if used > indent:
            line.append(gap)
            used += len(gap)
        line.append(piece, style=style)
        used += cell_len(piece)
    yield line


def _cropped(text: str, cells: int) -> str:
    """So wide, whatever the script; three points where something is missing."""
    return set_cell_size(text if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1)}…", cells)


def _bar(part: float, cells: int) -> str:
    full = round(part * cells)
    return "█" * full + "░" * (cells - full)


def _fill(cells: list[str | None], history: History, start: float, end: float | None, kind: str) -> None:
    first = _cell(history, start, len(cells))
    last = _cell(history, history.at if end is None else end, len(cells))
    for at in range(first, last + 1):
        if cells[at] in (None, "extract") or kind in ("chat", _SWAP):
            cells[at] = kind


def _cell(history: History, t: float, cells: int) -> int:
    part = 1 - (history.at - t) / SPAN_S
    return min(cells - 1, max(0, int(part * cells)))
