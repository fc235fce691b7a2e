"""One server of a remote model: how to reach it, what it can do, and whether it is worth asking."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any

import httpx

from data.clock import Clock
from data.inference.remote.backoff import Backoff
from data.inference.remote.errors import ServerFailed, named, refusal
from domain.entities.models import ServerState
from domain.errors import UniunError

CONNECT_S = 10.0
SILENCE_S = 120.0
"""Longest pause within an answer; the queue of the server and a long prompt come before its first part."""
LOOK_S = 5.0
"""For the small questions: is it there, what does it serve."""
TRIP_AFTER = 2
"""Failures in a row after which a server is left alone for a while."""
MAX_BODY_BYTES = 4 << 20
MAX_LINE_CHARS = 4 << 20
CONTINUED = {"continue_final_message": True, "add_generation_prompt": False}
"""vLLM's words for going on with the last message. llama.cpp's server does so by itself and ignores them."""
_CONTINUES = ("llama.cpp", "vllm")


class Server:
    """A circuit breaker around one address, and how much it has to do."""

    def __init__(
        self, url: str, model: str, client: httpx.AsyncClient, clock: Clock, chance: random.Random
    ) -> None:
        self.url = url
        self.active = 0
        """Requests of ours that run there."""
        self.state: ServerState | None = None
        self.continues: bool | None = None
        """Whether it goes on with an answer that was begun; none until it was tried."""
        self._model = model
        self._client = client
        self._clock = clock
        self._failures = 0
        self._closed_until = 0.0
        self._pauses = Backoff(chance, first_s=1.0, longest_s=60.0)

    @property
    def name(self) -> str:
        return named(self.url)

    @property
    def doubtful(self) -> bool:
        """It has failed too often: it must answer a small question before it gets a job."""
        return self._failures >= TRIP_AFTER

    def rests_s(self) -> float:
        """Until when it is left alone; 0 if it may be asked."""
        return max(0.0, self._closed_until - self._clock.monotonic()) if self.doubtful else 0.0

    def succeeded(self) -> None:
        self._failures = 0
        self._pauses.reset()

    def failed(self) -> None:
        self._failures += 1
        if self.doubtful:
            self._closed_until = self._clock.monotonic() + self._pauses.next_s()

    async def look(self) -> ServerState:
        """What it serves, as far as it says. Raises `ServerFailed`."""
        try:
            listed = await self._json("GET", f"{self.url}/models", LOOK_S)
        except ServerFailed as error:
            if error.status != 200:
                raise
            listed = {}  # mlx_lm's server sends an empty list of nothing where the hub's cache is missing; it works
        try:
            entries = [entry for entry in listed.get("data") or [] if isinstance(entry, dict)]
            mine = next((e for e in entries if e.get("id") == self._model), entries[0] if entries else {})
            kind = str(mine.get("owned_by") or "")[:100].replace("llamacpp", "llama.cpp")
            context = (mine.get("meta") or {}).get("n_ctx") or mine.get("max_model_len")
        except (AttributeError, TypeError) as error:
            raise ServerFailed(
                f"{self.name} lists its models in a form that nobody knows: {error}."
            ) from error
        self.state = ServerState(
            url=self.url,
            kind=kind,
            models=tuple(str(entry.get("id"))[:500] for entry in entries[:1000]),
            jobs=await self._slots() if kind == "llama.cpp" else None,
            context_tokens=context if isinstance(context, int) and context > 0 else None,
        )
        return self.state

    async def _slots(self) -> int | None:
        """llama.cpp's server says how many requests it decodes at once."""
        properties = await self._json("GET", self.url.removesuffix("/v1") + "/props", LOOK_S)
        slots = properties.get("total_slots")
        return min(slots, 1000) if isinstance(slots, int) and slots > 0 else None

    async def learn(self) -> None:
        """Finds out, once, what the server can do. Raises `ServerFailed`."""
        if self.state is None:
            await self.look()
        if self.continues is None:
            kind = self.state.kind if self.state is not None else ""
            self.continues = kind in _CONTINUES or await self.goes_on()

    async def goes_on(self) -> bool:
        """Measures whether it continues a last message of the assistant, or closes it and begins another.

        The prompt's length tells: twice the text must cost twice the tokens, and nothing for an end of the message.
        """
        told, words = {"role": "user", "content": "Count."}, "one two three"
        lengths = []
        for text in ("", words, f"{words} {words}"):
            begun: dict[str, Any] = {}
            if text:
                begun = {"messages": [told, {"role": "assistant", "content": text}], **CONTINUED}
            body = {"model": self._model, "messages": [told], "max_tokens": 1, "temperature": 0, **begun}
            try:
                answer = await self._json("POST", f"{self.url}/chat/completions", SILENCE_S, body)
                lengths.append(int(answer["usage"]["prompt_tokens"]))
            except ServerFailed as error:
                if error.status is None or not text:
                    raise
                return False
            except (UniunError, KeyError, TypeError, ValueError):
                return False  # it takes no such message, or does not count
        nothing, once, twice = lengths
        return nothing < once < twice and (once - nothing) - (twice - once) <= 0

    @asynccontextmanager
    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of an answer. Raises `ServerFailed`, `InvalidRequest`, `EngineError`."""
        self.active += 1
        try:
            with network_errors(self):
                asked = self._client.stream("POST", f"{self.url}/{path}", json=dict(body))
                async with asked as response:
                    if response.status_code != 200:
                        raise refusal(self.name, response.status_code, await _read(response))
                    async with aclosing(_lines(response, self.name)) as lines:
                        yield lines
        finally:
            self.active -= 1

    async def _json(
        self, method: str, url: str, limit_s: float, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            with network_errors(self):
                async with asyncio.timeout(limit_s), self._client.stream(method, url, json=body) as response:
                    text = await _read(response)
        except TimeoutError:
            raise ServerFailed(f"{self.name} did not answer in {limit_s:.0f} s.") from None
        if response.status_code != 200:
            raise refusal(self.name, response.status_code, text)
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ServerFailed(f"{self.name} answered with something that is no JSON object.", 200)
        return answer


@contextmanager
def network_errors(server: Server) -> Iterator[None]:
    """Says in plain words what the network did."""
    try:
        yield
    except httpx.ConnectTimeout:
        raise ServerFailed(f"{server.name} did not answer in {CONNECT_S:.0f} s.") from None
    except httpx.ReadTimeout:
        raise ServerFailed(f"{server.name} fell silent for {SILENCE_S:.0f} s.") from None
    except httpx.ConnectError:
        raise ServerFailed(f"{server.name} cannot be reached.") from None
    except httpx.InvalidURL as error:
        raise ServerFailed(f"{server.name} is no address: {error}.") from None
    except httpx.HTTPError as error:
        raise ServerFailed(f"{server.name} broke off ({type(error).__name__}).") from None


async def _read(response: httpx.Response) -> str:
    """Never more than `MAX_BODY_BYTES`."""
    body = b""
    async for block in response.aiter_bytes():
        body += block
        if len(body) > MAX_BODY_BYTES:
            break
    return body[:MAX_BODY_BYTES].decode(errors="replace")


async def _lines(response: httpx.Response, name: str) -> AsyncGenerator[str]:
    """By line feed only: text in an answer may hold other separators."""
    held = ""
    async for block in response.aiter_text():
        held += block
        if len(held) > MAX_LINE_CHARS:
            raise ServerFailed(f"{name} sent a line without end.")
        *lines, held = held.split("\n")
        for line in lines:
            yield line.rstrip("\r")
    if held:
        yield held
