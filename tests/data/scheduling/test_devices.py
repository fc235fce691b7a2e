"""The engine here and remote models beside it, over fakes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from data.clock import SystemClock
from data.inference.fake import FakeRunner
from data.scheduling.devices import Devices
from data.scheduling.events import Record
from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.entities.models import InstalledModel, RemoteModel
from domain.errors import InvalidRequest, JobCancelled
from domain.repositories.inference_runner import LoadedModel, RunnerJob, RunnerOutcome, RunnerProgress
from tests.fakes import MemoryStore


class ManyAtOnce(FakeRunner):
    """A fake for each job, so that runs may overlap."""

    def __init__(self) -> None:
        super().__init__(("far",))
        self.runners: dict[str, FakeRunner] = {}
        self.tiers: dict[str, int] = {}

    async def load(self, model: str) -> LoadedModel:
        return (await super().load(model)).model_copy(update={"slots": 2})

    async def run(self, job: RunnerJob, emit: Callable[[RunnerProgress], None]) -> RunnerOutcome:
        self.tiers[job.id] = job.tier
        if job.id not in self.runners:
            self.runners[job.id] = FakeRunner(("far",), stepped=True, answer_tokens=3)
            await self.runners[job.id].load("far")
        return await self.runners[job.id].run(job, emit)

    def stop(self, job_id: str) -> None:
        self.runners[job_id].stop(job_id)


class Shelf(MemoryStore):
    """`near` is here, `far` is remote."""

    def __init__(self) -> None:
        super().__init__("near", "far")
        self.remote = RemoteModel(urls=("http://far/v1",), model="far", jobs=2)

    def get(self, name: str) -> InstalledModel:
        model = super().get(name)
        return model.model_copy(update={"remote": self.remote}) if name == "far" else model


def request(model: str, flow: str = "f", **fields: Any) -> GenerationRequest:
    return GenerationRequest(
        kind=LlmTaskKind.GANA, flow=flow, model=model, prompt="Say it", max_tokens=3, **fields
    )


class Desk:
    def __init__(self) -> None:
        self.here = FakeRunner(("near",), stepped=True, answer_tokens=3)
        self.far: list[ManyAtOnce] = []
        self.store = Shelf()
        self.records: list[Record] = []
        self.devices = Devices(self.here, self._make, self.store, SystemClock())
        self.devices.observe(self.records.append)

    def _make(self, name: str, remote: RemoteModel) -> ManyAtOnce:
        self.far.append(ManyAtOnce())
        return self.far[-1]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not holds():  # noqa: ASYNC110 - nothing tells when a fake has got so far
                await asyncio.sleep(0)


def play(story: Callable[[Desk], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        desk = Desk()
        async with desk.devices:
            await story(desk)

    asyncio.run(whole())


def test_remote_jobs_run_at_once_and_beside_the_one_here() -> None:
    async def story(desk: Desk) -> None:
        near = [desk.devices.submit(request("near", f)) for f in "ab"]
        far = [desk.devices.submit(request("far", f)) for f in "abc"]
        ids = [handle.id for handle in (*near, *far)]
        assert len(set(ids)) == 5
        await desk.until(lambda: desk.here.running is not None and len(desk.far[0].runners) == 2)
        view = desk.devices.snapshot()
        assert view.running is not None
        assert view.resident == "near"
        assert {view.running.id, *(job.id for job in view.also_running)} == {ids[0], ids[2], ids[3]}
        assert view.queued == {4: 2}
        assert [job.id for job in view.tiers[4]] == [ids[1], ids[4]]
        assert desk.devices.gauges().running == 3
        assert desk.far[0].tiers == {ids[2]: 4, ids[3]: 4}
        await desk.far[0].runners[ids[2]].step(10)
        assert (await far[0].result()).text
        await desk.until(lambda: ids[4] in desk.far[0].runners)
        loads = [record for record in desk.records if record.event == "swap_start"]
        assert [record.fields["to"] for record in loads] == ["near"], "a remote model is loaded by nobody"

    play(story)


def test_who_waits_for_a_server_elsewhere_waits_for_nothing_here() -> None:
    async def story(desk: Desk) -> None:
        handle = desk.devices.submit(request("far").model_copy(update={"kind": LlmTaskKind.CHAT}))
        await desk.until(lambda: handle.id in (desk.far[0].tiers if desk.far else {}))
        assert not desk.devices.somebody_waits
        handle = desk.devices.submit(request("near").model_copy(update={"kind": LlmTaskKind.CHAT}))
        await desk.until(lambda: desk.here.running == handle.id)
        assert desk.devices.somebody_waits

    play(story)


def test_a_hint_of_the_surface_reaches_devices_that_come_later() -> None:
    async def story(desk: Desk) -> None:
        desk.devices.set_foreground(LlmTaskKind.GANA, "b")
        handles = [desk.devices.submit(request("far", f)) for f in "ab"]
        await desk.until(lambda: bool(desk.far) and len(desk.far[0].tiers) == 2)
        assert desk.far[0].tiers == {handles[0].id: 4, handles[1].id: 1}

    play(story)


def test_a_cancelled_remote_job_stops_and_the_end_closes_everything() -> None:
    async def story(desk: Desk) -> None:
        one, two = (desk.devices.submit(request("far", f)) for f in "ab")
        await desk.until(lambda: bool(desk.far) and len(desk.far[0].runners) == 2)
        one.cancel()
        await desk.far[0].runners[one.id].step()
        with pytest.raises(JobCancelled):
            await one.result()
        await desk.devices.aclose()
        with pytest.raises(JobCancelled):
            await two.result()
        assert desk.here.closed
        assert desk.far[0].closed

    play(story)


def test_a_model_that_is_registered_anew_gets_a_new_device() -> None:
    async def story(desk: Desk) -> None:
        first = desk.devices.submit(request("far"))
        await desk.until(lambda: bool(desk.far) and first.id in desk.far[0].runners)
        await desk.far[0].runners[first.id].step(10)
        await first.result()
        desk.store.remote = RemoteModel(urls=("http://other/v1",), model="far", jobs=1)
        desk.devices.submit(request("far"))
        await desk.until(lambda: len(desk.far) == 2 and bool(desk.far[1].runners))
        await desk.until(lambda: desk.far[0].closed)
        assert not desk.far[1].closed

    play(story)


def test_nobody_waits_across_devices() -> None:
    async def story(desk: Desk) -> None:
        near = desk.devices.submit(request("near"))
        with pytest.raises(InvalidRequest, match="another device"):
            desk.devices.submit(request("far", waits_for=near.id))
        await desk.devices.switch_model("far")
        assert desk.devices.snapshot().resident != "far"

    play(story)
