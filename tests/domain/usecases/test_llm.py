import asyncio
from typing import Any

import pytest

from domain.entities.api import ApiClient, ApiJob
from domain.entities.llm import GenerationEvent, LlmTaskKind, Message, Sampling
from domain.errors import EngineError, InvalidRequest, UnknownModel
from domain.usecases.api import SubmitApiJobUseCase
from domain.usecases.llm import GenerateOneShotUseCase, SendChatStreamUseCase, answer_tokens
from tests.fakes import HOLD, MemoryStore, ScriptedCoordinator, answer

QUESTION = (Message(role="user", content="Hello?"),)


def test_a_chat_job_is_of_its_conversation_on_the_default_model() -> None:
    coordinator = ScriptedCoordinator()
    SendChatStreamUseCase(coordinator, MemoryStore("tiny"))("talk", QUESTION)
    request = coordinator.requests[0]
    assert (request.kind, request.flow, request.model) == (LlmTaskKind.CHAT, "talk", "tiny")
    assert request.messages == QUESTION
    assert request.max_tokens == 512  # a quarter of the context
    assert request.thinking


RECOMMENDED = Sampling(temperature=0.6, top_p=0.95, top_k=20)


@pytest.mark.parametrize(
    ("recommended", "wanted", "drawn"),
    [
        (None, None, Sampling()),
        (None, Sampling(top_p=0.5), Sampling(top_p=0.5)),
        (RECOMMENDED, None, RECOMMENDED),
        (RECOMMENDED, Sampling(seed=7), RECOMMENDED.model_copy(update={"seed": 7})),
        (RECOMMENDED, Sampling(temperature=0.0), RECOMMENDED.model_copy(update={"temperature": 0.0})),
    ],
)
def test_what_was_not_said_of_drawing_is_as_the_makers_recommend(
    recommended: Sampling | None, wanted: Sampling | None, drawn: Sampling
) -> None:
    store, coordinator = MemoryStore("tiny"), ScriptedCoordinator()
    store.sampling = recommended
    SendChatStreamUseCase(coordinator, store)("talk", QUESTION, sampling=wanted)
    GenerateOneShotUseCase(coordinator, store).submit(LlmTaskKind.GANA, "g", QUESTION, sampling=wanted)
    SubmitApiJobUseCase(coordinator, store)(
        ApiJob(messages=QUESTION, sampling=wanted or Sampling()), ApiClient()
    )
    assert [request.sampling for request in coordinator.requests] == [drawn] * 3


@pytest.mark.parametrize(
    ("context", "tokens"), [(1, 1), (2_048, 512), (8_192, 1_024), (20_480, 2_048), (262_144, 4_096)]
)
def test_the_larger_the_context_the_longer_an_answer_may_be(context: int, tokens: int) -> None:
    assert answer_tokens(context) == tokens


def test_a_long_conversation_is_cut_to_the_models_context() -> None:
    coordinator = ScriptedCoordinator()
    long = [Message(role="user", content=f"{n}" + "x" * 600) for n in range(100)]
    SendChatStreamUseCase(coordinator, MemoryStore("tiny"))("talk", long)
    sent = coordinator.requests[0].messages
    assert 1 < len(sent) < 10
    assert sent[-1] == long[-1]


def test_an_absent_model_is_refused_before_anything_is_queued() -> None:
    coordinator = ScriptedCoordinator()
    with pytest.raises(UnknownModel):
        SendChatStreamUseCase(coordinator, MemoryStore())("talk", QUESTION)
    assert not coordinator.requests


def test_one_shot_tells_every_event_and_returns_the_result() -> None:
    coordinator = ScriptedCoordinator(answer("a", "b"))
    seen: list[GenerationEvent] = []
    generate = GenerateOneShotUseCase(coordinator, MemoryStore("tiny"))
    result = asyncio.run(
        generate(LlmTaskKind.GANA, "g", QUESTION, on_event=seen.append, json_schema={"type": "object"})
    )
    assert result.text == "ab"
    assert [event.type for event in seen] == ["text", "text", "finished"]
    assert coordinator.requests[0].json_schema == {"type": "object"}


def test_cancelling_a_one_shot_cancels_its_job() -> None:
    coordinator = ScriptedCoordinator([HOLD])

    async def scenario() -> None:
        generate = GenerateOneShotUseCase(coordinator, MemoryStore("tiny"))
        task = asyncio.create_task(generate(LlmTaskKind.CHAT, "c", QUESTION))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert coordinator.jobs[0].cancelled.is_set()


def test_half_a_character_is_refused_before_the_engine_chokes_on_it() -> None:
    generate = GenerateOneShotUseCase(ScriptedCoordinator(), MemoryStore("tiny"))
    with pytest.raises(InvalidRequest, match="Character 3"):
        asyncio.run(generate(LlmTaskKind.CHAT, "c", [Message(role="user", content="ab\udcff")]))


def test_a_job_that_ends_without_an_answer_is_an_error() -> None:
    generate = GenerateOneShotUseCase(ScriptedCoordinator(answer("a")[:1]), MemoryStore("tiny"))
    with pytest.raises(EngineError, match="without an answer"):
        asyncio.run(generate(LlmTaskKind.CHAT, "c", QUESTION))


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (" ", {}, "the prompt is empty"),
        ("hello", {"max_tokens": 0}, "max_tokens: it should be greater than or equal to 1"),
        ("hello", {"stop": ("",)}, "stop.0: it is empty"),
    ],
)
def test_a_bad_request_is_refused_in_one_sentence(text: str, options: dict[str, Any], reason: str) -> None:
    generate = GenerateOneShotUseCase(ScriptedCoordinator(), MemoryStore("tiny"))
    with pytest.raises(InvalidRequest) as refused:
        asyncio.run(generate(LlmTaskKind.CHAT, "c", [Message(role="user", content=text)], **options))
    assert str(refused.value) == f"The request was refused: {reason}."
