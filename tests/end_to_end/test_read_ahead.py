"""What is read while the user types need not be read when the question is sent: on the real engine."""

import asyncio
from pathlib import Path

import pytest

import uniun
from data.models.store import FileModelStore
from domain.entities.llm import Finished, Usage
from presentation.controllers.chat import ChatController
from tests.conftest import TEST_STORE

STORY = "Once there was a miller who had three sons, a mill, a donkey and a cat. " * 12
LAST = "And then?"


@pytest.fixture
def data_dir(model_store: FileModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").symlink_to(TEST_STORE / "models")
    monkeypatch.setenv("UNIUN_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("UNIUN_LOG_DIR", str(tmp_path / "logs"))


async def send(chat: ChatController, text: str) -> Usage:
    usage: Usage | None = None
    async for event in chat.send(text):
        if isinstance(event, Finished):
            usage = event.result.usage
    assert usage is not None
    return usage


@pytest.mark.model
def test_sending_costs_only_the_new_text(data_dir: None) -> None:
    async def main() -> None:
        async with uniun.open_controllers() as program:
            told = program.chat(None, None)
            await told.begin()
            await send(told, f"{STORY} Answer with one word.")
            conversation = told.conversation.id
        # A new process has nothing of it in its cache.
        async with uniun.open_controllers() as program:
            chat = program.chat(None, None)
            await chat.open(conversation)
            await chat.read_ahead()
            usage = await send(chat, LAST)
            new = usage.prompt_tokens - usage.cached_tokens
            assert usage.prompt_tokens > 200
            # The question, and the marks of its turn and of the answer's.
            assert new < 30

    asyncio.run(main())


@pytest.mark.model
def test_an_answer_and_a_user_who_leaves_stop_it(data_dir: None) -> None:
    async def main() -> None:
        async with uniun.open_controllers() as program:
            chat = program.chat(None, None)
            await chat.begin()
            reading = asyncio.create_task(chat.read_ahead())
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            usage = await send(chat, "Answer with one word: what colour is snow?")
            assert usage.completion_tokens >= 1

    asyncio.run(main())
