"""Benchmarks run and report in the form that docs/benchmarks.md describes; no number is looked at."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from domain.errors import EngineError
from tests.bench import loop_lag
from tests.bench.__main__ import BENCHMARKS, main
from tests.bench.figures import Goal, Report
from tests.bench.setting import Setting

MINUTES = {
    "chat-under-load",
    "background-throughput",
    "note-flood",
    "engine-speed",
    "api-under-load",
    "api-soak",
    "web-pages",
}
"""Even in quick mode they generate for a minute each; `make bench` runs them."""
QUICK = [name for name in BENCHMARKS if name not in MINUTES]


def measure(name: str, folder: Path) -> tuple[int, dict[str, Any]]:
    file = folder / "bench.json"
    status = main([name, "--quick", "--json", str(file)])
    document = json.loads(file.read_text())
    assert set(document) == {"machine", "model", "quick", "reports"}
    assert document["machine"]["cores"] >= 1
    (report,) = document["reports"]
    assert report["benchmark"] == name
    return status, report


@pytest.mark.model
@pytest.mark.usefixtures("model_store")
@pytest.mark.parametrize("name", QUICK)
def test_a_benchmark_reports_its_figures(name: str, tmp_path: Path) -> None:
    status, report = measure(name, tmp_path)
    assert status == 0
    assert set(report) == {"benchmark", "figures", "raw", "took_s"}
    assert report["figures"]
    assert any(figure["goal"] is not None for figure in report["figures"])
    for figure in report["figures"]:
        assert set(figure) == {"name", "value", "unit", "goal", "met"}
        assert math.isfinite(figure["value"])
        assert (figure["met"] is None) == (figure["goal"] is None)


@pytest.mark.model
@pytest.mark.usefixtures("model_store")
def test_one_that_cannot_run_is_named_and_the_status_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(setting: Setting) -> Report:
        raise EngineError("The engine is out of order.")

    monkeypatch.setattr(loop_lag, "run", broken)
    status, report = measure("loop-lag", tmp_path)
    assert status == 1
    assert report["error"] == "EngineError: The engine is out of order."


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["no-such-benchmark"])
    assert stop.value.code == 2
    assert "no-such-benchmark" in capsys.readouterr().err


def test_a_goal_says_on_which_side_of_its_bound_it_is_met() -> None:
    assert Goal("<=", 1.25).met(1.25)
    assert not Goal("<=", 1.25).met(1.26)
    assert Goal(">=", 0.95).met(0.95)
    assert not Goal(">=", 0.95).met(0.94)
