"""Answers that belong to no page, why they wait, what is read ahead, and where branches stand in their picture."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from data.scheduling.inspection import snapshot as snapshot_of
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.conversation import AnswerUnkept, ChatMessage
from domain.entities.llm import LlmTaskKind, Preempted, Prefilling, TextDelta, Waiting
from domain.entities.scheduler import JobView, SchedulerSnapshot
from domain.errors import EngineError, InvalidRequest
from presentation.controllers.chat import ChatController
from presentation.web.changes import Changes
from presentation.web.chat_tree import place
from presentation.web.live_answers import PUSH_S, LiveAnswer, LiveAnswers, Pusher
from presentation.web.read_ahead import AGAIN_S, ReadAhead
from presentation.web.waiting import OtherChat, waiting_words
from tests.fakes import HOLD, MemoryStore, ScriptedCoordinator, Step, answer
from tests.memory.chat import MemoryChat


class Desk:
    """A chat over a scripted model, and the answers that are being written."""

    def __init__(self, *scripts: list[Step]) -> None:
        self.coordinator = ScriptedCoordinator(*scripts)
        self.world = MemoryChat(self.coordinator, MemoryStore("tiny"))
        self.chat = ChatController(self.world.use_cases)
        self.answers = LiveAnswers(Changes(), asyncio.get_running_loop().time)

    async def ended(self, live: LiveAnswer) -> None:
        async with asyncio.timeout(120):
            done = asyncio.Event()
            live.watch(lambda first: done.set() if live.ended else None)
            if not live.ended:
                await done.wait()


async def until(condition: Callable[[], bool]) -> None:
    """Gives way until it holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def play(scene: Callable[[Desk], Awaitable[None]], *scripts: list[Step]) -> None:
    async def main() -> None:
        desk = Desk(*scripts)
        await desk.chat.begin()
        await scene(desk)

    asyncio.run(main())


def test_an_answer_goes_on_when_its_page_shows_another_conversation() -> None:
    async def scene(desk: Desk) -> None:
        live = desk.answers.send(desk.chat, "Hello?")
        assert desk.answers.of(desk.chat.conversation.id) is live
        await desk.chat.begin()
        await desk.ended(live)
        assert live.text == "All of it."
        assert desk.answers.of(live.conversation_id) is None
        view = await desk.chat.open(live.conversation_id)
        assert [shown.message.content for shown in view.path] == ["Hello?", "All of it."]

    play(scene, answer("All ", "of ", "it."))


def test_a_conversation_has_one_answer_at_a_time() -> None:
    async def scene(desk: Desk) -> None:
        live = desk.answers.send(desk.chat, "Hello?")
        with pytest.raises(InvalidRequest, match="on its way"):
            desk.answers.send(desk.chat, "And?")
        await until(lambda: bool(live.text))
        desk.answers.stop(live.conversation_id)
        await desk.ended(live)
        assert live.error is None

    play(scene, [*answer("Half")[:1], HOLD])


def test_changes_are_told_at_once_and_then_not_too_often() -> None:
    async def scene(desk: Desk) -> None:
        live = desk.answers.send(desk.chat, "Hello?")
        told: list[int] = []
        live.watch(told.append)
        await desk.ended(live)
        assert live.text == "".join(words)
        assert len(told) < 50

    words = [f"word{number} " for number in range(500)]
    play(scene, answer(*words))
    assert PUSH_S < 0.05


def test_text_is_rendered_when_it_is_shown_and_not_at_every_token() -> None:
    live = LiveAnswer("c", "Hello?", None, 0.0)
    firsts: list[int] = []
    live.watch(firsts.append)
    for word in ("One.", "\n\n", "Tw"):
        live.take(TextDelta(text=word, tokens=1))
    assert live.markdown.blocks == []
    live.show()
    live.take(TextDelta(text="o.", tokens=1))
    live.show()
    live.show()
    assert [block.strip() for block in live.markdown.blocks] == ["<p>One.</p>", "<p>Two.</p>"]
    assert firsts == [0, 1, 2]


@pytest.mark.parametrize(("takes_s", "wait_s"), [(0.0, PUSH_S), (0.001, PUSH_S - 0.001), (0.02, 0.08)])
def test_what_takes_long_to_show_is_shown_seldom(takes_s: float, wait_s: float) -> None:
    async def main() -> None:
        loop, now, waits = asyncio.get_running_loop(), [0.0], list[float]()

        def call_later(wait: float, call: Callable[[], None]) -> asyncio.Handle:
            waits.append(wait)
            return asyncio.Handle(call, (), loop)

        def watcher(first: int) -> None:
            now[0] += takes_s

        live = LiveAnswer("c", "Hello?", None, 0.0)
        live.watch(watcher)
        pusher = Pusher(live, lambda: now[0], call_later)
        pusher.changed()
        pusher.changed()
        pusher.close()
        pusher.changed()
        assert waits == [0.0, pytest.approx(wait_s)]

    asyncio.run(main())


def test_what_ends_an_answer_is_told() -> None:
    async def scene(desk: Desk) -> None:
        live = desk.answers.send(desk.chat, "Hello?")
        await desk.ended(live)
        assert live.error == "The engine is on fire."

    play(scene, [EngineError("The engine is on fire.")])


def test_closing_stops_every_answer_and_keeps_what_there_is() -> None:
    async def scene(desk: Desk) -> None:
        keeping = asyncio.create_task(desk.answers.keep())
        live = desk.answers.send(desk.chat, "Hello?")
        await until(lambda: bool(live.text))
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        view = await desk.chat.open(live.conversation_id)
        assert view.path[-1].message.content == "Half"
        assert view.path[-1].message.state == "stopped"

    play(scene, [*answer("Half")[:1], HOLD])


def test_what_was_read_ahead_is_not_read_again_at_every_letter() -> None:
    async def scene(desk: Desk) -> None:
        now = [0.0]
        ahead = ReadAhead(desk.chat, lambda: now[0])
        for _ in range(3):
            ahead.typed()
            for _ in range(50):
                await asyncio.sleep(0)
        assert [(one.kind, one.ahead) for one in desk.coordinator.requests] == [(LlmTaskKind.CHAT, True)]
        now[0] = AGAIN_S + 1
        ahead.typed()
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(desk.coordinator.requests) == 2

    play(scene, answer("x"))


def test_sending_or_leaving_ends_the_reading() -> None:
    async def scene(desk: Desk) -> None:
        ahead = ReadAhead(desk.chat, lambda: 0.0)
        ahead.typed()
        await until(lambda: bool(desk.coordinator.jobs))
        ahead.stop()
        await until(desk.coordinator.jobs[0].cancelled.is_set)

    play(scene, [HOLD])


def snapshot(
    running: LlmTaskKind | None = None, state: str = "running", loading: str | None = None
) -> SchedulerSnapshot:
    job = None
    if running is not None:
        job = JobView.model_validate(
            {"id": "a", "kind": running, "flow": "f", "model": "m", "tier": 4, "position": 0, "state": state}
            | {"estimated_start_s": 0, "waited_s": 0, "tokens_done": 1, "service_s": 1, "preemptions": 0}
        )
    return snapshot_of(InferenceScheduler(), 0.0).model_copy(update={"running": job, "loading": loading})


@pytest.mark.parametrize(
    ("state", "seen", "words"),
    [
        (None, snapshot(), "Looking through your notes…"),
        (
            Waiting(position=1, estimated_start_s=None, reason="stopping nataraj (all)"),
            snapshot(LlmTaskKind.NATARAJ, "stopping"),
            "Stopping a deck card… 0.1 s",
        ),
        (
            Waiting(position=1, estimated_start_s=4, reason="loading qwen3-4b, 6 s of about 10 s"),
            snapshot(loading="qwen3-4b"),
            "Loading qwen3-4b… 6 s of about 10 s",
        ),
        (
            Waiting(position=3, estimated_start_s=7.2, reason="chat (b) runs"),
            snapshot(LlmTaskKind.CHAT),
            "Waiting for another chat to end… 0.1 s. Place 3 in the queue. About 7 s more.",
        ),
        (
            Prefilling(done_tokens=30, total_tokens=120),
            snapshot(),
            "Reading the question and its notes… 25 %",
        ),
        (
            Waiting(position=201, at_least=True, estimated_start_s=None, reason="chat (b) runs"),
            snapshot(LlmTaskKind.CHAT),
            "Waiting for another chat to end… 0.1 s. Place 201 or later in the queue.",
        ),
        (
            Preempted(reason="the engine was lost"),
            snapshot(),
            "Interrupted, goes on soon: the engine was lost",
        ),
        (
            AnswerUnkept(reason="It is away. See: uniun doctor"),
            snapshot(),
            "Ended, but not kept yet; this goes on by itself… It is away. “Look for problems” on the settings page "
            "says more",
        ),
    ],
)
def test_a_wait_says_why(
    state: Waiting | Prefilling | Preempted | AnswerUnkept | None, seen: SchedulerSnapshot, words: str
) -> None:
    live = LiveAnswer("c", "Hello?", None, 0.0)
    live.state = state
    assert waiting_words(live, seen, 0.1) == words


def test_a_wait_for_another_chat_names_it() -> None:
    live = LiveAnswer("c", "Hello?", None, 0.0)
    live.state = Waiting(position=1, estimated_start_s=None, reason="chat (b) runs")
    other = OtherChat("b", "How long does the starter need?", ours=True)
    words = waiting_words(live, snapshot(LlmTaskKind.CHAT), 0.1, other)
    assert words == "Waiting for the chat “How long does the start…” to end… 0.1 s."


def test_each_branch_has_a_lane_of_its_own() -> None:
    def said(name: str, parent: str | None) -> ChatMessage:
        fields = {"id": name, "conversation_id": "c", "parent_id": parent, "role": "user", "content": name}
        return ChatMessage.model_validate({**fields, "created_at": datetime(2026, 1, 1, tzinfo=UTC)})

    messages = [
        said("q", None),
        said("a", "q"),
        said("b", "q"),
        said("c", "b"),
        said("d", "a"),
        said("x", None),
    ]
    assert place(messages) == {"q": (0, 0), "a": (0, 1), "b": (1, 1), "c": (1, 2), "d": (0, 2), "x": (2, 0)}
    assert place([said("lost", "gone")]) == {"lost": (0, 0)}
