"""What becomes of answers on llama.cpp's server and on mlx_lm's: stopped, resumed, and their server killed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from data.inference.remote.runner import RemoteRunner
from domain.entities.models import InstalledModel
from domain.errors import EngineError, InvalidRequest, ModelLoadFailed, PromptTooLong, UnknownModel
from domain.repositories.inference_runner import RunnerJob, RunnerOutcome, RunnerProgress
from tests.data.inference.engines import CONTEXT_TOKENS, Rig, chat
from tests.data.inference.remote.conftest import KINDS, real_server, remote_rig
from tests.data.inference.remote.servers import RealServer, free_port

pytestmark = pytest.mark.model

STORY = chat("Tell me a story about a cat.")


def remote(rig: Rig) -> RemoteRunner:
    assert isinstance(rig.runner, RemoteRunner)
    return rig.runner


def texts(seen: list[RunnerProgress]) -> int:
    return sum(bool(progress.text) for progress in seen)


def run_and_after(
    rig: Rig, job: RunnerJob, tokens: int, act: Callable[[], None]
) -> tuple[RunnerOutcome, list[RunnerProgress]]:
    """Runs the job and acts once, when so many tokens have come."""
    seen: list[RunnerProgress] = []

    def emit(progress: RunnerProgress) -> None:
        seen.append(progress)
        if progress.text and texts(seen) == tokens:
            act()

    return rig.loop.run(rig.runner.run(job, emit)), seen


def test_llama_says_what_it_serves(llama: Rig) -> None:
    loaded = llama.loop.run(llama.runner.load("one"))
    assert (loaded.engine, loaded.context_tokens, loaded.memory_bytes) == ("remote", CONTEXT_TOKENS, 0)
    (state,) = llama.loop.run(remote(llama).states())
    assert (state.kind, state.jobs, state.error) == ("llama.cpp", 2, None)
    with pytest.raises(UnknownModel):
        llama.load("two")


def test_whether_a_server_continues_a_text_is_measured(llama: Rig, mlx: Rig) -> None:
    assert llama.loop.run(remote(llama).pool.servers[0].goes_on())
    assert not mlx.loop.run(remote(mlx).pool.servers[0].goes_on())


def test_a_stopped_chat_goes_on_where_it_was(llama: Rig) -> None:
    whole, _ = llama.run(llama.job(messages=STORY))
    job = llama.job(messages=STORY)
    shown, runs = "", 0
    while True:
        outcome, seen = run_and_after(llama, job, 4, lambda: llama.runner.stop(job.id))
        runs += 1
        shown += "".join(progress.text for progress in seen)
        assert outcome.text == shown
        if outcome.status == "finished":
            break
    assert runs >= 5
    assert outcome.text == whole.text
    assert outcome.tokens_done == whole.tokens_done
    assert outcome.usage.prompt_tokens == whole.usage.prompt_tokens


def test_raw_text_goes_on_on_any_server(mlx: Rig) -> None:
    job = mlx.job()
    first, _ = run_and_after(mlx, job, 5, lambda: mlx.runner.stop(job.id))
    assert first.status == "stopped"
    second, _ = mlx.run(job)
    assert second.status == "finished"
    assert second.text.startswith(first.text)
    assert second.tokens_done > first.tokens_done


def test_where_a_chat_cannot_go_on_it_is_finished(mlx: Rig) -> None:
    job = mlx.job(messages=STORY)
    outcome, _ = run_and_after(mlx, job, 3, lambda: mlx.runner.stop(job.id))
    assert (outcome.status, outcome.tokens_done) == ("finished", mlx.length)


def test_a_stop_before_the_run_asks_nothing_of_the_server(llama: Rig) -> None:
    job = llama.job()
    llama.runner.stop(job.id)
    outcome, seen = llama.run(job)
    assert (outcome.status, seen) == ("stopped", [])
    assert llama.run(job)[0].status == "finished"


def test_two_jobs_run_at_once(llama: Rig) -> None:
    """Each has tokens before the other ends."""
    order: list[str] = []

    async def both() -> None:
        jobs = [llama.job(messages=chat(f"Tell me a story about a {animal}.")) for animal in ("cat", "dog")]
        await asyncio.gather(
            *(llama.runner.run(job, lambda p, name=job.id: order.append(name)) for job in jobs)  # type: ignore[misc]
        )

    llama.loop.run(both())
    first = order[0]
    assert any(name != first for name in order[: len(order) - order[::-1].index(first) - 1])


def test_a_prompt_that_is_too_long_is_told_with_both_numbers(llama: Rig) -> None:
    with pytest.raises(PromptTooLong) as caught:
        llama.run(llama.job("word " * 600))
    assert caught.value.context_tokens == CONTEXT_TOKENS
    assert 600 <= caught.value.prompt_tokens <= 602


def test_an_answer_by_a_schema_is_not_cut(llama: Rig) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    job = llama.job(messages=chat("Name a cat as JSON."), json_schema=schema, max_tokens=40)
    outcome, _ = run_and_after(llama, job, 2, lambda: llama.runner.stop(job.id))
    assert outcome.status == "finished"
    assert outcome.text.lstrip().startswith("{")


@pytest.mark.parametrize("kind", KINDS)
def test_one_of_two_servers_is_killed_in_the_middle_of_an_answer(
    kind: str, smollm2: InstalledModel, server: Callable[[str], RealServer]
) -> None:
    with real_server(kind, smollm2) as one:
        rig = remote_rig(one, server(kind))  # of two that are idle the first is asked
        try:
            whole, _ = rig.run(rig.job(messages=STORY, max_tokens=8))
            job = rig.job(messages=STORY, max_tokens=8)

            def kill() -> None:
                (busy,) = [server for server in remote(rig).pool.servers if server.active]
                assert busy.url == one.url
                one.kill()

            outcome, seen = run_and_after(rig, job, 3, kill)
            assert outcome.status == "finished"
            assert outcome.text == whole.text == "".join(progress.text for progress in seen)
            assert rig.run(rig.job(messages=STORY, max_tokens=8))[0].text == whole.text, (
                "the dead one is left alone"
            )
        finally:
            rig.close()


def test_the_only_server_is_killed_and_comes_back(smollm2: InstalledModel) -> None:
    with real_server("llama.cpp", smollm2, slots=1, port=free_port()) as server:
        rig = remote_rig(server)
        try:
            whole, _ = rig.run(rig.job(messages=STORY))

            def restart() -> None:
                server.kill()
                server.start()

            outcome, _ = run_and_after(rig, rig.job(messages=STORY), 5, restart)
            assert outcome.text == whole.text
        finally:
            rig.close()


def test_no_server_is_told_plainly() -> None:
    async def no_pause(seconds: float) -> None:
        assert seconds >= 0

    rig = remote_rig(RealServer("llama.cpp", Path("m"), port=free_port()), sleep=no_pause)
    try:
        with pytest.raises(ModelLoadFailed, match=r"No server of one can be used\. The server at http://127"):
            rig.load()
        with pytest.raises(EngineError, match=r"could not answer, after 6 attempts\. .* cannot be reached"):
            rig.run(rig.job())
        with pytest.raises(InvalidRequest):
            rig.run(rig.job(""))
    finally:
        rig.close()
