"""Jobs that crash the engine fail by themselves; everybody else is served, a little later."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from data.children import process
from data.clock import SystemClock
from data.inference import supervisor
from data.inference.process import ENGINE as REAL_ENGINE
from data.inference.supervisor import EngineRunner
from data.scheduling.dispatcher import Dispatcher
from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.entities.models import InstalledModel
from domain.errors import EngineError, EngineLost, InvalidSchema
from domain.repositories.inference_runner import RunnerJob
from domain.repositories.model_store import ModelStore
from tests.data.inference.engines import GREEDY, Shelf, options

ENGINE = """
import json, os, sys
with open({starts!r}, "a") as starts:
    starts.write(".")
for raw in sys.stdin:
    line = json.loads(raw)
    if line["do"] == "load":
        if {dies_loading}:
            os._exit(9)
        done = {{"engine": "llama.cpp", "context_tokens": 9, "load_s": 0, "memory_bytes": 0}}
    elif line["do"] == "run":
        if "crash" in line["job"]["prompt"]:
            os._exit(7)
        usage = {{"prompt_tokens": 1, "completion_tokens": 0}}
        done = {{"status": "finished", "finish_reason": "stop", "tokens_done": 0, "text": "well", "usage": usage}}
    else:
        done = {{}}
    if "id" in line:
        print(json.dumps({{"id": line["id"], "done": done}}), flush=True)
"""


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


class Desk:
    """A dispatcher on a runner whose engine dies of some jobs; waiting costs no time."""

    def __init__(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dies_loading: bool = False
    ) -> None:
        self._starts = tmp_path / "starts"
        script = ENGINE.format(starts=str(self._starts), dies_loading=dies_loading)
        monkeypatch.setattr(supervisor, "ENGINE", replace(REAL_ENGINE, arguments=("-c", script)))
        self.clock = HandClock()
        self.waits: list[float] = []
        self.sleeping: Callable[[], None] = lambda: None
        model = InstalledModel(name="one", source="test", size_bytes=1, gguf_path=tmp_path / "x.gguf")
        self.store = cast(ModelStore, Shelf(model))
        self.runner = EngineRunner(self.store, options("llama.cpp"), self.clock, self.sleep)
        self.dispatcher = Dispatcher(self.runner, self.store, self.clock)

    async def sleep(self, seconds: float) -> None:
        if seconds == options("llama.cpp").watchdog_s:
            await asyncio.Event().wait()  # the idle watch
        self.waits.append(seconds)
        self.clock.at += seconds
        await asyncio.sleep(0)

    @property
    def starts(self) -> int:
        return len(self._starts.read_text())

    def submit(self, prompt: str) -> Any:
        request = GenerationRequest(kind=LlmTaskKind.API, flow=prompt, model="one", prompt=prompt)
        return self.dispatcher.submit(request)


def test_crashing_jobs_fail_by_themselves_and_all_others_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        desk = Desk(tmp_path, monkeypatch)
        async with desk.dispatcher:
            prompts = [f"{'crash' if at in (0, 3, 4) else 'good'} {at}" for at in range(9)]
            jobs = {prompt: desk.submit(prompt) for prompt in prompts}
            for prompt, job in jobs.items():
                if "good" in prompt:
                    assert (await job.result()).text == "well"
                else:
                    with pytest.raises(EngineError, match=r"lost 4 times.*exit code 7") as caught:
                        await job.result()
                    assert job.id in str(caught.value)
        assert 12 <= desk.starts <= 13
        assert max(desk.waits) <= 60

    asyncio.run(play())


def test_a_job_for_which_no_engine_lives_to_load_fails_after_as_many_losses_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        desk = Desk(tmp_path, monkeypatch, dies_loading=True)
        async with desk.dispatcher:
            jobs = [desk.submit(f"good {at}") for at in range(3)]
            for job in jobs:
                with pytest.raises(EngineError) as caught:
                    await job.result()
                told = re.search(r"lost (\d+) times", str(caught.value))
                assert told is not None
                assert int(told[1]) == 4
        assert desk.starts == 4 * len(jobs)
        assert sum(desk.waits) > 60

    asyncio.run(play())


def test_a_load_that_waits_for_its_start_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        desk = Desk(tmp_path, monkeypatch, dies_loading=True)
        waiting = asyncio.Event()

        async def sleep(seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

        runner = EngineRunner(desk.store, options("llama.cpp", start_limit=2), desk.clock, sleep)
        for _ in range(2):
            with pytest.raises(EngineLost, match="exit code 9"):
                await runner.load("one")
        loading = asyncio.create_task(runner.load("one"))
        await waiting.wait()
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        assert desk.starts == 2
        assert runner.pid is None
        await runner.aclose()

    asyncio.run(play())


def nested(levels: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [nested(400), nested(50_000), {"properties": {"\ud800": {}}}],
    ids=["deep", "deeper", "surrogate"],
)
def test_a_schema_that_cannot_be_sent_is_refused_and_the_engine_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: dict[str, object]
) -> None:
    async def play() -> None:
        desk = Desk(tmp_path, monkeypatch)
        job = RunnerJob(
            id="j", cache_key="j", prompt="good", max_tokens=1, sampling=GREEDY, json_schema=schema
        )
        await desk.runner.load("one")
        with pytest.raises(InvalidSchema, match="JSON schema"):
            await desk.runner.run(job, lambda progress: None)
        good = job.model_copy(update={"json_schema": None})
        assert (await desk.runner.run(good, lambda progress: None)).text == "well"
        assert desk.starts == 1
        await desk.runner.aclose()

    asyncio.run(play())


HANG = "import sys\nsys.stdin.readline()\n{}"


@pytest.mark.parametrize(
    ("load", "lost"),
    [
        ("import signal; signal.pause()", "used neither CPU nor disk for 0.4 s while loading one"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "used neither CPU nor disk for 0.4 s"),
        ("while True: pass", "no sign of life for 3 s while loading one"),
        ("while True: open(sys.executable, 'rb').read()", "no sign of life for 3 s while loading one"),
    ],
    ids=["sleeps", "is stopped", "spins", "reads"],
)
def test_a_load_that_hangs_is_found_soon_and_one_that_works_has_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: str, lost: str
) -> None:
    async def play() -> None:
        desk = Desk(tmp_path, monkeypatch)
        monkeypatch.setattr(supervisor, "ENGINE", replace(REAL_ENGINE, arguments=("-c", HANG.format(load))))
        chosen = options("llama.cpp", watchdog_s=0.4, load_floor_s=3.0)
        runner = EngineRunner(desk.store, chosen, desk.clock, desk.sleep)
        with pytest.raises(EngineLost, match=lost):
            await runner.load("one")
        assert runner.pid is None
        await runner.aclose()

    asyncio.run(play())


def test_signs_of_life_of_a_process_that_is_gone_are_none() -> None:
    gone = cast(process.ChildProcess, SimpleNamespace(pid=2**22 + 1))
    assert process.ChildProcess._vital_signs(gone) == ()
