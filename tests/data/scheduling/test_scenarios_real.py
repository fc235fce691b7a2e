"""Scenarios 1, 2, 4, 6 and 7 of the design note, on the real engine with a real model."""

import asyncio
import itertools
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from data.clock import SystemClock
from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from data.models.store import FileModelStore
from data.scheduling.config import SchedulerConfig
from data.scheduling.dispatcher import Dispatcher
from data.scheduling.events import Record
from data.scheduling.handle import CallerHandle
from domain.entities.llm import GenerationRequest, LlmTaskKind, Sampling, TextDelta
from domain.entities.models import InstalledModel

pytestmark = pytest.mark.model

CHAT, EXTRACT, NATARAJ, GANA = LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA


class Stage:
    """A dispatcher on the real engine, and its trace."""

    def __init__(self, dispatcher: Dispatcher, runner: EngineRunner) -> None:
        self.dispatcher = dispatcher
        self.runner = runner
        self.records: list[Record] = []
        self._news = asyncio.Event()
        dispatcher.observe(self._note)

    def _note(self, record: Record) -> None:
        self.records.append(record)
        self._news.set()

    def submit(
        self, kind: LlmTaskKind, flow: str, tokens: int, model: str = "X", **more: object
    ) -> CallerHandle:
        fields: dict[str, object] = {
            "kind": kind,
            "flow": flow,
            "model": model,
            "prompt": f"A story for {flow}. Once upon a time there was",
            "sampling": Sampling(temperature=0.8, seed=7),
            "max_tokens": tokens,
            **more,
        }
        return self.dispatcher.submit(GenerationRequest.model_validate(fields))

    async def sees(self, event: str, job: str | None = None) -> Record:
        """Waits for such a record."""
        while True:
            for record in self.records:
                if record.event == event and job in (None, record.fields.get("job")):
                    return record
            self._news.clear()
            await self._news.wait()

    async def produces(self, handle: CallerHandle, tokens: int) -> None:
        """Waits until the job has so many tokens, and lets it go on."""
        view = self.dispatcher.snapshot().running
        while view is None or view.id != handle.id or view.tokens_done < tokens:
            await asyncio.sleep(0)
            view = self.dispatcher.snapshot().running

    def story(self, *events: str) -> list[tuple[str, str]]:
        return [(r.event, str(r.fields["job"])) for r in self.records if r.event in events]


@pytest.fixture
def play(smollm2: InstalledModel, tmp_path: Path) -> Callable[..., None]:
    """Runs a scene on two names for the real model; longer than five minutes is a failure."""
    assert smollm2.gguf_path is not None
    store = FileModelStore(tmp_path / "store", SystemClock())
    for name in ("X", "Y"):
        store.register(name, smollm2.gguf_path)

    def run(scene: Callable[[Stage], Awaitable[None]], config: SchedulerConfig | None = None) -> None:
        async def main() -> None:
            clock = SystemClock()
            options = EngineOptions(backend="llama.cpp", context_tokens=2048)
            runner = EngineRunner(store, options, clock)
            async with Dispatcher(runner, store, clock, config) as dispatcher:
                await asyncio.wait_for(scene(Stage(dispatcher, runner)), 300)

        asyncio.run(main())

    return run


def test_1_a_chat_starts_within_a_boundary_and_nataraj_resumes(play: Callable[..., None]) -> None:
    alone: list[str] = []

    async def uninterrupted(stage: Stage) -> None:
        alone.append((await stage.submit(NATARAJ, "deck", 60).result()).text)

    async def scene(stage: Stage) -> None:
        deck = stage.submit(NATARAJ, "deck", 60)
        await stage.produces(deck, 10)
        chat = stage.submit(CHAT, "conversation", 10)
        answer, card = await chat.result(), await deck.result()
        stopped = await stage.sees("stopped", deck.id)
        asked = next(r for r in stage.records if r.event == "submit" and r.fields["job"] == chat.id)
        at_request = 10
        assert stopped.fields["tokens_done"] >= at_request
        assert stage.story("preempt", "stopped", "dispatch", "finish") == [
            ("dispatch", deck.id),
            ("preempt", deck.id),
            ("stopped", deck.id),
            ("dispatch", chat.id),
            ("finish", chat.id),
            ("dispatch", deck.id),
            ("finish", deck.id),
        ]
        assert asked.t <= stopped.t
        assert answer.usage.completion_tokens == 10
        assert card.preemptions == 1
        assert card.text == alone[0]

    play(uninterrupted)
    play(scene)


def test_2_two_ganas_alternate_slice_by_slice(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        # The load is charged to whoever causes it; a chat's account is not one of the pool's.
        await stage.submit(CHAT, "first", 1).result()
        stage.records.clear()
        ganas = [stage.submit(GANA, flow, 80) for flow in ("a", "b")]
        answers = [await gana.result() for gana in ganas]
        assert all(answer.preemptions >= 1 for answer in answers)
        dispatched = [job for _, job in stage.story("dispatch")]
        both_wait = dispatched[: 2 * min(answer.preemptions for answer in answers)]
        assert all(left != right for left, right in itertools.pairwise(both_wait))

    play(scene, SchedulerConfig(fair_slice_s=0.15))


def test_4_opening_the_deck_hoists_it_over_a_running_gana(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        gana = stage.submit(GANA, "g", 80)
        await stage.produces(gana, 3)
        deck = stage.submit(NATARAJ, "deck", 200)
        stage.dispatcher.set_foreground(NATARAJ)
        await stage.produces(deck, 3)
        assert (await stage.sees("preempt", gana.id)).fields["by"] == deck.id
        assert (await stage.sees("dispatch", deck.id)).fields["tier"] == 1
        deck.cancel()
        stage.dispatcher.set_foreground(None)
        assert (await gana.result()).usage.completion_tokens == 80

    play(scene)


def test_6_work_for_the_resident_model_goes_first_and_the_foreign_gana_waits_for_linger(
    play: Callable[..., None],
) -> None:
    async def scene(stage: Stage) -> None:
        chat = stage.submit(CHAT, "conversation", 20)
        foreign = stage.submit(GANA, "y", 10, model="Y")
        local = stage.submit(GANA, "x", 10)
        await chat.result()
        await local.result()
        await foreign.result()
        order = [job for _, job in stage.story("dispatch")]
        assert order == [chat.id, local.id, foreign.id]
        ended = (await stage.sees("finish", chat.id)).t
        swap = [r for r in stage.records if r.event == "swap_start"][1]
        first = next(r for r in stage.records if r.event == "swap_end")
        assert swap.fields["trigger"] == foreign.id
        assert swap.t >= ended + 2 * first.fields["seconds"] - 1e-6

    play(scene)


def test_7_an_opened_note_is_read_before_the_deck(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        deck = stage.submit(NATARAJ, "deck", 100)
        await stage.produces(deck, 3)
        stage.dispatcher.set_foreground(EXTRACT, "note-7")
        backfill = stage.submit(EXTRACT, "note-1", 10)
        opened = stage.submit(EXTRACT, "note-7", 10, foreground_hint=True)
        await opened.result()
        assert (await stage.sees("preempt", deck.id)).fields["by"] in (backfill.id, opened.id)
        assert (await stage.sees("dispatch", opened.id)).fields["tier"] == 1
        await backfill.result()
        assert [job for _, job in stage.story("finish")][:2] == [opened.id, backfill.id]
        await deck.result()

    play(scene)


def test_the_stream_equals_the_answer(play: Callable[..., None]) -> None:
    async def scene(stage: Stage) -> None:
        handle = stage.submit(CHAT, "stream", 30)
        text, result = [], None
        async for event in handle.events():
            if isinstance(event, TextDelta):
                text.append(event.text)
            result = event
        assert result is not None
        assert result.type == "finished"
        assert "".join(text) == result.result.text

    play(scene)


@pytest.mark.parametrize("phase", ["load", "prefill", "decode", "idle"])
def test_an_answer_arrives_equal_although_the_engine_is_killed(play: Callable[..., None], phase: str) -> None:
    texts: list[str] = []
    prompt = "The first line of a long tale about a lighthouse and its keeper. " * 12

    async def uninterrupted(stage: Stage) -> None:
        texts.append((await stage.submit(CHAT, "c", 24, prompt=prompt).result()).text)

    async def scene(stage: Stage) -> None:
        if phase == "idle":
            await stage.submit(NATARAJ, "deck", 1).result()
            kill(stage.runner)
        chat = stage.submit(CHAT, "c", 24, prompt=prompt)
        waiting = stage.submit(GANA, "g", 4)
        if phase == "load":
            for _ in range(1_000_000):
                await asyncio.sleep(0)
                if stage.runner.pid is not None:
                    break
            kill(stage.runner)
        elif phase != "idle":
            killed = False
            async for event in chat.events():
                if not killed and event.type == ("prefilling" if phase == "prefill" else "text"):
                    killed = True
                    kill(stage.runner)
                if event.type == "finished":
                    texts.append(event.result.text)
            assert killed
        if phase in ("load", "idle"):
            texts.append((await chat.result()).text)
        assert (await waiting.result()).usage.completion_tokens == 4

    play(uninterrupted)
    play(scene)
    assert texts[0] == texts[1]


def kill(runner: EngineRunner) -> None:
    """As the system's out-of-memory killer would."""
    assert runner.pid is not None
    os.kill(runner.pid, signal.SIGKILL)
