import asyncio
from contextlib import aclosing

import pytest

from domain.entities.llm import GenerationEvent, LlmTaskKind, TextDelta
from domain.errors import EngineError, UnknownModel
from domain.usecases.llm import SendChatStreamUseCase
from domain.usecases.scheduler import SetForegroundKindUseCase
from presentation.controllers.chat import ChatController
from tests.fakes import HOLD, MemoryStore, ScriptedCoordinator, answer


def open_chat(coordinator: ScriptedCoordinator, store: MemoryStore | None = None) -> ChatController:
    send = SendChatStreamUseCase(coordinator, store or MemoryStore("tiny"))
    return ChatController(send, SetForegroundKindUseCase(coordinator), system="Be brief.")


async def collect(chat: ChatController, text: str) -> list[GenerationEvent]:
    return [event async for event in chat.send(text)]


def said(chat: ChatController) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in chat.messages]


def test_the_second_turn_carries_the_first() -> None:
    coordinator = ScriptedCoordinator(answer("One", "."), answer("Two."))
    chat = open_chat(coordinator)
    asyncio.run(collect(chat, "first"))
    asyncio.run(collect(chat, "second"))
    assert said(chat) == [
        ("system", "Be brief."),
        ("user", "first"),
        ("assistant", "One."),
        ("user", "second"),
        ("assistant", "Two."),
    ]
    assert [m.content for m in coordinator.requests[1].messages] == ["Be brief.", "first", "One.", "second"]
    assert coordinator.requests[0].flow == coordinator.requests[1].flow


def test_the_conversation_is_the_surface_while_it_is_open() -> None:
    coordinator = ScriptedCoordinator()
    with open_chat(coordinator) as chat:
        asyncio.run(collect(chat, "hello"))
        flow = coordinator.requests[0].flow
        assert coordinator.surfaces == [(LlmTaskKind.CHAT, flow)]
        chat.restart()
        asyncio.run(collect(chat, "again"))
        assert coordinator.surfaces[1] == (LlmTaskKind.CHAT, coordinator.requests[1].flow)
        assert coordinator.requests[1].flow != flow
    assert coordinator.surfaces[-1] == (None, None)


def test_a_stopped_answer_ends_quietly_and_is_kept() -> None:
    chat = open_chat(ScriptedCoordinator([*answer("Half an", " answer")[:1], HOLD]))

    async def scenario() -> None:
        async for event in chat.send("question"):
            assert isinstance(event, TextDelta)
            assert chat.answering
            asyncio.get_running_loop().call_soon(chat.cancel)

    asyncio.run(scenario())
    assert said(chat)[1:] == [("user", "question"), ("assistant", "Half an")]
    assert not chat.answering


def test_a_question_that_was_stopped_before_the_first_word_is_taken_out() -> None:
    chat = open_chat(ScriptedCoordinator([HOLD]))

    async def scenario() -> None:
        asyncio.get_running_loop().call_soon(chat.cancel)
        assert await collect(chat, "question") == []

    asyncio.run(scenario())
    assert said(chat) == [("system", "Be brief.")]


def test_a_failure_in_the_middle_is_told_and_keeps_what_was_answered() -> None:
    chat = open_chat(ScriptedCoordinator([*answer("Half")[:1], EngineError("The engine failed.")]))
    with pytest.raises(EngineError):
        asyncio.run(collect(chat, "question"))
    assert said(chat)[1:] == [("user", "question"), ("assistant", "Half")]


def test_a_refused_question_leaves_no_trace() -> None:
    chat = open_chat(ScriptedCoordinator(), MemoryStore())
    with pytest.raises(UnknownModel):
        asyncio.run(collect(chat, "question"))
    assert said(chat) == [("system", "Be brief.")]


def test_leaving_the_stream_early_cancels_the_job() -> None:
    coordinator = ScriptedCoordinator(answer("a", "b", "c"))
    chat = open_chat(coordinator)

    async def scenario() -> None:
        async with aclosing(chat.send("question")) as events:
            async for _ in events:
                break

    asyncio.run(scenario())
    assert coordinator.jobs[0].cancelled.is_set()
    assert said(chat)[1:] == [("user", "question"), ("assistant", "a")]


def test_cancelling_nothing_is_harmless() -> None:
    open_chat(ScriptedCoordinator()).cancel()
