"""A client that waits, beside eight batch clients: over our API and over llama-server and mlx_lm.server."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from data.inference.process import ENGINE
from domain.errors import EngineError
from tests.bench import llama_server, openai_servers
from tests.bench.figures import Figure, Report, at_most, median, percentile, spread
from tests.bench.openai_servers import Answered, Client
from tests.bench.setting import Setting, threads

TOKENS = 30
BATCH_CLIENTS = 8
BATCH_TOKENS = 120
BATCH_SENTENCES = 12
GRACE_S = 0.1
CONTEXT_PER_SLOT = 2048
PEER_LIMIT_S = 600.0
"""A server that is not through by then is reported with the samples that there are."""


@dataclass(frozen=True)
class Peer:
    """A server under measurement. `words` is how its waiting client says that it waits."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Client]]
    samples: int
    words: dict[str, Any]


async def run(setting: Setting) -> Report:
    """For each server in turn: the waiting client alone, then the same among batch clients that never pause."""
    figures: list[Figure] = []
    raw: dict[str, object] = {}
    for peer in _peers(setting):
        idle: list[Answered] = []
        loaded: list[Answered] = []
        try:
            async with asyncio.timeout(PEER_LIMIT_S):
                await _measure(peer, setting.count(peer.samples), idle, loaded)
        except (EngineError, TimeoutError, OSError) as error:
            raw[f"{peer.name}, stopped"] = f"{type(error).__name__} after {len(loaded)} samples under load"
        if not loaded:
            continue
        ours = peer.name.startswith("uniun")
        for what, factor in (("first_token_s", 1.25), ("last_token_s", 1.10)):
            before = [getattr(answer, what) for answer in idle]
            under = [getattr(answer, what) for answer in loaded]
            name = "first token" if what == "first_token_s" else f"{TOKENS} tokens"
            allowed = factor * percentile(before, 95) + GRACE_S
            figures += [
                Figure(f"{peer.name}: {name}, idle, median", median(before), "s"),
                Figure(f"{peer.name}: {name}, eight batch clients, p95", percentile(under, 95), "s"),
                Figure(
                    f"{peer.name}: the same over {factor:g} × idle + 100 ms",
                    percentile(under, 95) / allowed,
                    goal=at_most(1.0) if ours else None,
                ),
            ]
            raw[f"{peer.name}, {name}"] = {"idle": spread(before), "loaded": spread(under)}
    return Report("api-under-load", tuple(figures), raw)


async def _measure(peer: Peer, samples: int, idle: list[Answered], loaded: list[Answered]) -> None:
    pauses = random.Random(1)
    async with peer.open() as client:
        await client.ask(999_999, 4)  # loads the model, and whatever else is done at the first request
        for at in range(samples):
            idle.append(await client.ask(1_000 + at, TOKENS, **peer.words))
        async with _batch(client):
            await asyncio.sleep(2)
            for at in range(samples):
                await asyncio.sleep(pauses.uniform(0.2, 1.0))
                loaded.append(await client.ask(2_000 + at, TOKENS, **peer.words))


def _peers(setting: Setting) -> list[Peer]:
    from tests.bench.__main__ import STORE

    peers = [
        Peer("uniun, a program that waits", partial(_uniun, setting, STORE), 30, {}),
        Peer(
            "uniun, the user's own chat", partial(_uniun, setting, STORE), 30, {"metadata": {"kind": "chat"}}
        ),
    ]
    for slots in (1, 4, 8):
        name = f"llama-server, {slots} slot{'s' if slots > 1 else ''}"
        peers.append(Peer(name, partial(_llama, setting, slots), 8, {}))
    return [*peers, Peer("mlx_lm.server", partial(openai_servers.mlx_server, setting), 3, {})]


@asynccontextmanager
async def _uniun(setting: Setting, store: Any) -> AsyncIterator[Client]:
    async with openai_servers.uniun(setting, store) as (client, _):
        yield client


@asynccontextmanager
async def _llama(setting: Setting, slots: int) -> AsyncIterator[Client]:
    assert setting.model.gguf_path is not None
    context = CONTEXT_PER_SLOT * slots
    path = setting.model.gguf_path.resolve()
    async with llama_server.server(path, threads(), context, ENGINE.environment, slots=slots) as url:
        yield Client(url, setting.model.name, setting.clock)


@asynccontextmanager
async def _batch(client: Client) -> AsyncIterator[None]:
    """Each sends its next request as soon as it has the last answer."""

    async def work(number: int) -> None:
        for at in range(10_000):
            await client.ask(
                10_000 * (number + 1) + at,
                BATCH_TOKENS,
                BATCH_SENTENCES,
                service_tier="flex",
                user=f"batch {number}",
            )

    tasks = [asyncio.create_task(work(number)) for number in range(BATCH_CLIENTS)]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
