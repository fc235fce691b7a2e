"""`uniun simulate`: a scenario's trace as lines of JSON, as a timeline with a summary, or as a chart."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from domain.entities.simulation import SimulationReport
from domain.errors import ScenarioError
from domain.usecases.scheduler import SimulateUseCase
from presentation.cli.gantt import STYLES, gantt_rows
from presentation.cli.terminal import out, printable

INPUT_LIMIT = 50_000_000
"""Characters of a scenario; hundreds of thousands of jobs."""
TIMELINE_LIMIT = 500
"""Events shown to a reader; `--json` prints all."""
_COLUMNS = ("t", "event", "job", "kind", "flow", "tier")

Record = Mapping[str, object]


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
            text = sys.stdin.read(INPUT_LIMIT + 1)
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
    console.print(_timeline(events[:TIMELINE_LIMIT]))
    if len(events) > TIMELINE_LIMIT:
        console.print(
            f"… and {len(events) - TIMELINE_LIMIT} more events; --json prints them all.", style="dim"
        )
    for name, value in summary.items():
        if isinstance(value, Mapping):
            console.print(_summary_table(name, value))
    scalars = {k: v for k, v in summary.items() if not isinstance(v, Mapping) and k not in ("t", "event")}
    console.print(" · ".join(f"{_words(name)} {_cell(value)}" for name, value in scalars.items()))


def _timeline(events: Iterable[Record]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in ("t", "tier") else "left", overflow="fold")
    table.add_column("what", overflow="fold")
    for event in events:
        rest = ", ".join(
            f"{_words(name)} {_cell(value)}"
            for name, value in event.items()
            if name not in (*_COLUMNS, "model")
        )
        style = STYLES.get(str(event.get("kind")), "")
        table.add_row(*(_cell(event.get(name, "")) for name in _COLUMNS), rest, style=style)
    return table


def _summary_table(title: str, rows: Mapping[str, object]) -> Table:
    """One row a kind or flow; nested figures become columns such as `first token s p95`."""
    flat = {row: _flatten(value) for row, value in rows.items()}
    columns = list(dict.fromkeys(name for values in flat.values() for name in values))
    table = Table(title=_words(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for row, values in flat.items():
        table.add_row(printable(row), *(_cell(values.get(column, "")) for column in columns))
    return table


def _flatten(value: object, prefix: str = "") -> dict[str, object]:
    if not isinstance(value, Mapping):
        return {prefix or "value": value}
    flat: dict[str, object] = {}
    for name, inner in value.items():
        flat |= _flatten(inner, f"{prefix} {_words(name)}".strip())
    return flat


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    return printable(str(value))
