"""`uniun simulate`: a scenario's trace as lines of JSON, as a timeline with a summary, or as a chart."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from domain.entities.simulation import SimulationReport
from domain.errors import ScenarioError
from domain.usecases.scheduler import SimulateUseCase
from presentation.cli.gantt import STYLES, gantt_rows
from presentation.cli.tables import Column, Row, build_table, fits
from presentation.cli.terminal import out, printable, read_piped
from presentation.counting import counted

INPUT_LIMIT = 50_000_000
"""Characters of a scenario; hundreds of thousands of jobs."""
TIMELINE_LIMIT = 500
"""Events shown to a reader; `--json` prints all."""
FLOW_LIMIT = 30
_FIRSTS = ("p50", "p95", "p99", "max")
_TIMELINE = (
    Column("t", right=True),
    Column("event"),
    Column("job"),
    Column("who"),
    Column("tier"),
    Column("what", folds=True),
)

Record = Mapping[str, object]
Figures = tuple[tuple[str, ...], list[Row]]
"""Names of columns, and rows; what they are of stands first."""


def simulate(run: SimulateUseCase, file: str, *, as_json: bool, gantt: bool) -> None:
    """Raises `ScenarioError` when the file cannot be read or is malformed."""
    report = run(_read(file), "stdin" if file == "-" else file)
    if as_json:
        sys.stdout.writelines(f"{line}\n" for line in report.json_lines)
    elif gantt:
        for line in gantt_rows(report.trace, (console := out()).width):
            console.print(line, no_wrap=True, crop=True)
    else:
        _show(report, out())


def _read(file: str) -> str:
    try:
        if file == "-":
            text = read_piped(INPUT_LIMIT)
        else:
            with Path(file).open(encoding="utf-8") as source:
                text = source.read(INPUT_LIMIT + 1)
    except OSError as error:
        raise ScenarioError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{file} is not UTF-8 text: byte {error.start} does not fit.") from None
    if len(text) > INPUT_LIMIT:
        raise ScenarioError(f"{file} has more than {INPUT_LIMIT} characters. Split the scenario.")
    return text


def _show(report: SimulationReport, console: Console) -> None:
    *events, summary = report.trace
    shown = [Row(_event_cells(event), _style(event.get("kind"))) for event in events[:TIMELINE_LIMIT]]
    if fits(console, timeline := build_table(_TIMELINE, shown)):
        console.print(timeline)
    else:
        for row in shown:
            console.print(" ".join(filter(None, row.cells)), style=row.style)
    if len(events) > TIMELINE_LIMIT:
        console.print(
            f"… and {len(events) - TIMELINE_LIMIT} more events; --json prints them all.", style="dim"
        )
    kinds = _mapping(summary.get("kinds"))
    if kinds:
        _print_figures(console, _ends(kinds))
        _print_figures(console, _times(kinds, _FIRSTS), _times(kinds, ("p50", "p95", "max")))
    flows = _mapping(summary.get("flows"))
    if len(flows) <= FLOW_LIMIT:
        for flow, service in flows.items():
            console.print(f"{printable(flow)}: {_cell(service)} s of service")
    console.print(
        f"{_counted(summary.get('swaps'), 'swap')} in {_cell(summary.get('swap_s'))} s · "
        f"{_counted(summary.get('preemptions'), 'preemption')} · "
        f"busy {_cell(summary.get('busy_s'))} s · idle {_cell(summary.get('idle_s'))} s"
    )


def _event_cells(event: Record) -> tuple[str, ...]:
    kind = event.get("kind")
    who = f"{kind}/{event['flow']}" if "flow" in event else _cell(kind or "")
    tier = f"T{event['tier']}" if "tier" in event else ""
    cells = (_cell(event["t"]), _cell(event["event"]), _cell(event.get("job", "")), printable(who), tier)
    return (*cells, printable(_what(event)))


def _style(kind: object) -> str:
    return STYLES.get(str(kind), "")


def _print_figures(console: Console, *figures: Figures) -> None:
    """The first table that fits; else a paragraph a row, each figure with its name."""
    for names, rows in figures:
        columns = [Column(name, right=at > 0, folds=True) for at, name in enumerate(names)]
        if fits(console, table := build_table(columns, rows)):
            console.print(table)
            return
    names, rows = figures[0]
    for row in rows:
        told = (f"{name} {cell}" for name, cell in zip(names[1:], row.cells[1:], strict=True))
        console.print(f"{row.cells[0]}: {', '.join(told)}", style=row.style)


def _what(event: Record) -> str:
    """What the other columns do not say, in words."""
    match event:
        case {"event": "dispatch", "resumed": resumed, "reason": reason}:
            return f"{'resumes' if resumed else 'starts'}: {reason}"
        case {"event": "preempt", "by": by, "reason": reason}:
            return f"gives way to {by}: {reason}"
        case {"event": "stopped", "tokens_done": tokens}:
            return f"after {_counted(tokens, 'token')}"
        case {"event": "finish", "service_s": service, "preemptions": preemptions}:
            return f"{_cell(service)} s of service, {_counted(preemptions, 'preemption')}"
        case {"event": "swap_start", "from": old, "to": new, "trigger": trigger}:
            return f"{old or 'nothing'} → {new}, for {trigger}"
        case {"event": "swap_end", "to": new, "seconds": seconds, "ok": ok}:
            return f"{new} {'is loaded' if ok else 'could not be loaded'} after {_cell(seconds)} s"
    shown = ("t", "event", "job", "kind", "flow", "tier", "model")
    return ", ".join(
        f"{name.replace('_', ' ')} {_cell(value)}" for name, value in event.items() if name not in shown
    )


def _ends(kinds: Record) -> Figures:
    """How many jobs of each kind there were, how they ended, and the device seconds they used."""
    names = ("count", "finished", "cancelled", "failed", "rejected", "service_s")
    rows = [
        Row((kind, *(_cell(_mapping(figures).get(name)) for name in names)), _style(kind))
        for kind, figures in kinds.items()
    ]
    return ("kind", *names[:-1], "service s"), rows


def _times(kinds: Record, waits: Sequence[str]) -> Figures:
    """Seconds from submission to the first dispatch and to the first token."""
    rows = []
    for kind, figures in kinds.items():
        wait, first = (_mapping(_mapping(figures).get(name)) for name in ("wait_s", "first_token_s"))
        cells = [*(wait.get(q) for q in waits), *(first.get(q) for q in _FIRSTS)]
        rows.append(Row((kind, *map(_cell, cells)), _style(kind)))
    return ("kind", *(f"wait {q}" for q in waits), *(f"first {q}" for q in _FIRSTS)), rows


def _mapping(value: object) -> Record:
    return value if isinstance(value, Mapping) else {}


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else printable(str(value))


def _counted(value: object, one: str) -> str:
    return counted(value, one) if isinstance(value, int) else f"{_cell(value)} {one}s"
