"""Health, counters, and the scheduler's state and trace, over HTTP."""

import asyncio
import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from data.inference.fake import FakeRunner
from data.scheduling import history
from tests.presentation.api.served import Api
from tests.presentation.api.test_generation import CHAT, HELLO, on, until


def test_health_is_that_of_the_engine(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            well = await client.get("/health")
            assert (well.status_code, well.json()) == (200, {"status": "ok", "version": "1.2.3"})
            api.probe.alive = False
            ill = await client.get("/health")
            assert (ill.status_code, ill.json()["status"]) == (503, "engine does not answer")

    on(tmp_path, test)


def test_what_is_not_there_is_told_in_the_shape_of_an_error(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            for method, path in (("POST", "/v1/responses"), ("GET", CHAT)):
                answer = await client.request(method, path)
                assert answer.status_code == 404
                assert answer.json()["error"]["message"].startswith(f"There is no {method} {path}.")

    on(tmp_path, test)


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/embeddings", {"input": []}, "input: it is empty."),
        ("/v1/embeddings", {"input": 5}, "input: it should be text."),
        (CHAT, {"messages": []}, "messages: it is empty."),
        (CHAT, {"messages": [{"role": "user", "content": 5}]}, "messages.0.content: it should be text."),
    ],
)
def test_what_is_refused_is_named_as_its_sender_names_it(
    path: str, body: dict[str, object], message: str, tmp_path: Path
) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            answer = await client.post(path, json=body)
            assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)

    on(tmp_path, test)


def test_metrics_are_prometheus_own_format(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with api.client() as client:
            for words in ({}, {"service_tier": "flex"}):
                answer = await client.post(CHAT, json={"messages": HELLO, "model": "tiny", **words})
                assert answer.status_code == 200
            scraped = await client.get("/metrics")
        assert scraped.headers["content-type"].startswith("text/plain; version=0.0.4")
        families = {family.name: family for family in text_string_to_metric_families(scraped.text)}
        jobs = {tuple(s.labels.values()): s.value for s in families["uniun_jobs"].samples}
        assert jobs["api", "finished"] == 2
        tokens = families["uniun_tokens"].samples
        assert [(sample.labels, sample.value) for sample in tokens] == [({"kind": "api"}, 16)]
        for name in ("uniun_wait_seconds", "uniun_first_token_seconds"):
            counts = {s.labels["tier"]: s.value for s in families[name].samples if s.name.endswith("_count")}
            assert counts == {"1": 1, "4": 1}
        assert {
            "uniun_queued_jobs",
            "uniun_preemptions",
            "uniun_swaps",
            "uniun_extract_share",
            "uniun_engine_restarts",
            "uniun_running_jobs",
        } <= set(families)

    on(tmp_path, test)


def test_the_scheduler_is_seen_and_followed(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        reader, writer = await api.raw("GET /scheduler/events HTTP/1.1\r\nHost: {host}")
        await reader.readuntil(b"event: snapshot\ndata: ")
        assert json.loads(await reader.readline())["running"] is None
        async with api.client() as client:
            asking = asyncio.create_task(client.post(CHAT, json={"messages": HELLO, "model": "tiny"}))
            await until(lambda: api.runner.running is not None)
            seen = (await client.get("/scheduler")).json()
            assert seen["running"]["kind"] == "api"
            await reader.readuntil(b"event: record\ndata: ")
            assert json.loads(await reader.readline())["event"] == "submit"
            await reader.readuntil(b'"event": "dispatch"')
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            writer.close()

    on(tmp_path, test, FakeRunner(("tiny",), stepped=True))


def test_too_many_followers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_WATCHERS", 3)

    async def test(api: Api) -> None:
        streams = [await api.raw("GET /scheduler/events HTTP/1.1\r\nHost: {host}") for _ in range(4)]
        firsts = [await reader.readline() for reader, _ in streams]
        assert sorted(firsts)[-1].startswith(b"HTTP/1.1 503")
        assert sum(first.startswith(b"HTTP/1.1 200") for first in firsts) == 3
        for _, writer in streams:
            writer.close()

    on(tmp_path, test)
