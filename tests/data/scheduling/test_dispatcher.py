"""The dispatcher over a fake engine: what callers see when jobs run, give way, fail or go away."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from data.clock import SystemClock
from data.inference.fake import FakeRunner
from data.scheduling.config import SchedulerConfig
from data.scheduling.dispatcher import Dispatcher
from data.scheduling.events import Record
from domain.entities.llm import (
    Finished,
    GenerationEvent,
    GenerationRequest,
    LlmTaskKind,
    Preempted,
    Prefilling,
    TextDelta,
    Waiting,
)
from domain.entities.models import InstalledModel
from domain.errors import (
    EngineError,
    JobCancelled,
    JobStopped,
    ModelDamaged,
    PromptTooLong,
    QueueFull,
    UnknownModel,
)

CHAT, EXTRACT, NATARAJ, GANA = LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA


class Shelf:
    """A model store with names only."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def get(self, name: str) -> InstalledModel:
        if name not in self._names:
            raise UnknownModel(f"No model named {name!r}.")
        return InstalledModel(name=name, source="test", size_bytes=1, gguf_path=Path("x.gguf"))


class HandClock(SystemClock):
    """Durations are moved by hand."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Desk:
    """A dispatcher on a fake engine that goes on boundary by boundary."""

    def __init__(
        self, *, config: SchedulerConfig | None = None, stepped: bool = True, answer_tokens: int = 6
    ) -> None:
        self.runner = FakeRunner(("X", "Y"), stepped=stepped, answer_tokens=answer_tokens)
        shelf = Shelf("X", "Y", "absent")
        self.clock = HandClock()
        self.dispatcher = Dispatcher(self.runner, shelf, self.clock, config)  # type: ignore[arg-type]
        self.records: list[Record] = []
        self.dispatcher.observe(self.records.append)

    def events(self, *names: str) -> list[tuple[str, str]]:
        return [(r.event, r.fields["job"]) for r in self.records if r.event in names]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Gives way until the condition holds; a bug shows as an error, not as a hang."""
        for _ in range(2_000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError(f"it never came to that; the engine was asked {list(self.runner.calls)}")

    async def running(self, job_id: str) -> None:
        await self.until(lambda: self.runner.running == job_id)


def request(
    kind: LlmTaskKind, text: str = "say something kind", model: str = "X", **more: object
) -> GenerationRequest:
    fields: dict[str, object] = {"kind": kind, "flow": "f", "model": model, "prompt": text, **more}
    return GenerationRequest.model_validate(fields)


def play(scene: Callable[[Desk], Awaitable[None]], **desk: object) -> None:
    async def main() -> None:
        stage = Desk(**desk)  # type: ignore[arg-type]
        async with stage.dispatcher:
            await asyncio.wait_for(scene(stage), 20)
        assert stage.runner.closed

    asyncio.run(main())


async def _alone(prompt: str, kind: LlmTaskKind) -> str:
    desk = Desk(stepped=False)
    async with desk.dispatcher:
        return (await desk.dispatcher.submit(request(kind, prompt)).result()).text


def test_it_tells_whether_somebody_waits_for_what_runs() -> None:
    async def scene(desk: Desk) -> None:
        assert not desk.dispatcher.somebody_waits
        deck = desk.dispatcher.submit(request(NATARAJ, "a deck card"))
        await desk.running(deck.id)
        assert not desk.dispatcher.somebody_waits
        desk.dispatcher.set_foreground(NATARAJ)
        assert desk.dispatcher.somebody_waits
        desk.dispatcher.set_foreground(None)
        chat = desk.dispatcher.submit(request(CHAT, "hello there"))
        assert not desk.dispatcher.somebody_waits, "it is the deck's turn until it stops"
        await desk.runner.step(1)
        await desk.running(chat.id)
        assert desk.dispatcher.somebody_waits
        await desk.runner.step(7)
        await chat.result()
        await desk.running(deck.id)
        assert not desk.dispatcher.somebody_waits
        deck.cancel()

    play(scene)


def test_a_chat_stops_the_deck_at_the_next_boundary_and_the_deck_resumes_without_losing_a_token() -> None:
    expected = asyncio.run(_alone("a deck card", NATARAJ))

    async def scene(desk: Desk) -> None:
        deck = desk.dispatcher.submit(request(NATARAJ, "a deck card"))
        await desk.running(deck.id)
        await desk.runner.step(3)
        chat = desk.dispatcher.submit(request(CHAT, "hello there"))
        await desk.runner.step(1)
        await desk.running(chat.id)
        assert desk.events("preempt", "stopped") == [("preempt", deck.id), ("stopped", deck.id)]
        await desk.runner.step(7)
        assert (await chat.result()).preemptions == 0
        await desk.running(deck.id)
        await desk.runner.step(4)
        answer = await deck.result()
        assert answer.text == expected
        assert answer.preemptions == 1

    play(scene)


def test_a_model_that_is_loaded_anew_loses_no_token_of_what_runs() -> None:
    expected = asyncio.run(_alone("hello there", CHAT))

    async def scene(desk: Desk) -> None:
        desk.dispatcher.reload()  # nothing is loaded yet
        chat = desk.dispatcher.submit(request(CHAT, "hello there"))
        await desk.running(chat.id)
        await desk.runner.step(3)
        desk.dispatcher.reload()
        desk.dispatcher.reload()
        await desk.runner.step(1)
        await desk.until(lambda: list(desk.runner.calls).count("load X") == 2)
        await desk.running(chat.id)
        await desk.runner.step(10)
        assert (await chat.result()).text == expected
        assert desk.events("preempt", "stopped") == [("preempt", chat.id), ("stopped", chat.id)]
        desk.dispatcher.reload()
        await desk.until(lambda: list(desk.runner.calls).count("load X") == 3)

    play(scene)


def test_a_caller_sees_why_it_waits_then_the_prompt_being_read_then_text_then_the_end() -> None:
    async def scene(desk: Desk) -> None:
        first = desk.dispatcher.submit(request(CHAT))
        await desk.running(first.id)
        second = desk.dispatcher.submit(request(CHAT, "one two three four five six seven eight"))
        seen: list[GenerationEvent] = []

        async def read() -> None:
            async for event in second.events():
                seen.append(event)

        reader = asyncio.create_task(read())
        await desk.until(lambda: bool(seen))
        assert isinstance(seen[0], Waiting)
        assert "chat (f) runs" in seen[0].reason
        await desk.runner.step(7)
        await desk.running(second.id)
        for _ in range(8):
            await desk.runner.step(1)
            await asyncio.sleep(0)
        await reader
        kinds = [type(event) for event in seen if not isinstance(event, Waiting)]
        assert kinds[0] is Prefilling
        assert kinds[-1] is Finished
        text = "".join(event.text for event in seen if isinstance(event, TextDelta))
        assert isinstance(seen[-1], Finished)
        assert text == seen[-1].result.text

    play(scene)


def test_a_preempted_caller_is_told_why() -> None:
    async def scene(desk: Desk) -> None:
        deck = desk.dispatcher.submit(request(NATARAJ))
        told: list[Preempted] = []

        async def read() -> None:
            async for event in deck.events():
                if isinstance(event, Preempted):
                    told.append(event)

        reader = asyncio.create_task(read())
        await desk.running(deck.id)
        chat = desk.dispatcher.submit(request(CHAT))
        await desk.runner.step(1)
        await desk.running(chat.id)
        await desk.until(lambda: bool(told))
        assert told[0].reason == "chat (T0) outranks T4"
        deck.cancel()
        with pytest.raises(JobCancelled):
            await reader

    play(scene)


def test_a_cancelled_queued_job_never_starts_and_the_running_one_goes_on() -> None:
    async def scene(desk: Desk) -> None:
        running = desk.dispatcher.submit(request(NATARAJ))
        waiting = desk.dispatcher.submit(request(NATARAJ))
        await desk.running(running.id)
        waiting.cancel()
        waiting.cancel()
        with pytest.raises(JobCancelled, match=waiting.id):
            await waiting.result()
        await desk.runner.step(7)
        await running.result()
        assert f"run {waiting.id}" not in desk.runner.calls
        assert f"stop {running.id}" not in desk.runner.calls

    play(scene)


@pytest.mark.parametrize("leave", ["cancel", "cancelled task", "broken iteration"])
def test_a_caller_that_goes_away_ends_its_running_job_at_the_next_boundary(leave: str) -> None:
    async def scene(desk: Desk) -> None:
        job = desk.dispatcher.submit(request(CHAT))
        await desk.running(job.id)
        if leave == "cancel":
            job.cancel()
        elif leave == "cancelled task":
            waiter = asyncio.create_task(job.result())
            await asyncio.sleep(0)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
        else:
            events = job.events()
            reading = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await events.aclose()  # type: ignore[attr-defined]
        await desk.runner.step(1)
        await desk.until(lambda: desk.events("cancelled") == [("cancelled", job.id)])
        assert desk.dispatcher.snapshot().running is None

    play(scene)


def test_the_running_job_resumes_from_its_tokens_when_the_engine_dies() -> None:
    expected = asyncio.run(_alone("a long answer", CHAT))

    async def scene(desk: Desk) -> None:
        for _ in range(3):
            desk.runner.lose_engine(after_boundaries=3)
        job = desk.dispatcher.submit(request(CHAT, "a long answer"))
        answer = await job.result()
        assert answer.text == expected
        assert list(desk.runner.calls).count("load X") == 2

    play(scene, stepped=False)


def test_a_job_fails_with_the_cause_when_the_engine_dies_under_it_again_and_again() -> None:
    async def scene(desk: Desk) -> None:
        def die(record: Record) -> None:
            if record.event == "dispatch":
                desk.runner.lose_engine()

        desk.dispatcher.observe(die)
        unlucky = desk.dispatcher.submit(request(CHAT))
        with pytest.raises(EngineError, match="lost 4 times, last because The fake engine was told to die"):
            await unlucky.result()
        assert list(desk.runner.calls).count(f"run {unlucky.id}") == 4

    play(scene, stepped=False)


def test_a_model_that_cannot_be_loaded_fails_its_jobs_and_nobody_else() -> None:
    async def scene(desk: Desk) -> None:
        desk.runner.load_errors["Y"] = ModelDamaged("weights.safetensors of Y is truncated. Pull it again.")
        doomed = [desk.dispatcher.submit(request(CHAT, model="Y")) for _ in range(3)]
        other = desk.dispatcher.submit(request(GANA, model="X"))
        for job in doomed:
            with pytest.raises(ModelDamaged, match=r"weights\.safetensors of Y"):
                await job.result()
        assert (await other.result()).text
        assert list(desk.runner.calls).count("load Y") == 1

    play(scene, stepped=False)


@pytest.mark.parametrize("call", ["load", "run"])
def test_an_engine_call_that_is_cancelled_from_within_ends_its_job_and_nobody_waits_for_it(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(desk: Desk) -> None:
        async def give_up(*args: object) -> None:
            raise asyncio.CancelledError

        with monkeypatch.context() as patch:
            patch.setattr(desk.runner, call, give_up)
            with pytest.raises(EngineError, match="gave up"):
                await desk.dispatcher.submit(request(CHAT)).result()
        assert (await desk.dispatcher.submit(request(CHAT)).result()).text

    play(scene, stepped=False)


def test_what_the_engine_refuses_reaches_the_caller_as_it_is() -> None:
    async def scene(desk: Desk) -> None:
        with pytest.raises(PromptTooLong, match=r"5000 tokens.*4096"):
            await desk.dispatcher.submit(request(CHAT, "word " * 5000)).result()

    play(scene, stepped=False)


def test_a_forced_switch_ends_a_chat_with_an_error_that_says_so_and_puts_others_back() -> None:
    async def scene(desk: Desk) -> None:
        chat = desk.dispatcher.submit(request(CHAT))
        await desk.running(chat.id)
        switching = asyncio.create_task(desk.dispatcher.switch_model("Y", force=True))
        await asyncio.sleep(0)
        await desk.runner.step(1)
        await switching
        with pytest.raises(JobStopped, match="forced model switch"):
            await chat.result()
        assert desk.dispatcher.snapshot().resident == "Y"
        deck = desk.dispatcher.submit(request(NATARAJ, model="Y"))
        await desk.running(deck.id)
        switching = asyncio.create_task(desk.dispatcher.switch_model("X", force=True))
        await asyncio.sleep(0)
        await desk.runner.step(1)
        await switching
        await desk.running(deck.id)
        await desk.runner.step(8)
        assert (await deck.result()).preemptions == 1

    play(scene)


def test_a_gentle_switch_waits_for_the_running_job() -> None:
    async def scene(desk: Desk) -> None:
        deck = desk.dispatcher.submit(request(NATARAJ))
        await desk.running(deck.id)
        switching = asyncio.create_task(desk.dispatcher.switch_model("Y"))
        await asyncio.sleep(0)
        assert not switching.done()
        await desk.runner.step(7)
        await deck.result()
        await switching
        await desk.dispatcher.switch_model("Y")
        assert list(desk.runner.calls).count("load Y") == 1

    play(scene)


def test_requests_for_the_same_work_share_one_run() -> None:
    async def scene(desk: Desk) -> None:
        blocker = desk.dispatcher.submit(request(NATARAJ))
        jobs = [desk.dispatcher.submit(request(EXTRACT, "the note", coalesce_key="note-1")) for _ in range(3)]
        jobs[0].cancel()
        blocker.cancel()
        answers = [await job.result() for job in jobs[1:]]
        with pytest.raises(JobCancelled):
            await jobs[0].result()
        assert answers[0].text == answers[1].text
        runs = [call for call in desk.runner.calls if call.startswith("run extract")]
        assert len(runs) == 1

    play(scene, stepped=False)


def test_a_full_queue_is_refused_with_limit_and_depth() -> None:
    async def scene(desk: Desk) -> None:
        for _ in range(4):
            desk.dispatcher.submit(request(GANA))
        with pytest.raises(QueueFull, match="runs of this Gana wait") as full:
            desk.dispatcher.submit(request(GANA))
        assert (full.value.limit, full.value.depth) == (4, 4)
        desk.dispatcher.submit(request(CHAT))

    play(scene, config=SchedulerConfig(max_queued_per_flow=4))


def test_an_unknown_model_is_refused_at_once() -> None:
    async def scene(desk: Desk) -> None:
        with pytest.raises(UnknownModel):
            desk.dispatcher.submit(request(CHAT, model="nobody"))
        with pytest.raises(UnknownModel):
            await desk.dispatcher.switch_model("nobody")

    play(scene)


def test_a_deadline_in_wall_time_that_has_passed_stops_the_fair_pool() -> None:
    async def scene(desk: Desk) -> None:
        deck = desk.dispatcher.submit(request(NATARAJ))
        await desk.running(deck.id)
        late = SystemClock().now() - timedelta(seconds=1)
        tick = desk.dispatcher.submit(request(GANA, deadline=late))
        await desk.runner.step(1)
        await desk.running(tick.id)
        assert ("preempt", deck.id) in desk.events("preempt")

    play(scene)


def test_two_ganas_take_turns_when_their_slices_are_used() -> None:
    async def scene(desk: Desk) -> None:
        jobs = [desk.dispatcher.submit(request(GANA, flow=flow)) for flow in ("a", "b")]
        for turn in range(4):
            runs, waits = jobs[turn % 2], jobs[1 - turn % 2]
            await desk.running(runs.id)
            desk.clock.seconds += 2.0**turn
            desk.dispatcher.set_foreground(None)  # timers run on the loop's clock; any event makes it look
            await desk.until(lambda job=runs: desk.runner.calls[-1] == f"stop {job.id}")  # type: ignore[misc]
            await desk.runner.step(1)
            await desk.running(waits.id)

    play(scene, config=SchedulerConfig(fair_slice_s=0))


def test_closing_ends_every_job_and_the_engine() -> None:
    async def main() -> None:
        desk = Desk()
        async with desk.dispatcher:
            jobs = [desk.dispatcher.submit(request(CHAT)) for _ in range(2)]
            await desk.running(jobs[0].id)
        for job in jobs:
            with pytest.raises(JobCancelled, match="closing"):
                await job.result()
        assert desk.runner.closed
        with pytest.raises(EngineError, match="closing"):
            desk.dispatcher.submit(request(CHAT))

    asyncio.run(main())


def test_the_snapshot_shows_the_queue_in_order_with_reasons() -> None:
    async def scene(desk: Desk) -> None:
        deck = desk.dispatcher.submit(request(NATARAJ, flow="deck"))
        await desk.running(deck.id)
        extract = desk.dispatcher.submit(request(EXTRACT, flow="note"))
        gana = desk.dispatcher.submit(request(GANA, flow="g", model="Y"))
        view = desk.dispatcher.snapshot()
        assert view.running is not None
        assert (view.running.id, view.running.state) == (deck.id, "stopping")
        assert [(tier, [job.id for job in jobs]) for tier, jobs in view.tiers.items()] == [
            (2, [extract.id]),
            (4, [gana.id]),
        ]
        assert view.last_reason == "extract (T2) outranks T4"
        assert view.tiers[4][0].estimated_start_s > view.tiers[2][0].estimated_start_s

    play(scene)
