"""Posts what a Gana wrote to the address that the user gave."""

import asyncio
import json
from collections.abc import Mapping

import httpx

from domain.errors import WebhookFailed

PATIENCE_S = 10.0
"""For each step: connecting, sending, each part of the answer's head."""
LONGEST_S = 30.0
MAX_REDIRECTS = 3
MAX_BODY_BYTES = 1_000_000


class HttpWebhook:
    """Implements `Webhook`. The answer's body is never read.

    A redirect is followed only to the same server, and only where it keeps the method: whoever answers must not be able
    to send our notes on, or to make us call other programs on this machine.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport

    async def post(self, url: str, body: Mapping[str, str]) -> None:
        content = json.dumps(dict(body), ensure_ascii=False).encode("utf-8", "replace")
        if len(content) > MAX_BODY_BYTES:
            raise WebhookFailed(f"The note is too long for a webhook ({len(content)} bytes).")
        try:
            async with (
                asyncio.timeout(LONGEST_S),
                httpx.AsyncClient(
                    timeout=PATIENCE_S, transport=self._transport, follow_redirects=False, trust_env=False
                ) as client,
            ):
                await self._send(client, httpx.URL(url), content)
        except TimeoutError:
            raise WebhookFailed(f"The webhook {_named(url)} took longer than {LONGEST_S:.0f} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise WebhookFailed(f"The webhook {_named(url)} could not be reached: {reason}.") from None

    async def _send(self, client: httpx.AsyncClient, url: httpx.URL, content: bytes) -> None:
        first = url
        for _ in range(MAX_REDIRECTS + 1):
            if url.scheme not in ("http", "https"):
                raise WebhookFailed(f"The webhook {_named(str(url))} is neither http nor https.")
            headers = {"Content-Type": "application/json"}
            async with client.stream("POST", url, content=content, headers=headers) as response:
                if response.status_code not in (307, 308):
                    if not response.is_success:
                        raise WebhookFailed(
                            f"The webhook {_named(str(url))} answered {response.status_code}."
                        )
                    return
                url = url.join(response.headers.get("Location", ""))
            if not _same_server(first, url):
                raise WebhookFailed(f"The webhook {_named(str(first))} sends us elsewhere; not followed.")
        raise WebhookFailed(f"The webhook {_named(str(first))} redirects without end.")


def _same_server(one: httpx.URL, other: httpx.URL) -> bool:
    """The same host and port, or the same host's step from http to https."""
    if (one.host, one.port) != (other.host, other.port):
        return False
    return one.scheme == other.scheme or (one.scheme, one.port) == ("http", None)


def _named(url: str) -> str:
    """Without what may be a secret: path, query and password stay out of the log."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "address"
    return f"{parsed.scheme}://{parsed.host}/…"
