"""Our own OpenAPI document, and what requests that it allows (and some that it does not) bring about: never a 5xx."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from data.inference.fake import FakeRunner
from data.scheduling.config import SchedulerConfig
from tests.presentation.api.served import served


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Served by a loop in a thread of its own, since schemathesis calls and waits."""
    folder = tmp_path_factory.mktemp("api")
    opened: Future[str] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        runner = FakeRunner(("tiny",), answer_tokens=3)
        async with served(folder, runner, config=SchedulerConfig(fair_slice_s=0)) as api:
            opened.set_result(api.url)
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    yield opened.result(10)
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


ROUTES = (
    ("/v1/chat/completions", "POST"),
    ("/v1/completions", "POST"),
    ("/v1/embeddings", "POST"),
    ("/v1/models", "GET"),
    ("/v1/models/{model}", "GET"),
    ("/health", "GET"),
    ("/metrics", "GET"),
    ("/scheduler", "GET"),
)


@pytest.mark.parametrize(("path", "method"), ROUTES)
def test_no_request_breaks_the_server(url: str, path: str, method: str) -> None:
    """Also requests that the document does not allow: schemathesis makes both."""
    operation = schemathesis.openapi.from_url(f"{url}/openapi.json")[path][method]

    def call(case: schemathesis.Case[Any]) -> None:
        answer = case.call(timeout=120)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400 and method == "POST":
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}

    wrong_too = method == "POST"
    for mode in schemathesis.GenerationMode if wrong_too else [schemathesis.GenerationMode.POSITIVE]:
        cases = operation.as_strategy(generation_mode=mode)
        settings(
            max_examples=20,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )(given(cases)(call))()


def test_the_document_names_every_route_and_no_page_of_docs_is_fetched_from_elsewhere(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False) as client:
        document = client.get("/openapi.json").json()
        assert {
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/embeddings",
            "/v1/models",
            "/v1/models/{model}",
            "/health",
            "/metrics",
            "/scheduler",
            "/scheduler/events",
        } <= set(document["paths"])
        assert client.get("/docs").status_code == 404
        assert client.get("/redoc").status_code == 404


def test_other_origins_get_no_leave_to_read(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False) as client:
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        answer = client.options("/v1/chat/completions", headers=asked)
        assert answer.status_code == 403
        assert not any(name.startswith("access-control") for name in answer.headers)
