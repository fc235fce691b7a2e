"""A trace as a chart of text: one row a job, or a flow when there are many jobs; columns are time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from presentation.cli.terminal import printable

STYLES = {"chat": "green", "extract": "cyan", "nataraj": "magenta", "gana": "yellow", "api": "blue"}
JOB_ROWS = 40
"""More jobs than this are drawn as flows."""
ROW_LIMIT = 100
_LABEL_WIDTH = 24
_SWAP_STYLE = "red"
_GLYPHS = {"waiting": "·", "preempted": "░", "swap": "▒", "running": "█"}
_RANK = {state: rank for rank, state in enumerate(_GLYPHS)}
"""When a column covers several states the highest is drawn, so that a short run is never hidden."""
_ENDS = ("finish", "cancelled", "failed", "rejected")


@dataclass
class _Row:
    label: str
    style: str
    spans: list[tuple[float, float, str]] = field(default_factory=list)
    """Start, end, state."""


@dataclass
class _Open:
    """A job's present state."""

    row: _Row
    since: float
    state: str


def gantt_rows(trace: Sequence[Mapping[str, object]], width: int) -> Iterator[Text]:
    """The chart's lines, none longer than `width` cells."""
    rows, end = _rows(trace)
    if not rows:
        yield Text("Nothing was submitted.")
        return
    label_width = min(_LABEL_WIDTH, max(len(row.label) for row in rows))
    columns = max(10, width - label_width - 1)
    for row in rows[:ROW_LIMIT]:
        line = Text(row.label[:label_width].ljust(label_width) + " ", no_wrap=True)
        yield line.append(_cells(row.spans, end, columns), style=row.style)
    if len(rows) > ROW_LIMIT:
        yield Text(f"… and {len(rows) - ROW_LIMIT} more flows", style="dim")
    right = f"{end:.0f} s" if end >= 10 else f"{end:.1f} s"
    yield Text(" " * (label_width + 1) + "0" + right.rjust(columns - 1), style="dim", no_wrap=True)
    yield Text("  ".join(f"{glyph} {state}" for state, glyph in _GLYPHS.items()), style="dim", no_wrap=True)


def _cells(spans: Sequence[tuple[float, float, str]], end: float, columns: int) -> str:
    drawn = [-1] * columns
    scale = columns / end if end > 0 else 0
    for start, stop, state in spans:
        first = min(columns - 1, int(start * scale))
        last = max(first + 1, min(columns, round(stop * scale)))
        for at in range(first, last):
            drawn[at] = max(drawn[at], _RANK[state])
    glyphs = list(_GLYPHS.values())
    return "".join(" " if rank < 0 else glyphs[rank] for rank in drawn)


def _rows(trace: Sequence[Mapping[str, object]]) -> tuple[list[_Row], float]:
    jobs = {str(record["job"]) for record in trace if record.get("event") == "submit"}
    by_job = len(jobs) <= JOB_ROWS
    rows: dict[str, _Row] = {}
    open_jobs: dict[str, _Open] = {}
    swaps = _Row("model swaps", _SWAP_STYLE)
    swap_since: float | None = None
    now = 0.0
    for record in trace:
        event, job = str(record["event"]), str(record.get("job"))
        # The summary is of the time `until`, which may be long after the last thing that happened.
        if event != "summary" or open_jobs or swap_since is not None:
            now = max(now, float(str(record["t"])))
        if event == "submit":
            kind, flow = str(record.get("kind")), str(record.get("flow"))
            label = printable(f"{kind} {job if by_job else flow}").replace("\n", " ")
            row = rows.setdefault(label, _Row(label, STYLES.get(kind, "")))
            open_jobs[job] = _Open(row, now, "waiting")
        elif event == "swap_start":
            swap_since = now
        elif event == "swap_end" and swap_since is not None:
            swaps.spans.append((swap_since, now, "swap"))
            swap_since = None
        elif job in open_jobs and event in ("dispatch", "stopped", *_ENDS):
            current = open_jobs[job]
            current.row.spans.append((current.since, now, current.state))
            current.since, current.state = now, "running" if event == "dispatch" else "preempted"
            if event in _ENDS:
                del open_jobs[job]
    for current in open_jobs.values():
        current.row.spans.append((current.since, now, current.state))
    if swap_since is not None:
        swaps.spans.append((swap_since, now, "swap"))
    return [*([swaps] if swaps.spans else []), *rows.values()], now
