"""The engine process dies, hangs and is cancelled; the runner says so and goes on."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from data.children.lines import Line
from data.children.process import ChildProcess
from data.clock import SystemClock
from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from domain.entities.models import InstalledModel
from domain.errors import EngineLost, EngineMissing, ModelDamaged, ModelLoadFailed
from domain.repositories.inference_runner import RunnerJob, RunnerProgress
from tests.data.inference.engines import GREEDY, OPENING, Rig, Shelf, chat, engine, make_rig, options, strike

pytestmark = pytest.mark.model
WATCHDOG_S = 3.0


@pytest.fixture(scope="module")
def kept(smollm2: InstalledModel) -> Iterator[Rig]:
    rig = make_rig(
        "llama.cpp",
        smollm2,
        chunk_s=0.02,
        interruptible_chunk_s=0.02,
        kv_budget_bytes=1 << 20,
        watchdog_s=WATCHDOG_S,
        start_limit=50,
    )
    yield rig
    rig.close()


@pytest.fixture
def rig(kept: Rig) -> Rig:
    kept.load()
    return kept


def signalled(rig: Rig, number: signal.Signals, *, at_token: int, prompt: str = OPENING) -> EngineLost:
    """Runs a job and signals the engine when that many tokens are done; what `run` raises."""
    job = rig.job(prompt, id="struck")

    def emit(progress: RunnerProgress) -> None:
        if progress.tokens_done == at_token:
            strike(engine(rig), number)

    with pytest.raises(EngineLost) as caught:
        rig.loop.run(rig.runner.run(job, emit))
    return caught.value


@pytest.mark.parametrize("at_token", [0, 5], ids=["prefill", "decode"])
def test_a_killed_engine_resumes_to_the_same_text(rig: Rig, at_token: int) -> None:
    # Several chunks, of which nothing is kept from another test.
    prompt = (
        f"{at_token} times "
        + "upon a time, in a small house, there lived an old man and a very clever cat. " * 8
    )
    lost = signalled(rig, signal.SIGKILL, at_token=at_token, prompt=prompt)
    assert "SIGKILL" in str(lost)
    assert "struck" in str(lost)
    rig.load()
    outcome, seen = rig.run(rig.job(prompt, id="struck"))
    assert outcome.text == rig.whole(GREEDY, prompt).text
    assert seen[-1].tokens_done - seen[0].tokens_done <= rig.length - at_token


def test_a_job_that_is_resumed_is_as_old_as_it_was(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    send, since = ChildProcess.send, list[str]()

    def note(process: ChildProcess, line: Line) -> None:
        if line["do"] == "run":
            since.append(line["since"])
        send(process, line)

    monkeypatch.setattr(ChildProcess, "send", note)
    job = rig.job(max_tokens=3)
    rig.run(job, stop_after=1)
    rig.run(job)
    rig.run(rig.job(max_tokens=1))
    assert since[0] == since[1] < since[2]


@pytest.mark.parametrize("cancelled", [False, True], ids=["stopped", "cancelled"])
def test_a_run_that_still_waits_for_the_line_can_be_ended(rig: Rig, cancelled: bool) -> None:
    """Somebody asks for a sign of life just then, or a cancelled run is not over yet."""
    runner, job = engine(rig), rig.job(max_tokens=5)

    async def scenario() -> None:
        async with runner._line:
            running = asyncio.create_task(runner.run(job, lambda progress: None))
            await asyncio.sleep(0)
            assert not running.done()
            if cancelled:
                running.cancel()
            else:
                runner.stop(job.id)
            await asyncio.sleep(0)
        if cancelled:
            with pytest.raises(asyncio.CancelledError):
                await running
            assert job.id not in runner._jobs
        else:
            assert (await running).status == "stopped"

    rig.loop.run(scenario())
    outcome, _ = rig.run(job)
    assert outcome.status == "finished"


def test_a_run_that_is_lost_before_its_first_boundary_keeps_in_mind_what_was_kept(rig: Rig) -> None:
    """Of an answer before, which was produced token by token."""
    first = rig.job(messages=chat("Tell me about a cat."), cache_key="talk")
    answer = rig.run(first)[0].text
    rig.runner.forget(first.id)
    job = rig.job(messages=chat("Tell me about a cat.", answer, "And then?"), cache_key="talk")
    rig.runner.stop(job.id)
    outcome, seen = rig.run(job)
    assert (outcome.status, seen) == ("stopped", [])
    assert (1, rig.length - 1) in [(size, tokens) for size, tokens in engine(rig)._jobs[job.id].batches.runs]
    rig.runner.forget(job.id)


def test_an_engine_killed_while_loading_is_replaced(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    send = ChildProcess.send

    def send_and_strike(process: ChildProcess, line: Line) -> None:
        send(process, line)
        if line["do"] == "load":
            os.kill(process.pid, signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(ChildProcess, "send", send_and_strike)
        with pytest.raises(EngineLost, match="SIGKILL"):
            rig.load("two")
    rig.load()
    assert rig.run(rig.job(max_tokens=1))[0].status == "finished"


def test_a_hanging_engine_is_found_killed_and_replaced(rig: Rig) -> None:
    pid = engine(rig).pid
    assert pid is not None
    lost = signalled(rig, signal.SIGSTOP, at_token=3)
    assert "no sign of life" in str(lost)
    assert not psutil.pid_exists(pid)
    rig.load()
    assert rig.run(rig.job(id="struck"))[0].text == rig.whole(GREEDY).text


def test_an_engine_that_hangs_while_idle_is_killed_before_anybody_needs_it(smollm2: InstalledModel) -> None:
    rig = make_rig("llama.cpp", smollm2, kv_budget_bytes=1 << 20, watchdog_s=1.0)
    rig.load()
    process = engine(rig)._process
    assert process is not None
    strike(engine(rig), signal.SIGSTOP)
    rig.loop.run(process._process.wait())
    assert engine(rig).pid is None
    with pytest.raises(EngineLost):
        rig.run(rig.job())
    rig.close()


def test_an_engine_that_died_while_idle_is_found_at_the_next_run(rig: Rig) -> None:
    strike(engine(rig))
    with pytest.raises(EngineLost):
        rig.run(rig.job())
    rig.load()
    assert rig.run(rig.job(max_tokens=1))[0].status == "finished"


def test_a_cancelled_load_leaves_the_runner_ready(rig: Rig) -> None:
    async def cancel() -> None:
        loading = asyncio.create_task(rig.runner.load("two"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading

    rig.loop.run(cancel())
    rig.load()
    assert rig.run(rig.job(max_tokens=1))[0].status == "finished"


def test_unloading_twice_and_closing_twice_is_harmless(rig: Rig) -> None:
    pid = engine(rig).pid
    assert pid is not None
    for _ in range(2):
        rig.loop.run(rig.runner.unload())
    for _ in range(2):
        rig.loop.run(rig.runner.aclose())
    assert not psutil.pid_exists(pid)


def test_an_idle_engine_lives_on(smollm2: InstalledModel) -> None:
    async def play() -> None:
        periods: list[float] = []
        enough = asyncio.Event()

        async def sleep(seconds: float) -> None:
            periods.append(seconds)
            if len(periods) > 3:
                enough.set()
                await asyncio.Event().wait()

        runner = EngineRunner(
            Shelf(smollm2), options("llama.cpp", watchdog_s=WATCHDOG_S), SystemClock(), sleep
        )
        await runner.load("one")
        pid = runner.pid
        await enough.wait()
        assert periods == [WATCHDOG_S] * 4
        assert runner.pid == pid is not None
        job = RunnerJob(id="j", cache_key="j", prompt="Hi", max_tokens=1, sampling=GREEDY)
        assert (await runner.run(job, lambda progress: None)).status == "finished"
        assert runner.pid == pid
        await runner.aclose()

    asyncio.run(play())


@pytest.mark.parametrize("byte", [b"\xff", b"\x00"], ids=["NaN", "zeros"])
def test_weights_overwritten_on_disk_are_refused_with_their_file(
    smollm2: InstalledModel, tmp_path: Path, byte: bytes
) -> None:
    assert smollm2.gguf_path is not None
    broken = tmp_path / "broken.gguf"
    shutil.copyfile(smollm2.gguf_path, broken)
    half = broken.stat().st_size // 2
    with broken.open("r+b") as file:
        file.seek(half)
        file.write(byte * half)
    rig = make_rig("llama.cpp", smollm2.model_copy(update={"gguf_path": broken}))
    with pytest.raises(ModelDamaged, match=r"one in .*broken\.gguf are damaged.*uniun models pull one"):
        rig.load()
    rig.close()


PARENT = """
import asyncio, sys
from pathlib import Path
from data.clock import SystemClock
from data.inference.supervisor import EngineRunner
from domain.entities.models import InstalledModel
from domain.repositories.inference_runner import RunnerJob
from tests.data.inference.engines import GREEDY, Shelf, options

async def main():
    model = InstalledModel(name="one", source="test", size_bytes=1, gguf_path=Path(sys.argv[1]))
    runner = EngineRunner(Shelf(model), options("llama.cpp"), SystemClock())
    await runner.load("one")
    print(runner.pid, flush=True)
    while True:
        job = RunnerJob(id="j", cache_key="j", prompt="Once upon a time", max_tokens=400, sampling=GREEDY)
        await runner.run(job, lambda progress: None)

asyncio.run(main())
"""


def test_a_parent_killed_leaves_no_orphan(smollm2: InstalledModel) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(smollm2.gguf_path)], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        orphan = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    assert psutil.wait_procs([orphan], timeout=120)[1] == []


def test_the_back_end_is_chosen_by_machine_and_files(
    smollm2: InstalledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine_for(backend: str, **changes: object) -> str:
        model = smollm2.model_copy(update=changes)
        runner = EngineRunner(Shelf(model), EngineOptions.model_validate({"backend": backend}), SystemClock())

        async def load() -> str:
            try:
                return (await runner.load("one")).engine
            finally:
                await runner.aclose()

        return asyncio.run(load())

    assert engine_for("auto") == "llama.cpp"
    with pytest.raises(ModelLoadFailed, match="needs a GGUF file"):
        engine_for("llama.cpp", gguf_path=None)
    looked_in: list[threading.Thread] = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: looked_in.append(threading.current_thread()))
    with pytest.raises(EngineMissing, match="pip install cyllama"):
        engine_for("llama.cpp")
    assert looked_in
    assert threading.main_thread() not in looked_in  # the event loop has other things to do


def test_health_is_a_sign_of_life_of_the_process(rig: Rig) -> None:
    runner = engine(rig)
    assert rig.loop.run(runner.answers())
    os.kill(runner.pid or 0, signal.SIGSTOP)
    assert not rig.loop.run(runner.answers())  # it was hung, and is killed
    assert rig.loop.run(runner.answers())  # a new one
    with pytest.raises(EngineLost):  # so that whoever believes the model to be loaded loads it again
        rig.run(rig.job(id="early"))
    rig.load()
    during: list[asyncio.Task[bool]] = []

    def emit(progress: RunnerProgress) -> None:
        if progress.tokens_done == 2:
            during.append(asyncio.ensure_future(runner.answers()))

    async def main() -> bool:
        await rig.runner.run(rig.job(id="healthy"), emit)
        return await during[0]

    assert rig.loop.run(main())
