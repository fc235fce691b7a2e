"""Traces read again: what a running UNIUN exports is shown as a simulation is."""

import json

import pytest

from data.scheduling.simulation import ScenarioSimulator
from domain.errors import ScenarioError
from presentation.cli.gantt import gantt_rows
from tests.data.scheduling.scenario_families import FAMILIES, scenario
from tests.data.scheduling.test_history import CHAT_OVER_DECK, played

READ = ScenarioSimulator().simulate


@pytest.mark.parametrize("family", FAMILIES)
def test_an_export_reads_as_the_trace_that_it_is(family: str) -> None:
    history, simulation, _ = played(scenario(family, 1), window_s=1e9, most=10**9)
    report = READ("\n".join(history.export()) + "\n", "history.jsonl")
    assert list(report.trace) == simulation.trace
    assert report.json_lines == history.export()


def test_the_last_part_of_a_long_history_has_a_chart() -> None:
    history, _, clock = played(CHAT_OVER_DECK, window_s=20.0)
    clock.seconds += 5
    report = READ("\n".join(history.export()), "history.jsonl")
    assert len(list(gantt_rows(report.trace, 80))) >= 3


FIRST = '{"t":0.0,"event":"submit","job":"a","kind":"chat","flow":"f","tier":0,"model":"X"}\n'


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("nonsense", "line 2: this is no JSON object"),
        ('["list"]', "line 2"),
        ('{"t":-1,"event":"share"}', "line 2: t: "),
        ('{"t":NaN,"event":"share"}', "line 2: t: "),
        ('{"t":1,"event":"finish","job":"a"}', "line 2: kind: "),
        ('{"t":1,"event":"share"}\n{"t":0.5,"event":"share"}', "line 3: time goes back"),
        (FIRST.replace("submit", "dispatch").replace('"a"', '"b"'), "lacks a record"),
        ("[" * 100_000, "line 2: this is no JSON object"),
    ],
)
def test_a_damaged_one_is_refused_with_line_and_reason(more: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        READ(FIRST + more, "history.jsonl")


def test_a_scenario_is_no_recording() -> None:
    text = json.dumps({"models": {"X": {}}, "events": []})
    assert READ(text, "s.json").trace[-1]["event"] == "summary"
