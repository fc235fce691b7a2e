"""`uniun ps` and `uniun top`: what they show, on what width, and what they say when there is no server."""

import asyncio
import json
import os
import pty
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from rich.console import Console
from rich.text import Text

from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import Decision, History, JobView, RunSpan, SchedulerSnapshot, SwapSpan
from domain.errors import DatabaseError, NoServer, ServerLost
from domain.usecases.scheduler import (
    FollowSchedulerUseCase,
    GetSchedulerSnapshotUseCase,
    SetForegroundKindUseCase,
    SwitchModelUseCase,
)
from presentation.cli import top as top_module
from presentation.cli.openers import Library
from presentation.cli.scheduler_view import screen
from presentation.cli.top import ps, top
from presentation.controllers.ask import ONE_QUESTION
from presentation.controllers.scheduler import SchedulerController
from presentation.flow_names import FlowNames
from presentation.scheduler_words import why_now
from tests.fakes import ScriptedCoordinator, fake_openers
from tests.memory.library import MemoryLibrary
from tests.memory.scheduler import FixedHistory

CHAT, EXTRACT, NATARAJ, GANA = LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA


def job(name: str, kind: LlmTaskKind, tier: int, position: int, **more: object) -> JobView:
    fields: dict[str, object] = {
        "id": name,
        "kind": kind,
        "flow": f"{name}-flow",
        "model": "smollm2-135m",
        "tier": tier,
        "position": position,
        "state": "queued" if position else "running",
        "estimated_start_s": 4.0 * position,
        "waited_s": 3.0 * position,
        "tokens_done": 0,
        "service_s": 0.0,
        "preemptions": 0,
    }
    return JobView.model_validate(fields | more)


def busy(queued: int = 3) -> SchedulerSnapshot:
    running = job("c1", CHAT, 0, 0, tokens_done=12, max_tokens=48, prompt_tokens=20, prefilled_tokens=20)
    waiting = tuple(job(f"g{n}", GANA, 4, n) for n in range(1, min(queued, 100) + 1))
    return SchedulerSnapshot(
        at=1000.0,
        resident="smollm2-135m",
        loading=None,
        foreground=None,
        running=running,
        tiers={4: waiting} if waiting else {},
        switches=(),
        kind_vruntime_s={GANA: 12.0, NATARAJ: 3.0},
        flow_vruntime_s={"gana/g1-flow": 12.0},
        extract_share=0.35,
        extract_exhausted=False,
        swap_cost_s={"smollm2-135m": 1.2},
        linger_until=1020.0,
        last_reason="chat outranks all but model switches (flow c1-flow)",
        swaps=1,
        preemptions=2,
        queued={4: queued} if queued else {},
    )


IDLE = busy(0).model_copy(update={"running": None, "last_reason": "nothing to do"})


def run_of(name: str, kind: LlmTaskKind, start: float, end: float | None, how: str) -> RunSpan:
    fields = {
        "job": name,
        "kind": kind,
        "flow": f"{name}-flow",
        "model": "smollm2-135m",
        "tier": 4,
        "start": start,
        "end": end,
        "resumed": False,
        "reason": "smallest vruntime; local work first",
        "how": how,
        "tokens": 3,
        "by": None,
        "why": "",
    }
    return RunSpan.model_validate(fields)


HISTORY = History(
    at=1000.0,
    now=datetime(2026, 1, 1, tzinfo=UTC),
    since=400.0,
    runs=(
        run_of("e1", EXTRACT, 500.0, 640.0, "finished"),
        run_of("n1", NATARAJ, 700.0, 950.0, "preempted"),
        run_of("c1", CHAT, 950.0, None, "running"),
    ),
    swaps=(
        SwapSpan(
            old=None,
            new="smollm2-135m",
            start=480.0,
            end=500.0,
            trigger="e1",
            reason="nothing to do",
            ok=True,
        ),
    ),
    decisions=(
        Decision(
            at=950.0,
            what="stop",
            job="n1",
            kind=NATARAJ,
            flow="n1-flow",
            model="smollm2-135m",
            reason="chat (T0) outranks T4",
            by="c1",
            by_kind=CHAT,
        ),
    ),
)


class Watched(ScriptedCoordinator):
    """Shows one snapshot after another, the last one for ever."""

    def __init__(self, *snapshots: SchedulerSnapshot | Exception) -> None:
        super().__init__()
        self.snapshots = list(snapshots)
        self.looks = 0
        self.looked_often = asyncio.Event()

    def snapshot(self) -> SchedulerSnapshot:
        self.looks += 1
        if self.looks == 3:
            self.looked_often.set()
        seen = self.snapshots.pop(0) if len(self.snapshots) > 1 else self.snapshots[0]
        if isinstance(seen, Exception):
            raise seen
        return seen


def opener(coordinator: Watched) -> top_module.OpenServersScheduler:
    @asynccontextmanager
    async def opened() -> AsyncIterator[SchedulerController | None]:
        yield SchedulerController(
            SetForegroundKindUseCase(coordinator),
            SwitchModelUseCase(coordinator),
            GetSchedulerSnapshotUseCase(coordinator),
            FollowSchedulerUseCase(FixedHistory(HISTORY)),
        )

    return opened


@asynccontextmanager
async def _nobody() -> AsyncIterator[SchedulerController | None]:
    yield None


def test_ps_is_one_table_of_what_runs_and_waits(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(ps(opener(Watched(busy(250))), as_json=False))
    printed = capsys.readouterr().out
    assert "Chat c1-flow" in printed
    assert "runs" in printed
    assert "and 150 more" in printed
    assert "250 waiting" in printed
    assert "uniun top" in printed
    assert all(len(line) <= 80 for line in printed.splitlines() if "waiting." not in line)


def test_notes_and_conversations_go_by_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    async def talks(ids: list[str]) -> dict[str, str]:
        return {"c1-flow": "Bread and water"}

    @asynccontextmanager
    async def names() -> AsyncIterator[FlowNames]:
        yield FlowNames({CHAT: talks})

    asyncio.run(ps(opener(Watched(busy())), names, as_json=False))
    asyncio.run(top(opener(Watched(busy())), names))
    printed = capsys.readouterr().out
    assert printed.count("Chat Bread and water") == 2
    assert "c1-flow" not in printed
    assert "Gana g1-flow" in printed


def test_ps_of_an_idle_server(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(ps(opener(Watched(IDLE)), as_json=False))
    first, _ = capsys.readouterr().out.splitlines()
    assert first == f"Nothing runs, and nobody waits. {IDLE.resident} is in memory."


def test_ps_tells_of_a_model_that_was_removed_while_it_was_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(ps(opener(Watched(IDLE)), as_json=False, installed=lambda: {"another"}))
    assert "smollm2-135m is removed; it stays in memory until" in " ".join(capsys.readouterr().out.split())
    asyncio.run(ps(opener(Watched(IDLE)), as_json=False, installed=lambda: {"smollm2-135m"}))
    assert "removed" not in capsys.readouterr().out


def test_a_single_question_has_no_name_to_look_up(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    async def talks(ids: list[str]) -> dict[str, str]:
        asked.extend(ids)
        return {}

    @asynccontextmanager
    async def names() -> AsyncIterator[FlowNames]:
        yield FlowNames({CHAT: talks})

    question = job("c1", CHAT, 0, 0).model_copy(update={"flow": f"{ONE_QUESTION}db74749e4011a1"})
    asyncio.run(ps(opener(Watched(IDLE.model_copy(update={"running": question}))), names, as_json=False))
    assert "Chat a single question" in capsys.readouterr().out
    assert not any(each.startswith(ONE_QUESTION) for each in asked)


@pytest.mark.parametrize(
    ("waiting", "words"), [(0, "Nothing else wants the model."), (1, "It has had the least")]
)
def test_who_has_had_the_least_is_told_only_where_somebody_else_waits(waiting: int, words: str) -> None:
    reason = "smallest vruntime; nothing to do for the resident model"
    assert why_now(busy(waiting).model_copy(update={"last_reason": reason})).startswith(words)


@pytest.mark.parametrize("state", [IDLE, busy()])
def test_ps_folds_at_words_on_a_narrow_terminal(
    state: SchedulerSnapshot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    asyncio.run(ps(opener(Watched(state)), as_json=False, installed=set))
    lines = Text.from_ansi(capsys.readouterr().out).plain.splitlines()
    assert len(lines) > 4
    assert all(len(line.rstrip()) <= 60 for line in lines)


def test_ps_tells_how_far_the_reading_of_notes_is(capsys: pytest.CaptureFixture[str]) -> None:
    library = MemoryLibrary()
    faces = fake_openers(library=library)

    async def look() -> None:
        await ps(opener(Watched(IDLE)), open_library=faces.library, as_json=False)
        for name in "ab":
            await library.write(name, name, "Text.")
        await library.read("a", "Said.")
        for snapshot in (IDLE, busy()):
            await ps(opener(Watched(snapshot)), open_library=faces.library, as_json=False)

    asyncio.run(look())
    assert capsys.readouterr().out.count("1 of 2 notes read into the graph, 1 waits.\n") == 2


def test_ps_does_without_a_database_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    @asynccontextmanager
    async def locked() -> AsyncIterator[Library]:
        raise DatabaseError("The database is locked.")
        yield  # a generator

    asyncio.run(ps(opener(Watched(IDLE)), open_library=locked, as_json=False))
    assert "Nothing runs" in capsys.readouterr().out


def test_ps_as_json_is_the_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(ps(opener(Watched(busy())), as_json=True))
    assert SchedulerSnapshot.model_validate(json.loads(capsys.readouterr().out)) == busy()


def test_without_a_server_both_say_how_to_start_one() -> None:
    for command in (ps(_nobody, as_json=False), top(_nobody)):
        with pytest.raises(NoServer, match="uniun serve"):
            asyncio.run(command)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20), (60, 24), (140, 50)])
@pytest.mark.parametrize("snapshot", [busy(), busy(10_000), IDLE], ids=["busy", "flood", "idle"])
def test_the_screen_fits(width: int, height: int, snapshot: SchedulerSnapshot) -> None:
    console = Console(width=width, height=height, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(screen(snapshot, HISTORY, width, height))
    lines = console.export_text().splitlines()
    assert len(lines) <= height
    assert all(len(line.rstrip()) <= width for line in lines)
    text = "\n".join(lines)
    assert "UNIUN" in text
    assert "at most 60% while others wait" in text
    if snapshot.queued:
        assert "more" in text or sum(snapshot.queued.values()) <= 3
        first = next(line for line in lines if "Gana g1-flow " in line)
        assert ("Fair turns" in first) == (width >= 72)
    else:
        assert "Nobody waits." in text
    if height >= 24 or snapshot is IDLE:
        assert "…" not in text, "what is too long goes on below"
    if height >= 24:
        assert "made way for Chat" in text
        assert "^" in text


def test_top_prints_once_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    watched = Watched(busy())
    asyncio.run(top(opener(watched)))
    assert watched.looks == 1
    assert "Chat c1-flow" in capsys.readouterr().out


def test_top_redraws_on_a_terminal_until_q_and_leaves_it_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_module, "PERIOD_S", 0.01)
    shown = on_terminal(monkeypatch, Watched(busy(), IDLE), keys=b"xq")
    assert "Chat c1-flow" in shown
    assert "Nobody waits." in shown
    assert "\x1b[?1049l" in shown


def test_ctrl_c_leaves_it_as_q_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_module, "PERIOD_S", 0.01)
    shown = on_terminal(monkeypatch, Watched(busy(), IDLE), keys=None)
    assert "\x1b[?1049l" in shown
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_lost_server_ends_it_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_module, "PERIOD_S", 0.01)
    with pytest.raises(ServerLost):
        on_terminal(monkeypatch, Watched(busy(), ServerLost("The server has ended.")), keys=b"")


def on_terminal(monkeypatch: pytest.MonkeyPatch, watched: Watched, keys: bytes | None) -> str:
    """Runs `top` on a terminal of its own; the keys, or Ctrl-C, are typed when it has looked three times."""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while piece := os.read(ours, 65_536):
                shown.append(piece)
        except OSError:
            return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with os.fdopen(theirs, "r+b", buffering=0), os.fdopen(os.dup(theirs), "r") as typed:
            monkeypatch.setattr("sys.stdin", typed)
            with os.fdopen(os.dup(theirs), "w") as output:
                screen = Console(file=output, force_terminal=True, width=80, height=24, markup=False)
                monkeypatch.setattr(top_module, "out", lambda: screen)

                async def main() -> None:
                    watching = asyncio.ensure_future(top(opener(watched)))
                    enough = asyncio.ensure_future(watched.looked_often.wait())
                    await asyncio.wait((watching, enough), timeout=120, return_when=asyncio.FIRST_COMPLETED)
                    enough.cancel()
                    if keys is None:
                        signal.raise_signal(signal.SIGINT)
                    else:
                        os.write(ours, keys)
                    await asyncio.wait_for(watching, 120)

                asyncio.run(main())
    finally:
        # The program's ends are all closed: what it wrote is read to its last byte before ours is.
        reader.join(120)
        os.close(ours)
    return b"".join(shown).decode()
