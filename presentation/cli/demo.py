"""`uniun demo`: the load of the bug that started it all, under several policies, measured."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from domain.entities.demo import DemoPolicy, DemoQuantile, DemoQuantiles, DemoReport, DemoRun
from domain.entities.llm import LlmTaskKind
from domain.errors import InvalidRequest, ServerLost, UniunError
from presentation.cli.demo_view import busy_share, open_view, seconds
from presentation.cli.openers import Openers
from presentation.cli.progress import ensure
from presentation.cli.run import run_async
from presentation.cli.terminal import out, printable, say, size
from presentation.counting import counted

_GANAS = ("1st", "2nd")
_WORK = {LlmTaskKind.NATARAJ: "cards", LlmTaskKind.EXTRACT: "notes", LlmTaskKind.GANA: "Ganas"}


def demo(
    openers: Openers, *, model: str | None, policies: Sequence[str], window_s: float, json_file: Path | None
) -> None:
    """Shows it live, then the figures; `json_file` gets everything that was measured."""
    chosen = openers.demo().choose(policies)
    if json_file is not None:
        _check_writable(json_file)
    beside = run_async(_server_runs(openers))
    if beside:
        _warn()
    console = out()
    report = run_async(_play(openers, model, chosen, window_s, console))
    show(report, console, beside=beside)
    if json_file is not None:
        _write(report, json_file)


async def _play(
    openers: Openers, model: str | None, chosen: Sequence[DemoPolicy], window_s: float, console: Console
) -> DemoReport:
    installed = await ensure(openers.models(), model)
    with open_view(console) as watch:
        return await openers.demo().play(installed.name, chosen, window_s, watch)


async def _server_runs(openers: Openers) -> bool:
    """The demo cannot use its model: each policy is a scheduler of its own that has an engine for itself."""
    try:
        async with openers.servers_scheduler() as scheduler:
            return scheduler is not None
    except ServerLost:
        return True


def _warn() -> None:
    """Who can be asked decides; a script goes on, and the figures say so."""
    say(
        "a UNIUN runs here already. The demo needs the machine for itself: it loads the model once more, and whatever the "
        "other one does makes the figures worse. End that one first for figures that hold."
    )
    if sys.stdin.isatty():
        typer.confirm("Measure beside it all the same?", abort=True, err=True)


def _check_writable(path: Path) -> None:
    """Before minutes are spent on figures that could not be kept."""
    target = path if path.exists() else path.parent
    if path.is_dir() or not target.exists() or not os.access(target, os.W_OK):
        raise InvalidRequest(f"{path} cannot be written. Name a file in a folder that exists and is yours.")


def _write(report: DemoReport, path: Path) -> None:
    try:
        path.write_text(report.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UniunError(f"{path} could not be written: {error.strerror}.") from None
    say(f"everything that was measured is in {path}.")


def show(report: DemoReport, console: Console, *, beside: bool = False) -> None:
    """The table, what must be known to read it, and the verdict. `beside`: another UNIUN ran at the same time."""
    console.print(_table(report.runs))
    for note in _notes(report, beside):
        console.print(Text(note, style="dim"))
    console.print()
    console.print(Text(report.verdict, style="bold"))


def _table(runs: Sequence[DemoRun]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("", overflow="fold")
    for run in runs:
        table.add_column(
            run.policy, justify="right", style="bold" if run.policy == "uniun" else "", no_wrap=True
        )
    for label, cell in _ROWS:
        table.add_row(label, *(cell(run) for run in runs), end_section=label in _SECTION_ENDS)
    return table


def _quantile(which: str, quantiles: Callable[[DemoRun], DemoQuantiles | None]) -> Callable[[DemoRun], str]:
    def cell(run: DemoRun) -> str:
        found = quantiles(run)
        if found is None:
            return "–"
        value: DemoQuantile = getattr(found, which)
        return seconds(value.value_s, more=value.lower_bound)

    return cell


def _background(cell: Callable[[DemoRun], str]) -> Callable[[DemoRun], str]:
    return lambda run: "–" if run.policy == "idle" else cell(run)


def _first(run: DemoRun) -> DemoQuantiles:
    return run.first_token_s


def _thirtieth(run: DemoRun) -> DemoQuantiles | None:
    return run.thirtieth_token_s


def _lateness(at: int) -> Callable[[DemoRun], str]:
    def cell(run: DemoRun) -> str:
        if at >= len(run.ganas):
            return "–"
        return seconds(run.ganas[at].late_s, more=not run.ganas[at].started)

    return cell


def _finished(kind: LlmTaskKind) -> Callable[[DemoRun], str]:
    return _background(lambda run: str(run.finished.get(kind, 0)))


_ROWS: tuple[tuple[str, Callable[[DemoRun], str]], ...] = (
    ("chat, first token, p50 s", _quantile("p50", _first)),
    ("chat, first token, p95 s", _quantile("p95", _first)),
    ("chat, first token, max s", _quantile("max", _first)),
    ("chat, 30th token, p50 s", _quantile("p50", _thirtieth)),
    ("chat, 30th token, p95 s", _quantile("p95", _thirtieth)),
    ("chat, 30th token, max s", _quantile("max", _thirtieth)),
    ("background tokens per s", _background(lambda run: f"{run.background_tokens_per_s:.1f}")),
    *((f"{what} finished", _finished(kind)) for kind, what in _WORK.items()),
    *((f"{which} Gana, start after due, s", _lateness(at)) for at, which in enumerate(_GANAS)),
    ("preemptions", lambda run: str(run.preemptions)),
    ("model swaps", lambda run: str(run.swaps)),
    ("device time of the chats", lambda run: f"{run.chats_s / run.window_s:.0%}"),
    ("device busy", lambda run: f"{run.busy_s / run.window_s:.0%}"),
)
_SECTION_ENDS = (
    "chat, first token, max s",
    "chat, 30th token, max s",
    f"{_GANAS[-1]} Gana, start after due, s",
)


_FIGURES = ("p50, p95", "preemptions", "model swaps")
_MEANINGS = {
    "fifo": "one queue; whoever came first goes first, and nothing that runs is interrupted.",
    "two-lane": "chats and the deck go before the rest; what runs already is still waited for.",
    "uniun": "this scheduler: a chat interrupts what runs, and the rest takes fair turns.",
    "idle": "the same chats one after another while nothing else runs.",
    "p50, p95": "half of the chats, and 95 of 100, waited no longer than this.",
    "preemptions": "how often a job was stopped to let another go first, and went on later without losing a token.",
    "model swaps": "how often one model was unloaded to load another.",
}


def _left_open(run: DemoRun) -> bool:
    chats = (chat.first_token and (chat.thirtieth_token or chat.ended_early) for chat in run.chats)
    return not all(chats) or not all(gana.started for gana in run.ganas)


def _notes(report: DemoReport, beside: bool) -> list[str]:
    notes = [f"The load, the same each time: {report.load}."]
    shown = {run.policy for run in report.runs}
    notes += [f"{name}: {meaning}" for name, meaning in _MEANINGS.items() if name in shown | set(_FIGURES)]
    if any(map(_left_open, report.runs)):
        notes.append(
            "> : had not come when the window closed. It counts with the time waited; the true time is longer."
        )
    early = sum(chat.ended_early for run in report.runs for chat in run.chats)
    if early:
        notes.append(
            f"{counted(early, 'answer was', 'answers were')} complete before the 30th token and {'does' if early == 1 else 'do'} not count there."
        )
    notes.append(
        f"The policy's slice, and the time over which it shares, are scaled by {report.policy_time_scale:.2f}, so that "
        "a short window shows what takes minutes on a real day."
    )
    if share := busy_share(report.machine):
        notes.append(
            f"Other programs kept the processor {share} busy before the start, so all is slower than it could be."
        )
    if beside:
        notes.append("Another UNIUN ran here meanwhile, which takes processor and memory from every run.")
    machine = report.machine
    notes.append(
        f"Measured just now with {report.engine} and {printable(report.model)} on {printable(machine.processor)}, "
        f"{machine.cores} cores, {size(machine.memory_bytes)}, {printable(machine.system)}."
    )
    return notes
