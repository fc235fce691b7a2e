"""Five hundred clients at once for two minutes, a tenth of which leave in the middle: nothing may be left behind."""

import asyncio
import random
from collections import Counter
from typing import Any

import httpx
import psutil

from domain.errors import EngineError
from tests.bench import openai_servers
from tests.bench.figures import Figure, Report, at_least, at_most
from tests.bench.prompts import note
from tests.bench.setting import Setting

CLIENTS = 500
SECONDS = 120.0
DROPPED = 0.1
DRAIN_S = 300.0


async def run(setting: Setting) -> Report:
    """Half of the requests stream, half wait in the fair pool; answers are short, so that many are given."""
    from tests.bench.__main__ import STORE

    clients, seconds = (50, 10.0) if setting.quick else (CLIENTS, SECONDS)
    async with openai_servers.uniun(setting, STORE) as (first, pid):
        await first.ask(999_999, 4)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(
            base_url=first.url, limits=limits, timeout=DRAIN_S, trust_env=False
        ) as http:
            soak = Soak(setting, http, psutil.Process(pid), seconds)
            await soak.run(clients)
            left, files = await soak.settle()
    counts = soak.counts
    answered = counts["answered"] + counts["refused"] + counts["left"]
    memory = soak.memory
    third = len(memory) // 3
    figures = (
        Figure(
            "requests that were answered, refused or left by their client",
            answered / soak.sent,
            goal=at_least(1.0),
        ),
        Figure("jobs left behind", float(left), "", at_most(0)),
        Figure("open files more than before", float(files - soak.files_before), "", at_most(3)),
        Figure("memory at the end over that after a third", memory[-1] / memory[third], goal=at_most(1.1)),
        Figure("answers a second", counts["answered"] / seconds, "/s"),
    )
    raw = {"counts": dict(counts), "sent": soak.sent, "memory_mb": [round(m / 1e6) for m in memory]}
    return Report("api-soak", figures, raw)


class Soak:
    """The load, and a look at the server's memory every few seconds."""

    def __init__(
        self, setting: Setting, http: httpx.AsyncClient, process: psutil.Process, seconds: float
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.sent = 0
        self.memory: list[float] = []
        self.files_before = process.num_fds()
        self._http = http
        self._process = process
        self._clock = setting.clock
        self._end = setting.clock.monotonic() + seconds

    async def run(self, clients: int) -> None:
        watching = asyncio.create_task(self._watch())
        await asyncio.gather(*(self._client(number) for number in range(clients)))
        watching.cancel()

    async def settle(self) -> tuple[int, int]:
        """Jobs that are still there once all clients have gone, and open files."""
        for _ in range(100):
            state = (await self._http.get("/scheduler")).json()
            left = sum(map(len, state["tiers"].values())) + (state["running"] is not None)
            if not left:
                break
            await asyncio.sleep(0.1)
        self.memory.append(self._process.memory_info().rss)
        return left, self._process.num_fds()

    async def _client(self, number: int) -> None:
        dice = random.Random(number)
        at = 0
        while self._clock.monotonic() < self._end:
            at += 1
            body = {
                "messages": [{"role": "user", "content": note(1_000 * number + at, 1)}],
                "max_tokens": dice.choice((1, 2, 4)),
                "stream": dice.random() < 0.5,
                "service_tier": dice.choice(("flex", "auto")),
                "user": f"client {number}",
            }
            patience = dice.uniform(0.01, 3.0) if dice.random() < DROPPED else None
            self.sent += 1
            self.counts[await self._request(body, patience)] += 1

    async def _request(self, body: dict[str, Any], patience: float | None) -> str:
        try:
            async with asyncio.timeout(patience):
                answer = await self._http.post("/v1/chat/completions", json=body)
        except TimeoutError:
            return "left"
        except httpx.HTTPError as error:
            return type(error).__name__
        if answer.status_code in (429, 503):
            return "refused"
        whole = b"[DONE]" in answer.content if body["stream"] else answer.status_code == 200
        return "answered" if whole else f"status {answer.status_code}"

    async def _watch(self) -> None:
        while True:
            self.memory.append(self._process.memory_info().rss)
            if not self._process.is_running():
                raise EngineError("The server has ended.")
            await asyncio.sleep(2)
