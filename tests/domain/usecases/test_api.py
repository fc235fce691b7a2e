"""Where a client's words put its request, and who a client is."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.entities.api import ApiClient, ApiJob, ApiKey, Urgency, place
from domain.entities.llm import LlmTaskKind, Message
from domain.errors import InvalidRequest, KeyNotFound, KeyRefused, RateLimited, UnknownModel
from domain.usecases.api import SubmitApiJobUseCase
from domain.usecases.api_keys import (
    CreateApiKeyUseCase,
    IdentifyClientUseCase,
    ListApiKeysUseCase,
    RevokeApiKeyUseCase,
    key_hash,
)
from presentation.api.errors import error_detail
from tests.fakes import MemoryStore, ScriptedCoordinator
from tests.memory.api_keys import MemoryApiKeys
from tests.memory.identity import CountingIdentities

LOCAL = ApiClient(address="127.0.0.1", agent="curl/8")
AT = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ApiKey(id="k", name="editor", hash="h", kind="gana", weight=3.0, created_at=AT)
KEYED = ApiClient(key=KEY, address="10.0.0.2", agent="x")


@pytest.mark.parametrize(
    ("words", "hint", "rank"),
    [
        ({}, True, 0),
        ({"service_tier": "auto"}, True, 0),
        ({"service_tier": "default"}, True, 0),
        ({"service_tier": "priority"}, True, 0),
        ({"service_tier": "flex"}, False, 0),
        ({"priority": 0}, True, 0),
        ({"priority": -3}, True, -3),
        ({"priority": 4}, False, 4),
        ({"priority": 4, "service_tier": "priority"}, False, 4),
        ({"priority": 0, "service_tier": "flex"}, True, 0),
        ({"foreground": True, "service_tier": "flex"}, True, 0),
        ({"foreground": False, "priority": -1}, False, -1),
        ({"kind": "gana"}, False, 0),
        ({"kind": "gana", "foreground": True}, True, 0),
        ({"kind": "gana", "service_tier": "flex"}, False, 0),
    ],
)
def test_a_clients_words_in_the_schedulers(words: dict[str, Any], hint: bool, rank: int) -> None:
    where = place(Urgency(**words), LOCAL)
    assert (where.foreground_hint, where.rank) == (hint, rank)
    assert where.kind == words.get("kind", "api")


@pytest.mark.parametrize(
    ("client", "words", "flow"),
    [
        (LOCAL, {}, "127.0.0.1 curl/8"),
        (LOCAL, {"user": "ann"}, "user ann"),
        (LOCAL, {"user": "ann", "flow": "nightly"}, "nightly"),
        (KEYED, {}, "editor"),
        (KEYED, {"user": "ann"}, "editor"),
        (KEYED, {"flow": "nightly"}, "editor/nightly"),
    ],
)
def test_the_flow_is_the_key_else_the_user_else_the_program(
    client: ApiClient, words: dict[str, Any], flow: str
) -> None:
    assert place(Urgency(**words), client).flow == flow


def test_a_key_brings_its_kind_and_weight() -> None:
    where = place(Urgency(), KEYED)
    assert (where.kind, where.weight, where.foreground_hint) == (LlmTaskKind.GANA, 3.0, False)
    assert place(Urgency(kind="api"), KEYED).kind is LlmTaskKind.API


def test_a_job_is_submitted_as_its_words_say() -> None:
    coordinator = ScriptedCoordinator()
    submit = SubmitApiJobUseCase(coordinator, MemoryStore("tiny"))
    hello = (Message(role="user", content="hi"),)
    submit(ApiJob(messages=hello, urgency=Urgency(priority=2, deadline=AT), keep_alive_s=5), LOCAL)
    submit(ApiJob(model="default", prompt="Once", max_tokens=9), KEYED)
    first, second = coordinator.requests
    assert (first.kind, first.rank, first.deadline, first.keep_alive_s) == ("api", 2, AT, 5)
    assert first.max_tokens == 2048  # the context: as many as fit
    assert (second.model, second.prompt, second.max_tokens, second.weight) == ("tiny", "Once", 9, 3.0)
    with pytest.raises(UnknownModel):
        submit(ApiJob(model="none", messages=hello), LOCAL)
    with pytest.raises(InvalidRequest):
        submit(ApiJob(messages=(Message(role="user", content=""),)), LOCAL)


def test_a_key_is_made_presented_and_revoked() -> None:
    async def main() -> None:
        keys, identities = MemoryApiKeys(), CountingIdentities()
        create = CreateApiKeyUseCase(keys, identities, lambda: "random")
        key, text = await create(" editor ", kind="gana", weight=2.0, per_minute=3)
        assert text == "uniun-random"
        assert text not in key.model_dump_json()
        assert key.hash == key_hash(text)
        with pytest.raises(InvalidRequest, match="called editor already"):
            await create("editor")
        with pytest.raises(InvalidRequest, match="name is wrong"):
            await create("a/b")
        with pytest.raises(InvalidRequest, match="weight is wrong"):
            await create("other", weight=float("nan"))
        identify = IdentifyClientUseCase(keys, identities)
        assert (await identify(text, "10.0.0.1", "curl/8 (x)")).key == key
        assert await identify.fits(text)
        nobody = await identify("sk-whatever", "10.0.0.1", "curl/8 (x)")
        assert nobody == ApiClient(address="10.0.0.1", agent="curl/8")
        assert not await identify.fits("sk-whatever")
        revoke = RevokeApiKeyUseCase(keys)
        with pytest.raises(KeyNotFound):
            await revoke("none")
        assert (await revoke(key.id[:4])).name == "editor"
        assert await ListApiKeysUseCase(keys)() == ()
        with pytest.raises(KeyRefused, match="unknown or was revoked"):
            await identify(text, "10.0.0.1", "")
        assert not await identify.fits(text)

    asyncio.run(main())


@pytest.mark.parametrize("per_minute", [*range(1, 130), 777, 6_000])
def test_a_key_may_be_used_again_after_the_seconds_that_are_told(per_minute: int) -> None:
    identities = CountingIdentities()
    identities.step = timedelta(0)
    identify = IdentifyClientUseCase(MemoryApiKeys(), identities)
    client = ApiClient(key=KEY.model_copy(update={"per_minute": per_minute}))

    def spend_all() -> None:
        for _ in range(per_minute + 1):
            identify.spend(client)

    for _ in range(5):
        with pytest.raises(RateLimited) as limited:
            spend_all()
        _, _, headers = error_detail(limited.value)
        told_s = int(headers["Retry-After"])
        assert f"Wait {told_s} s." in str(limited.value)
        assert limited.value.retry_after_s <= told_s < limited.value.retry_after_s + 1
        identities.at += timedelta(seconds=told_s)
        identify.spend(client)


def test_a_key_is_held_to_its_rate() -> None:
    identities = CountingIdentities()
    identities.step = timedelta(0)
    identify = IdentifyClientUseCase(MemoryApiKeys(), identities)
    client = ApiClient(key=KEY.model_copy(update={"per_minute": 2}))
    identify.spend(client)
    identify.spend(client)
    with pytest.raises(RateLimited) as limited:
        identify.spend(client)
    assert limited.value.retry_after_s == pytest.approx(30)
    identities.at += timedelta(seconds=30)
    identify.spend(client)
    with pytest.raises(RateLimited):
        identify.spend(client)
    identities.at -= timedelta(hours=1)  # a clock that is set back gives nothing and takes nothing
    with pytest.raises(RateLimited):
        identify.spend(client)
    for _ in range(99):
        identify.spend(KEYED)
