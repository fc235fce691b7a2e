from pathlib import Path

import pytest
from typer.testing import CliRunner

from domain.errors import InvalidRequest, ScenarioError
from presentation.cli import simulate as module
from presentation.cli.app import build_app
from presentation.cli.gantt import gantt_rows
from tests.fakes import FixedSimulator, fake_openers

CHAT = {"job": "c", "kind": "chat", "flow": "talk", "tier": 0, "model": "X"}
DECK = {"job": "n", "kind": "nataraj", "flow": "deck", "tier": 4, "model": "X"}
TRACE: tuple[dict[str, object], ...] = (
    {"t": 0.0, "event": "swap_start", "from": None, "to": "X", "trigger": "n"},
    {"t": 0.0, "event": "submit", **DECK},
    {"t": 2.0, "event": "swap_end", "to": "X"},
    {"t": 2.0, "event": "dispatch", **DECK, "resumed": False},
    {"t": 5.0, "event": "submit", **CHAT},
    {"t": 5.0, "event": "preempt", **DECK, "by": "c", "reason": "chat outranks T4"},
    {"t": 5.0, "event": "stopped", **DECK, "tokens_done": 30},
    {"t": 5.0, "event": "dispatch", **CHAT, "resumed": False},
    {"t": 7.0, "event": "finish", **CHAT, "service_s": 2.0, "preemptions": 0},
    {"t": 7.0, "event": "dispatch", **DECK, "resumed": True},
    {"t": 10.0, "event": "finish", **DECK, "service_s": 6.0, "preemptions": 1},
    {
        "t": 10.0,
        "event": "summary",
        "kinds": {"chat": {"count": 1, "wait_s": {"p50": 3.5}, "first_token_s": {"p50": 0.125, "max": None}}},
        "flows": {"chat/talk": 2.0, "nataraj/deck": 6.0},
        "swaps": 1,
        "busy_s": 8.0,
    },
)
runner = CliRunner(env={"COLUMNS": "120"})


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "scenario.yaml"
    path.write_text("events: []")
    return str(path)


def simulate(*arguments: str, text: str | None = None) -> str:
    app = build_app(fake_openers(simulator=FixedSimulator(*TRACE)))
    result = runner.invoke(app, ["simulate", *arguments], input=text)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_json_is_the_reports_lines_and_nothing_else(scenario: str) -> None:
    assert simulate(scenario, "--json").splitlines() == [str(record["event"]) for record in TRACE]
    assert simulate("-", "--json", text="events: []").splitlines()[-1] == "summary"


def test_a_reader_gets_a_timeline_and_a_summary(scenario: str) -> None:
    shown = simulate(scenario)
    for words in (
        *(
            "gives way to c: chat outranks T4",
            "after 30 tokens",
            "nothing → X, for n",
            "6.00 s of service, 1 pre",
        ),
        *("0.12", "3.50", "nataraj/deck: 6.00 s", "1 swap in", "busy 8.00 s"),
    ):
        assert words in shown


def test_a_long_timeline_is_cut_and_says_so(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMELINE_LIMIT", 3)
    shown = simulate(scenario)
    assert "8 more events" in shown
    assert "chat outranks" not in shown


def test_malformed_input_names_its_source(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("malformed")
    with pytest.raises(ScenarioError, match=r"bad\.yaml, line 1"):
        simulate(str(path))
    with pytest.raises(ScenarioError, match="stdin, line 1"):
        simulate("-", text="malformed")
    path.write_bytes(b"\xff")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        simulate(str(path))
    with pytest.raises(ScenarioError, match="cannot be read"):
        simulate(str(tmp_path))


def test_too_long_a_scenario_is_refused(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INPUT_LIMIT", 3)
    with pytest.raises(ScenarioError, match="more than 3 characters"):
        simulate(scenario)


def test_the_chart_shows_who_waited_ran_and_gave_way() -> None:
    lines = [str(line).rstrip() for line in gantt_rows(TRACE, width=32)]
    assert lines == [
        "model swaps ▒▒▒▒",
        "nataraj n   ····██████░░░░██████",
        "chat c                ████",
        "            0               10 s",
        "· waiting  ░ preempted  ▒ swap  █ running",
    ]
    assert "░░" in simulate("-", "--gantt", text="events: []")


def test_the_axis_ends_with_what_happens_last_and_not_at_until() -> None:
    done: list[dict[str, object]] = [
        {"t": 0, "event": "submit", **CHAT},
        {"t": 0, "event": "dispatch", **CHAT},
        {"t": 4.0, "event": "finish", **CHAT},
        {"t": 1000.0, "event": "summary"},
    ]
    assert str(list(gantt_rows(done, width=40))[1]).endswith(" 4.0 s")
    running = [*done[:2], done[-1]]
    assert str(list(gantt_rows(running, width=40))[1]).endswith(" 1000 s")


def test_a_narrow_terminal_gets_words_and_a_wide_one_every_quantile(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in ("40", "100"):
        monkeypatch.setitem(runner.env, "COLUMNS", width)
        shown = simulate(scenario)
        assert max(map(len, shown.splitlines())) <= int(width)
        flat = " ".join(shown.split())
        for words in ("gives way to c: chat outranks T4", "preempt", "nataraj/deck", "wait p99", "first p99"):
            assert words in flat, (width, words)


def test_a_short_run_is_never_hidden() -> None:
    long: list[dict[str, object]] = [
        {"t": 0, "event": "submit", **CHAT},
        {"t": 500.0, "event": "dispatch", **CHAT},
        {"t": 500.1, "event": "finish", **CHAT},
        {"t": 1000.0, "event": "summary"},
    ]
    assert "█" in str(next(gantt_rows(long, width=40)))


def test_many_jobs_are_drawn_as_flows_and_many_flows_are_cut() -> None:
    many: list[dict[str, object]] = [
        {"t": float(n), "event": "submit", **DECK, "job": f"n{n}", "flow": f"deck{n % 3}"} for n in range(100)
    ]
    lines = [str(line) for line in gantt_rows(many, width=40)]
    assert [line.split(" ")[1] for line in lines[:3]] == ["deck0", "deck1", "deck2"]
    assert len(lines) == 5
    flows: list[dict[str, object]] = [{**record, "flow": f"f{n}"} for n, record in enumerate(many * 2)]
    flows = [{**record, "job": f"j{n}"} for n, record in enumerate(flows)]
    assert "and 100 more flows" in str(list(gantt_rows(flows, width=40))[100])


def test_nothing_submitted_is_said() -> None:
    assert [str(line) for line in gantt_rows([{"t": 0.0, "event": "summary"}], 80)] == [
        "Nothing was submitted."
    ]


def test_piped_bytes_that_are_no_text_are_named_by_line() -> None:
    result = CliRunner().invoke(build_app(fake_openers()), ["simulate", "-"], input=b"models:\n  \xff\n")
    assert isinstance(result.exception, InvalidRequest)
    assert "byte 3 of line 2" in str(result.exception)
