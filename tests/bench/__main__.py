"""`python -m tests.bench [NAMES…] [--json FILE] [--quick]`: measurements, never tests.

The exit status is 0 when everything ran, goals met or not, 1 when a benchmark could not run, 2 for wrong arguments.
"""

import argparse
import asyncio
import json
import platform
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from data.clock import SystemClock
from data.models.store import FileModelStore
from tests.bench.figures import Figure, Report
from tests.bench.setting import Setting, threads

STORE = Path(__file__).resolve().parents[2] / "build" / "test-store"
"""Shared with the tests, so that the model is fetched once."""
MODEL = "smollm2-135m"
BENCHMARKS = {
    "chat-under-load": "chat_under_load",
    "engine-speed": "engine_speed",
    "stop-latency": "stop_latency",
    "background-throughput": "background_throughput",
    "prefix-reuse": "prefix_reuse",
    "scheduler-decisions": "scheduler_decisions",
    "loop-lag": "loop_lag",
    "note-flood": "note_flood",
    "library-growth": "library_growth",
    "api-under-load": "api_under_load",
    "api-soak": "api_soak",
    "web-pages": "web_pages",
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="Measure UNIUN on this machine."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything measured to FILE")
    parser.add_argument("--quick", action="store_true", help="see that it runs; the numbers mean nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are: {', '.join(BENCHMARKS)}")
    console = Console(highlight=False)
    names = options.names or list(BENCHMARKS)
    document, failed = asyncio.run(_measure(names, options.quick, console))
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


async def _measure(names: list[str], quick: bool, console: Console) -> tuple[dict[str, Any], bool]:
    clock = SystemClock()
    store = FileModelStore(STORE, clock)
    model = await store.pull(MODEL, lambda progress: None)
    setting = Setting(clock, store, model, quick)
    reports: list[dict[str, Any]] = []
    table = _table(quick)
    failed = False
    for name in names:
        console.print(f"measuring {name} …", style="dim")
        start = clock.monotonic()
        run: Callable[[Setting], Awaitable[Report]] = import_module(f"tests.bench.{BENCHMARKS[name]}").run
        try:
            report = await run(setting)
        except Exception as error:  # noqa: BLE001 - one benchmark that cannot run must not hide the others
            failed = True
            reports.append({"benchmark": name, "error": f"{type(error).__name__}: {error}"})
            table.add_row(name, f"could not run: {error}", "", "", "failed")
            continue
        reports.append({**report.as_json(), "took_s": clock.monotonic() - start})
        for at, figure in enumerate(report.figures):
            last = at == len(report.figures) - 1
            cells = _cells(figure)
            table.add_row(name if at == 0 else "", *(cells[:3] if quick else cells), end_section=last)
    console.print(table)
    return {"machine": _machine(), "model": MODEL, "quick": quick, "reports": reports}, failed


def _table(quick: bool) -> Table:
    title = "Quick run: these numbers mean nothing" if quick else None
    table = Table("benchmark", "figure", title=title)
    for heading in ("measured", "goal", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _cells(figure: Figure) -> tuple[str, str, str, str]:
    value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.2f}"
    if figure.goal is None:
        return figure.name, f"{value} {figure.unit}", "", ""
    verdict = "met" if figure.goal.met(figure.value) else "MISSED"
    return figure.name, f"{value} {figure.unit}", str(figure.goal), verdict


def _machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False),
        "threads": threads(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "load_average": list(psutil.getloadavg()),
        "at": SystemClock().now().isoformat(timespec="seconds"),
    }


def _processor() -> str:
    """Linux tells the name only in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
