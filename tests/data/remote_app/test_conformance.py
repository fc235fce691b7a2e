"""What every `SchedulerCoordinator` does, the scheduler itself and the one of a server."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from data.clock import SystemClock
from data.scheduling.config import SchedulerConfig
from domain.entities.llm import (
    Finished,
    GenerationEvent,
    LlmTaskKind,
    Preempted,
    Prefilling,
    TextDelta,
    Waiting,
)
from domain.errors import (
    EngineError,
    JobCancelled,
    JobStopped,
    ModelDamaged,
    PromptTooLong,
    QueueFull,
    UnknownModel,
)
from tests.data.remote_app.served import Desk, play, request

CHAT, EXTRACT, NATARAJ, GANA = LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA
pytestmark = pytest.mark.parametrize("where", ["here", "server"])


def test_a_caller_sees_why_it_waits_the_prompt_being_read_text_and_the_end(
    where: str, tmp_path: Path
) -> None:
    async def scene(desk: Desk) -> None:
        desk.scheduler.submit(request(CHAT))
        await desk.running(CHAT)
        second = desk.scheduler.submit(request(CHAT, "one two three four five six seven eight", flow="g"))
        seen: list[GenerationEvent] = []

        async def read() -> None:
            async for event in second.events():
                seen.append(event)

        reader = asyncio.create_task(read())
        await desk.until(lambda: bool(seen))
        assert isinstance(seen[0], Waiting)
        assert "chat (f) runs" in seen[0].reason
        await desk.runner.step(7)
        await desk.runner.step(1)
        await desk.until(lambda: any(isinstance(event, Prefilling) for event in seen))
        await desk.runner.step(7)
        await reader
        kinds = [type(event) for event in seen if not isinstance(event, Waiting)]
        assert kinds[0] is Prefilling
        assert kinds[-1] is Finished
        text = "".join(event.text for event in seen if isinstance(event, TextDelta))
        assert isinstance(seen[-1], Finished)
        assert text == seen[-1].result.text
        assert text

    play(where, tmp_path, scene)


def test_a_chat_stops_the_deck_and_the_deck_is_told_why_and_resumes(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        deck = desk.scheduler.submit(request(NATARAJ, "a deck card"))
        told: list[Preempted] = []

        async def read() -> str:
            async for event in deck.events():
                if isinstance(event, Preempted):
                    told.append(event)
                if isinstance(event, Finished):
                    return event.result.text
            return ""

        reader = asyncio.create_task(read())
        await desk.running(NATARAJ)
        await desk.runner.step(3)
        chat = desk.scheduler.submit(request(CHAT, "hello there"))
        await desk.waiting(1)
        await desk.runner.step(1)
        await desk.running(CHAT)
        await desk.until(lambda: bool(told))
        assert told[0].reason == "chat (T0) outranks T4"
        await desk.runner.step(7)
        assert (await chat.result()).preemptions == 0
        await desk.running(NATARAJ)
        await desk.runner.step(4)
        assert await reader

    play(where, tmp_path, scene)


def test_a_cancelled_queued_job_never_starts_and_the_running_one_goes_on(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        running = desk.scheduler.submit(request(NATARAJ))
        await desk.running(NATARAJ)
        waiting = desk.scheduler.submit(request(GANA))
        await desk.waiting(1)
        waiting.cancel()
        waiting.cancel()
        with pytest.raises(JobCancelled, match=waiting.id):
            await waiting.result()
        await desk.waiting(0)
        await desk.runner.step(7)
        await running.result()
        waiting.cancel()
        assert not [call for call in desk.runner.calls if call.startswith(("run gana", "stop nataraj"))]

    play(where, tmp_path, scene)


@pytest.mark.parametrize("leave", ["cancel", "cancelled task", "broken iteration"])
def test_a_caller_that_goes_away_ends_its_job_at_the_next_boundary(
    where: str, leave: str, tmp_path: Path
) -> None:
    async def scene(desk: Desk) -> None:
        job = desk.scheduler.submit(request(CHAT))
        await desk.running(CHAT)
        if leave == "cancel":
            job.cancel()
        elif leave == "cancelled task":
            waiter = asyncio.create_task(job.result())
            await asyncio.sleep(0)
            waiter.cancel()
        else:
            await desk.runner.step(3)
            events = job.events()
            async for event in events:
                if isinstance(event, TextDelta):
                    break
            await events.aclose()  # type: ignore[attr-defined]
        await desk.until(lambda: any(call.startswith("stop chat") for call in desk.runner.calls))
        await desk.runner.step(1)
        await desk.until(lambda: desk.runner.running is None)
        await desk.until(lambda: any(call.startswith("forget chat") for call in desk.runner.calls))

    play(where, tmp_path, scene)


def test_what_the_engine_refuses_reaches_the_caller_as_it_is(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        job = desk.scheduler.submit(request(CHAT, "word " * 5_000))
        with pytest.raises(PromptTooLong) as refused:
            await job.result()
        assert refused.value.prompt_tokens == 5_000
        assert refused.value.context_tokens == 4096
        desk.runner.load_errors["Y"] = ModelDamaged("weights.bin is damaged")
        with pytest.raises(ModelDamaged, match=r"weights\.bin"):
            await desk.scheduler.submit(request(CHAT, model="Y")).result()

    play(where, tmp_path, scene)


def test_a_forced_switch_ends_a_chat_with_an_error_that_says_so(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        chat = desk.scheduler.submit(request(CHAT))
        await desk.running(CHAT)
        switch = asyncio.create_task(desk.scheduler.switch_model("Y", force=True))
        await desk.until(lambda: any(call.startswith("stop chat") for call in desk.runner.calls))
        await desk.runner.step(1)
        with pytest.raises(JobStopped, match="model"):
            await chat.result()
        await switch
        assert desk.runner.resident == "Y"

    play(where, tmp_path, scene)


def test_who_gives_a_switch_up_takes_it_back(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        job = desk.scheduler.submit(request(NATARAJ))
        await desk.running(NATARAJ)
        switch = asyncio.create_task(desk.scheduler.switch_model("Y"))
        await desk.until(lambda: bool(desk.dispatcher.snapshot().switches))
        switch.cancel()
        await desk.until(lambda: not desk.dispatcher.snapshot().switches)
        await desk.runner.step(10)
        await job.result()
        assert desk.runner.resident == "X"

    play(where, tmp_path, scene)


def test_requests_for_the_same_work_share_one_run(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        blocker = desk.scheduler.submit(request(NATARAJ))
        await desk.running(NATARAJ)
        jobs = [desk.scheduler.submit(request(EXTRACT, "the note", coalesce_key="note-1")) for _ in range(3)]
        await desk.waiting(1)
        jobs[0].cancel()
        blocker.cancel()
        await desk.runner.step(1)
        await desk.running(EXTRACT)
        await desk.runner.step(7)
        answers = [await job.result() for job in jobs[1:]]
        with pytest.raises(JobCancelled):
            await jobs[0].result()
        assert answers[0].text == answers[1].text
        assert len([call for call in desk.runner.calls if call.startswith("run extract")]) == 1

    play(where, tmp_path, scene)


def test_a_job_that_waits_for_another_starts_after_it(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        first = desk.scheduler.submit(request(NATARAJ))
        second = desk.scheduler.submit(request(CHAT, waits_for=first.id))
        await desk.running(NATARAJ)
        await desk.waiting(1)
        await desk.runner.step(7)
        await first.result()
        await desk.running(CHAT)
        await desk.runner.step(7)
        await second.result()
        after = desk.scheduler.submit(request(CHAT))
        await desk.running(CHAT)
        await desk.runner.step(7)
        await after.result()

    play(where, tmp_path, scene)


def test_a_full_queue_is_refused_with_limit_and_depth(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        desk.scheduler.submit(request(CHAT))
        await desk.running(CHAT)
        for _ in range(4):
            desk.scheduler.submit(request(GANA))
        await desk.waiting(4)
        with pytest.raises(QueueFull, match="runs of this Gana wait") as full:
            await desk.scheduler.submit(request(GANA)).result()
        assert (full.value.limit, full.value.depth, full.value.flow) == (4, 4, "gana/f")
        desk.scheduler.submit(request(CHAT))
        await desk.waiting(5)

    play(where, tmp_path, scene, SchedulerConfig(max_queued_per_flow=4))


def test_an_unknown_model_is_refused_at_once(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        with pytest.raises(UnknownModel):
            desk.scheduler.submit(request(CHAT, model="nobody"))
        with pytest.raises(UnknownModel):
            await desk.scheduler.switch_model("nobody")

    play(where, tmp_path, scene)


def test_a_deadline_in_wall_time_that_has_passed_stops_the_fair_pool(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        desk.scheduler.submit(request(NATARAJ))
        await desk.running(NATARAJ)
        late = SystemClock().now() - timedelta(seconds=1)
        desk.scheduler.submit(request(GANA, deadline=late))
        await desk.until(lambda: any(call.startswith("stop nataraj") for call in desk.runner.calls))
        await desk.runner.step(1)
        await desk.running(GANA)

    play(where, tmp_path, scene)


def test_the_snapshot_and_what_is_looked_at(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        desk.scheduler.submit(request(NATARAJ, flow="deck"))
        await desk.running(NATARAJ)
        desk.scheduler.submit(request(GANA, flow="g"))
        await desk.waiting(1)
        desk.scheduler.set_foreground(GANA, "g")
        await desk.until(lambda: desk.dispatcher.snapshot().foreground == (GANA, "g"))
        view = await asyncio.to_thread(desk.scheduler.snapshot)
        assert view.foreground == (GANA, "g")
        assert view.running is not None
        assert view.running.flow == "deck"
        assert [job.flow for jobs in view.tiers.values() for job in jobs] == ["g"]
        desk.scheduler.set_foreground(None)
        await desk.until(lambda: desk.dispatcher.snapshot().foreground is None)

    play(where, tmp_path, scene)


def test_closing_ends_every_job(where: str, tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        jobs = [desk.scheduler.submit(request(CHAT)) for _ in range(2)]
        await desk.running(CHAT)
        await desk.scheduler.__aexit__(None, None, None)  # type: ignore[attr-defined]
        for job in jobs:
            with pytest.raises(JobCancelled, match="closing"):
                await job.result()
        with pytest.raises(EngineError, match="closing"):
            desk.scheduler.submit(request(CHAT))

    play(where, tmp_path, scene)
