"""How programs share the one model, through the API and its real scheduler."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from data.inference.fake import FakeRunner
from data.scheduling.config import SchedulerConfig
from domain.entities.api import ApiKey
from domain.entities.llm import GenerationRequest, LlmTaskKind, Message
from domain.repositories.inference_runner import RunnerJob
from domain.usecases.api_keys import key_hash
from tests.memory.clock import HandClock
from tests.memory.identity import CountingIdentities
from tests.presentation.api.served import Api
from tests.presentation.api.test_generation import CHAT, HELLO, _queued, on, until

FLEX = {"service_tier": "flex"}


class Diary:
    """An engine in memory that waits until it is opened, and then notes who asked for what it runs. By its own clock every
    step takes a millisecond, however busy the machine is."""

    def __init__(self, models: tuple[str, ...] = ("tiny",)) -> None:
        self.served: list[str] = []
        self.opened = asyncio.Event()
        self.clock = HandClock()
        diary = self

        class Runner(FakeRunner):
            async def run(self, job: RunnerJob, emit: Any) -> Any:
                await diary.opened.wait()
                if not diary.served or diary.served[-1] != job.cache_key:
                    diary.served.append(job.cache_key)
                return await super().run(job, emit)

            async def _boundary_allowed(self) -> None:
                await super()._boundary_allowed()
                diary.clock.run(0.001)

        self.runner = Runner(models, answer_tokens=20)


async def flood(api: Api, client: httpx.AsyncClient, user: str, count: int, **words: Any) -> list[Any]:
    tasks = [
        asyncio.create_task(client.post(CHAT, json={"messages": HELLO, "user": user, **words}))
        for _ in range(count)
    ]
    await until(lambda: _flow_size(api, f"user {user}") >= count)
    return tasks


def _flow_size(api: Api, flow: str) -> int:
    state = api.dispatcher.snapshot()
    jobs = [job for tier in state.tiers.values() for job in tier] + ([state.running] if state.running else [])
    return sum(job.flow == flow for job in jobs)


def test_two_programs_that_flood_are_served_alternately_whatever_their_number_of_requests(
    tmp_path: Path,
) -> None:
    for words in (FLEX, {}, {"priority": 3}):
        diary = Diary()

        async def test(api: Api, diary: Diary = diary, words: dict[str, Any] = words) -> None:
            async with api.client() as client:
                # It holds the engine meanwhile: what it holds it for is on its account, and on no one's of the two.
                first = await flood(api, client, "first", 1, **words)
                many = await flood(api, client, "many", 40, **words)
                few = await flood(api, client, "few", 8, **words)
                diary.clock.run(10)
                diary.opened.set()
                answers = [await task for task in first + few]
                served = diary.served[: diary.served.index("api/user few") + 15]
                assert all(answer.status_code == 200 for answer in answers)
                for task in many:
                    task.cancel()
                await asyncio.gather(*many, return_exceptions=True)
            # Runs of one and the same flow were noted once: it is a strict alternation if all eight are seen.
            assert Counter(served)["api/user few"] >= 6, served

        on(tmp_path, test, diary.runner, config=SchedulerConfig(fair_slice_s=0.0), clock=diary.clock)


def test_on_two_models_without_a_swap_for_each_request(tmp_path: Path) -> None:
    for words in (FLEX, {}):
        diary = Diary(("tiny", "other"))

        async def test(api: Api, diary: Diary = diary, words: dict[str, Any] = words) -> None:
            async with api.client() as client:
                a = await flood(api, client, "a", 20, model="tiny", **words)
                b = await flood(api, client, "b", 20, model="other", **words)
                diary.opened.set()
                answers = [await task for task in (*a, *b)]
            assert {answer.status_code for answer in answers} == {200}
            assert sum(call.startswith("load") for call in api.runner.calls) <= 4

        on(tmp_path, test, diary.runner, models=("tiny", "other"))


def test_the_users_own_chat_and_who_waits_come_first(tmp_path: Path) -> None:
    diary = Diary()

    async def test(api: Api) -> None:
        async with api.client() as client:
            batch = await flood(api, client, "batch", 3, **FLEX)
            waits = await flood(api, client, "waits", 1)
            later = await flood(api, client, "batch", 4, metadata={"foreground": "false"})
            request = GenerationRequest(
                kind=LlmTaskKind.CHAT,
                flow="talk",
                model="tiny",
                messages=(Message(role="user", content="hi"),),
            )
            chat = api.dispatcher.submit(request)
            diary.opened.set()
            await chat.result()
            await asyncio.gather(*batch, *waits, *later)
        # The first of the batch was on the device already.
        assert diary.served[:3] in (
            ["chat/talk", "api/user waits", "api/user batch"],
            ["api/user batch", "chat/talk", "api/user waits"],
        )

    on(tmp_path, test, diary.runner)


def test_a_programs_own_priorities_order_its_requests(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            await _busy(api, client)
            for priority in (9, 1, 5):
                body = {"messages": HELLO, "user": "p", "priority": priority, "model": "tiny"}
                asyncio.ensure_future(client.post(CHAT, json=body))  # noqa: RUF006 - it never ends
                expected = {9: 1, 1: 2, 5: 3}[priority]
                await until(lambda expected=expected: len(_queued(api)) == expected)  # type: ignore[misc]
            ids = _queued(api)
            assert sorted(ids, key=lambda name: int(name.split("-")[1])) == [ids[2], ids[0], ids[1]]

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True))


def test_words_for_programs_that_know_us(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            await _busy(api, client)
            metadata = {"kind": "gana", "flow": "nightly", "deadline": "0", "colour": "red"}
            asyncio.ensure_future(  # noqa: RUF006 - it never ends
                client.post(CHAT, json={"messages": HELLO, "metadata": metadata})
            )
            await until(lambda: bool(_queued(api)))
            (job,) = [job for tier in api.dispatcher.snapshot().tiers.values() for job in tier]
            assert (job.kind, job.flow) == ("gana", "nightly")
            await until(lambda: 3 in api.dispatcher.snapshot().tiers)  # its deadline has passed

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True))


def test_keep_alive_0_gives_the_memory_back(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.openai() as client:
            await client.chat.completions.create(model="tiny", messages=HELLO, extra_body={"keep_alive": -1})
            assert api.runner.resident == "tiny"
            await client.chat.completions.create(model="tiny", messages=HELLO, extra_body={"keep_alive": 0})
            await until(lambda: api.runner.resident is None)
            await client.chat.completions.create(model="tiny", messages=HELLO)
            assert api.runner.resident == "tiny"

    on(tmp_path, test)


def test_a_key_has_a_name_a_rate_and_an_end(tmp_path: Path) -> None:
    identities = CountingIdentities()
    key = ApiKey(
        id="k1", name="editor", hash=key_hash("uniun-e"), per_minute=1, created_at=identities.at, weight=2.0
    )

    async def test(api: Api) -> None:
        await api.keys.add(key)
        async with api.openai("uniun-e") as client:
            await client.chat.completions.create(model="tiny", messages=HELLO)
            with pytest.raises(openai.RateLimitError) as limited:
                await client.chat.completions.create(model="tiny", messages=HELLO)
            assert 1 <= int(limited.value.response.headers["retry-after"]) <= 61
            await client.models.list()  # costs nothing
            await api.keys.delete("k1")
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
        async with api.openai("anything") as client:
            await client.models.list()

    on(tmp_path, test, identities=identities)


def test_where_a_token_is_needed_a_key_does_too(tmp_path: Path) -> None:
    key = ApiKey(id="k1", name="editor", hash=key_hash("uniun-e"), created_at=CountingIdentities().at)

    async def test(api: Api) -> None:
        await api.keys.add(key)
        for given, status in (("uniun-e", 200), ("the-token", 200), ("other", 401), ("uniun-x", 401)):
            async with api.client() as client:
                answer = await client.get("/v1/models", headers={"Authorization": f"Bearer {given}"})
                assert answer.status_code == status, given

    on(tmp_path, test, token="the-token")


async def _busy(api: Api, client: httpx.AsyncClient) -> None:
    """Somebody whom nobody outranks is on the device."""
    asyncio.ensure_future(  # noqa: RUF006 - it never ends
        client.post(CHAT, json={"messages": HELLO, "metadata": {"kind": "chat"}})
    )
    await until(lambda: api.runner.running is not None)
