import asyncio
import json

import httpx
import pytest

from data.gana.webhook import MAX_BODY_BYTES, HttpWebhook
from domain.errors import WebhookFailed

BODY = {"gana": "g", "run": "r", "note": "n", "text": "Grüße 🌱 \ud800"}


def post(url: str, answer: httpx.MockTransport, body: dict[str, str] = BODY) -> None:
    asyncio.run(HttpWebhook(answer).post(url, body))


def test_the_note_is_posted_as_json() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(204)

    post("http://hooks.example/a?key=1", httpx.MockTransport(answer))
    assert (seen[0].method, str(seen[0].url)) == ("POST", "http://hooks.example/a?key=1")
    assert json.loads(seen[0].content)["text"] == "Grüße 🌱 ?"


def test_a_redirect_within_the_server_is_followed() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/old":
            return httpx.Response(308, headers={"Location": "/new"})
        assert request.method == "POST"
        return httpx.Response(200)

    post("https://hooks.example/old", httpx.MockTransport(answer))


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:8118/v1/models",
        "http://hooks.example:8118/",
        "http://hooks.example.evil/",
        "file:///etc/passwd",
        "//evil.example/",
        "http://[",
        "/again",
    ],
)
def test_no_redirect_leads_elsewhere_or_round_in_circles(location: str) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(307, headers={"Location": location})

    with pytest.raises(WebhookFailed):
        post("https://hooks.example/a", httpx.MockTransport(answer))
    assert set(asked) == {"hooks.example"}
    assert len(asked) <= 4


@pytest.mark.parametrize("status", [301, 303, 400, 500])
def test_any_other_answer_is_a_failure_with_its_number(status: int) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(status, headers={"Location": "/b"}))
    with pytest.raises(WebhookFailed, match=str(status)) as failed:
        post("http://user:secret@hooks.example/a?key=geheim", transport)
    assert "secret" not in str(failed.value)
    assert "geheim" not in str(failed.value)


def test_silence_and_nonsense_are_failures() -> None:
    def dead(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("timed out")

    with pytest.raises(WebhookFailed, match="timed out"):
        post("http://hooks.example/a", httpx.MockTransport(dead))
    with pytest.raises(WebhookFailed, match="neither http"):
        post("ftp://hooks.example/a", httpx.MockTransport(dead))
    with pytest.raises(WebhookFailed, match="too long"):
        post("http://hooks.example/a", httpx.MockTransport(dead), {"text": "x" * MAX_BODY_BYTES})


def test_a_real_closed_port() -> None:
    with pytest.raises(WebhookFailed, match="could not be reached"):
        asyncio.run(HttpWebhook().post("http://127.0.0.1:9/", BODY))
