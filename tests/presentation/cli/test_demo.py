"""What the demo prints: on a terminal, into a pipe, into a file."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from domain.entities.demo import (
    DemoChat,
    DemoEvent,
    DemoGana,
    DemoMachine,
    DemoMoment,
    DemoPolicy,
    DemoQuantile,
    DemoQuantiles,
    DemoReport,
    DemoRun,
    DemoSpan,
    DemoStarting,
)
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import JobView, SchedulerSnapshot
from domain.errors import EngineError, InvalidRequest, ServerLost
from presentation.cli.app import build_app
from presentation.cli.demo import show
from presentation.cli.demo_view import open_view
from tests.fakes import MemoryStore, ScriptedDemo, fake_openers

runner = CliRunner(env={"COLUMNS": "80"})


def chat(sent_s: float, waited_s: float, *, answered: bool = True, text: str = "Hi.") -> DemoChat:
    return DemoChat(
        question="Why?",
        sent_s=sent_s,
        waited_s=waited_s,
        first_token=answered,
        thirtieth_waited_s=waited_s + 1,
        thirtieth_token=answered,
        tokens=40 if answered else 0,
        text=text if answered else "",
        finished=answered,
    )


def quantiles(value_s: float, *, open_: bool = False) -> DemoQuantiles:
    value = DemoQuantile(value_s=value_s, lower_bound=open_)
    return DemoQuantiles(count=2, p50=value, p95=value, max=value)


def run(policy: DemoPolicy, wait_s: float, *, answered: bool = True) -> DemoRun:
    return DemoRun(
        policy=policy,
        window_s=10,
        load_s=0.5,
        chats=(chat(1, 0.25), chat(5, wait_s, answered=answered)),
        first_token_s=quantiles(wait_s, open_=not answered),
        thirtieth_token_s=None,
        background_tokens=0 if policy == "idle" else 420,
        background_tokens_per_s=0 if policy == "idle" else 42,
        finished={} if policy == "idle" else {LlmTaskKind.EXTRACT: 7},
        ganas=() if policy == "idle" else (DemoGana(flow="letter", due_s=4, late_s=6, started=answered),),
        busy_s=9,
        chats_s=1,
        preemptions=3,
        swaps=0,
        spans=(
            DemoSpan(start_s=0, end_s=5, kind=LlmTaskKind.EXTRACT),
            DemoSpan(start_s=5, end_s=5.01, kind=LlmTaskKind.CHAT),
            DemoSpan(start_s=5.01, end_s=9, kind=LlmTaskKind.NATARAJ),
        ),
    )


def report(*runs: DemoRun, busy_before: float = 0.0) -> DemoReport:
    return DemoReport(
        at="2026-01-01T00:00:00+00:00",
        machine=DemoMachine(
            system="Linux",
            processor="CPU",
            cores=2,
            memory_bytes=8_000_000_000,
            busy_before=busy_before,
            python="3.11",
        ),
        engine="fake",
        model="tiny",
        load="a deck",
        policy_time_scale=0.1,
        runs=runs,
        verdict="One sentence.",
    )


def moment(at_s: float, *chats: DemoChat, policy: DemoPolicy = "uniun") -> DemoMoment:
    def job(kind: LlmTaskKind, tier: int, state: str) -> JobView:
        return JobView(
            id="j",
            kind=kind,
            flow="all\x1b[2J notes",
            model="tiny",
            tier=tier,
            position=0,
            state=state,
            estimated_start_s=0,
            waited_s=0,
            tokens_done=12,
            service_s=0,
            preemptions=0,
        )

    return DemoMoment(
        policy=policy,
        at_s=at_s,
        window_s=10,
        surface="the deck",
        snapshot=SchedulerSnapshot(
            at=0,
            resident="tiny",
            loading=None,
            foreground=None,
            running=job(LlmTaskKind.NATARAJ, 1, "running"),
            tiers={4: (job(LlmTaskKind.GANA, 4, "queued"),) * 2},
            switches=(),
            kind_vruntime_s={},
            flow_vruntime_s={},
            extract_share=0,
            extract_exhausted=False,
            swap_cost_s={},
            linger_until=None,
            last_reason="T1 outranks T4",
            swaps=0,
            preemptions=0,
        ),
        chats=chats,
        spans=(DemoSpan(start_s=0, end_s=at_s, kind=LlmTaskKind.NATARAJ),),
        background_tokens=77,
    )


EVENTS: tuple[DemoEvent, ...] = (
    DemoStarting(policy="uniun", number=1, count=1, window_s=10),
    moment(0.5),
    moment(1.5, chat(1, 0.5, answered=False)),
    moment(6.0, chat(1, 0.75), chat(5, 1, answered=False)),
    run("uniun", 2.0),
)


def demo(
    *arguments: str, play: ScriptedDemo | None = None, store: MemoryStore | None = None
) -> tuple[str, str]:
    play = play or ScriptedDemo(*EVENTS, report=report(run("idle", 0.2), run("fifo", 5, answered=False)))
    result = runner.invoke(build_app(fake_openers(demo=play, store=store)), ["demo", *arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


def test_piped_it_is_plain_lines() -> None:
    text, _ = demo()
    assert "\x1b" not in text
    assert "uniun (1 of 1): starting a fresh engine" in text
    assert "   1.0 s  chat 1 is sent\n" in text
    assert "   1.8 s  chat 1 has its first token after 0.75 s\n" in text
    assert text.count("chat 1 is sent") == text.count("chat 1 has its first token") == 1
    assert "runs nataraj, all[2J notes, 12 tokens; waits T4 fair pool: 2 gana; 77 background tokens" in text
    assert "One sentence.\n" in text


def test_the_table_marks_what_is_only_a_lower_bound() -> None:
    text, _ = demo()
    row = next(line for line in text.splitlines() if "first token, p50" in line)
    assert row.split()[-3:] == ["0.20", ">", "5.00"]
    assert "30th token, p50 s" in text
    assert "had not come when the window closed" in text
    assert "notes finished" in text
    all_answered, _ = demo(play=ScriptedDemo(report=report(run("uniun", 1))))
    assert ">" not in all_answered


def test_a_busy_machine_is_said() -> None:
    assert "80% busy" in demo(play=ScriptedDemo(report=report(run("uniun", 1), busy_before=0.8)))[0]
    assert "busy before" not in demo()[0]


def test_a_busy_machine_is_said_before_the_run_too() -> None:
    other, told = report(busy_before=0.8).machine, report(run("uniun", 1), busy_before=0.8)
    text, _ = demo(play=ScriptedDemo(other, *EVENTS, report=told))
    assert text.index("keep the processor 80% busy. End them first") < text.index("starting a fresh engine")
    text, _ = demo(play=ScriptedDemo(report().machine, *EVENTS, report=report(run("uniun", 1))))
    assert "busy" not in text.partition("starting a fresh engine")[0]


def test_nothing_is_wider_than_the_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, markup=False, highlight=False, emoji=False)
    show(
        report(*(run(policy, 123.4, answered=False) for policy in ("idle", "fifo", "two-lane", "uniun"))),
        console,
    )
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("first token, p95" in line for line in lines) == 1


def test_json_gets_everything(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    text, errors = demo("--json", str(file))
    assert "One sentence." in text
    assert str(file) in errors.replace("\n", "")
    kept = json.loads(file.read_text())
    assert DemoReport.model_validate(kept) == report(run("idle", 0.2), run("fifo", 5, answered=False))
    assert kept["runs"][1]["chats"][1]["first_token"] is False


@pytest.mark.parametrize("name", ["absent/demo.json", "."])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    play = ScriptedDemo(report=report(run("uniun", 1)))
    with pytest.raises(InvalidRequest, match="cannot be written"):
        demo("--json", str(tmp_path / name), play=play)
    assert play.asked == []


def test_policies_come_in_one_order_and_unknown_ones_are_named() -> None:
    play = ScriptedDemo(report=report(run("uniun", 1)))
    demo("--policy", "uniun", "--policy", "idle", "--seconds", "3", play=play)
    demo(play=play)
    assert play.asked == [
        ("tiny", ("idle", "uniun"), 3.0),
        ("tiny", ("idle", "fifo", "two-lane", "uniun"), 40.0),
    ]
    store = MemoryStore()
    with pytest.raises(InvalidRequest, match="no policy lifo"):
        demo("--policy", "lifo", play=play, store=store)
    assert store.pulled == [], "refused before anything is fetched"


def test_a_missing_model_is_fetched() -> None:
    store = MemoryStore()
    _, errors = demo(store=store)
    assert store.pulled == ["tiny"]
    assert "fetching the model" in errors


@pytest.mark.parametrize("hangs", [False, True])
def test_a_uniun_that_runs_beside_it_is_told_of(hangs: bool) -> None:
    @asynccontextmanager
    async def running() -> AsyncIterator[Any]:
        if hangs:
            raise ServerLost("It does not answer.")
        yield object()

    openers = replace(
        fake_openers(demo=ScriptedDemo(report=report(run("uniun", 1)))), servers_scheduler=running
    )
    said = runner.invoke(build_app(openers), ["demo"])
    assert said.exit_code == 0
    assert "a UNIUN runs here already. The demo needs the machine for itself" in said.stderr
    assert "Another UNIUN ran here meanwhile" in " ".join(said.stdout.split())
    alone = demo()
    assert "UNIUN r" not in alone[0] + alone[1]


@pytest.mark.parametrize(("typed", "plays"), [("y\n", 1), ("\n", 0), ("", 0)])
def test_on_a_terminal_the_user_decides_whether_to_measure_beside_it(
    typed: str, plays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def running() -> AsyncIterator[Any]:
        yield object()

    # The command sees the stdin of the runner, which is made when it begins.
    monkeypatch.setattr(
        "presentation.cli.demo.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    )
    play = ScriptedDemo(report=report(run("uniun", 1)))
    said = runner.invoke(
        build_app(replace(fake_openers(demo=play), servers_scheduler=running)), ["demo"], input=typed
    )
    assert "Measure beside it all the same? [y/N]" in said.stderr
    assert len(play.asked) == plays
    assert said.exit_code == 1 - plays


def test_a_failure_is_an_error() -> None:
    with pytest.raises(EngineError):
        demo(play=ScriptedDemo(*EVENTS[:3]))


def test_a_terminal_gets_a_picture_and_keeps_the_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    file = io.StringIO()
    console = Console(
        file=file, width=80, height=24, force_terminal=True, markup=False, highlight=False, color_system=None
    )
    with open_view(console) as watch:
        for event in EVENTS[:-1]:
            watch(event)
        picture = file.getvalue()
        watch(EVENTS[-1])
    for words in (
        "T1 on screen",
        "2 gana",
        "T1 outranks T4",
        "the user looks at the deck",
        "waits, 1.0 s so far",
    ):
        assert words in picture
    assert "\x1b[2J" not in picture
    kept = file.getvalue()[len(picture) :]
    assert "background 42 tokens/s" in kept
    assert "0.25, 2.00 s for the first token" in kept
    assert "\x1b[?25h" in kept, "the cursor is back"


def test_a_short_chat_shows_in_the_strip() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80)
    with open_view(console) as watch:
        watch(run("uniun", 2.0))
    device = file.getvalue().splitlines()[-1]
    assert device.startswith("device")
    assert "c" in device.removeprefix("device")
    assert device.rstrip().endswith("n......")


def test_without_utf8_the_marks_are_ascii() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with open_view(Console(file=file, width=80)) as watch:
        watch(run("uniun", 2.0))
    file.seek(0)
    assert "v....." in file.read()
