"""Changing what the model is loaded with while it writes, with the real engine."""

import asyncio

import pytest

from data.clock import SystemClock
from data.engine_settings import EngineSettings
from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from data.models.store import FileModelStore
from data.scheduling.devices import Devices
from domain.entities.llm import GenerationRequest, LlmTaskKind, Sampling, TextDelta
from tests.conftest import TEST_STORE

MODEL = "smollm2-135m"
ASKED = GenerationRequest(
    kind=LlmTaskKind.CHAT,
    flow="f",
    model=MODEL,
    prompt="Once upon a time",
    max_tokens=60,
    sampling=Sampling(temperature=0),
)


@pytest.mark.model
@pytest.mark.usefixtures("model_store")
def test_what_it_writes_goes_on_word_for_word_with_the_new_settings() -> None:
    async def scenario() -> None:
        clock = SystemClock()
        options = EngineOptions(threads=1)
        store = FileModelStore(TEST_STORE, clock, context_limit=options.context_limit)
        runner = EngineRunner(store, options, clock)

        def no_servers(*asked: object) -> EngineRunner:
            raise AssertionError(asked)

        async with Devices(runner, no_servers, store, clock) as devices:
            settings = EngineSettings(runner, store, devices)
            expected = (await devices.submit(ASKED).result()).text
            process = runner.pid
            writing = devices.submit(ASKED)
            texts = 0
            async for event in writing.events():
                if isinstance(event, TextDelta):
                    texts += 1
                    if texts == 1:
                        settings.use(EngineOptions(threads=1, context_tokens=1024))
            result = await writing.result()
            assert (result.text, result.preemptions) == (expected, 1)
            assert (await runner.load(MODEL)).context_tokens == 1024
            assert store.get(MODEL).context_tokens == 1024
            assert runner.pid == process  # no new process was needed

    asyncio.run(scenario())
