"""What every runner must do, whichever engine is behind it."""

import asyncio

import pytest

from data.inference.fake import FakeRunner
from domain.entities.llm import Sampling
from domain.errors import EngineError, EngineLost, InvalidRequest, PromptTooLong, UnknownModel
from domain.repositories.inference_runner import RunnerJob, RunnerProgress
from tests.data.inference.engines import CONTEXT_TOKENS, GREEDY, SAMPLED, Rig, chat, engine, strike

TEN_CUTS = 22
"""Tokens of an answer that is cut so often; a stop lets one or two more come."""
SAMPLINGS = pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])


def test_load_says_what_is_loaded(rig: Rig) -> None:
    loaded = rig.loop.run(rig.runner.load("one"))
    assert loaded.name == "one"
    assert loaded.engine == rig.kind
    assert loaded.context_tokens == CONTEXT_TOKENS


def test_an_unknown_model_leaves_nothing_resident(rig: Rig) -> None:
    with pytest.raises(UnknownModel):
        rig.load("no such model")
    with pytest.raises(EngineError, match="No model is loaded"):
        rig.run(rig.job())


def test_streaming_equals_the_final_text(rig: Rig) -> None:
    job = rig.job()
    outcome, seen = rig.run(job)
    assert outcome.status == "finished"
    assert outcome.text == "".join(progress.text for progress in seen)
    assert outcome.text
    counts = [progress.tokens_done for progress in seen]
    assert counts == sorted(counts)
    assert outcome.tokens_done == counts[-1] == outcome.usage.completion_tokens <= rig.length
    assert seen[-1].prefilled_tokens == seen[-1].prompt_tokens == outcome.usage.prompt_tokens


def test_the_length_limit_ends_the_answer(rig: Rig) -> None:
    outcome, _ = rig.run(rig.job(max_tokens=3))
    assert (outcome.finish_reason, outcome.tokens_done) == ("length", 3)


@SAMPLINGS
def test_many_cuts_change_nothing(rig: Rig, sampling: Sampling) -> None:
    whole, _ = rig.run(rig.job(sampling=sampling, max_tokens=TEN_CUTS))
    outcome, cuts, _ = rig.run_in_pieces(rig.job(sampling=sampling, max_tokens=TEN_CUTS))
    assert cuts >= 10
    assert outcome.text == whole.text
    assert outcome.finish_reason == whole.finish_reason


def test_the_seed_decides_the_text(rig: Rig) -> None:
    other = rig.whole(SAMPLED.model_copy(update={"seed": 12}))
    assert other.text != rig.whole(SAMPLED).text


def test_a_stop_in_prefill_loses_nothing(rig: Rig) -> None:
    prompt = "Once upon a time, in a small house, there lived an old man and a very clever cat. " * 8
    job = rig.job(prompt, max_tokens=6)
    first, seen = rig.run(job, stop_after=1)
    assert first.status == "stopped"
    assert seen[-1].tokens_done == 0
    assert 0 < seen[-1].prefilled_tokens < seen[-1].prompt_tokens
    second, again = rig.run(job)
    assert again[0].prefilled_tokens > seen[-1].prefilled_tokens
    whole, _ = rig.run(rig.job(prompt, max_tokens=6))
    assert second.text == whole.text


def test_a_stop_before_the_run_has_begun_is_not_lost(rig: Rig) -> None:
    job = rig.job()
    rig.runner.stop(job.id)
    outcome, seen = rig.run(job)
    assert outcome.status == "stopped"
    assert len(seen) <= 1
    assert rig.run(job)[0].status == "finished"


@SAMPLINGS
def test_another_job_in_between_changes_nothing(rig: Rig, sampling: Sampling) -> None:
    job = rig.job(sampling=sampling)
    first, _ = rig.run(job, stop_after=7)
    assert first.status == "stopped"
    rig.run(rig.job("Another story begins with", max_tokens=4))
    second, _ = rig.run(job)
    assert second.text == rig.whole(sampling).text


def test_a_swap_to_another_model_and_back_changes_nothing(rig: Rig) -> None:
    job = rig.job()
    first, _ = rig.run(job, stop_after=8)
    rig.load("two")
    rig.run(rig.job("Hello", max_tokens=2))
    rig.load("one")
    second, seen = rig.run(job)
    assert first.text
    assert second.text == first.text + "".join(progress.text for progress in seen)
    assert second.text == rig.whole(GREEDY).text


def test_the_next_turn_prefills_only_what_is_new(rig: Rig) -> None:
    first, _ = rig.run(rig.job(cache_key="talk", messages=chat("Say hello."), max_tokens=6))
    rig.run(rig.job("Something else entirely", max_tokens=2))
    turn = chat("Say hello.", first.text, "And now?")
    second, seen = rig.run(rig.job(cache_key="talk", messages=turn, max_tokens=2))
    usage = second.usage
    assert first.usage.prompt_tokens <= usage.cached_tokens + 1
    assert seen[0].prefilled_tokens > usage.cached_tokens
    assert 0 < usage.prompt_tokens - usage.cached_tokens < usage.prompt_tokens / 2


@pytest.mark.parametrize("words", [1, 40])
def test_the_same_prompt_again_has_the_same_answer_and_is_mostly_kept(rig: Rig, words: int) -> None:
    prompt = "Once upon a time " * words
    first, _ = rig.run(rig.job(prompt, cache_key=f"again-{words}"))
    for _ in range(2):
        again, _ = rig.run(rig.job(prompt, cache_key=f"again-{words}"))
        assert again.text == first.text
        assert 0 < again.usage.prompt_tokens - again.usage.cached_tokens < 72


def test_a_stop_string_across_tokens_is_never_shown(rig: Rig) -> None:
    text = rig.whole(GREEDY).text
    middle = text.index(" ", len(text) // 2)
    stop = text[middle - 2 : middle + 3]
    outcome, seen = rig.run(rig.job(stop=(stop, "no such text")))
    assert outcome.finish_reason == "stop"
    assert outcome.text == text[: text.index(stop)] == "".join(progress.text for progress in seen)
    cut, _, _ = rig.run_in_pieces(rig.job(stop=(stop, "no such text")), boundaries=3)
    assert cut.text == outcome.text


def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(rig: Rig) -> None:
    with pytest.raises(PromptTooLong) as caught:
        rig.run(rig.job("word " * 600))
    assert caught.value.context_tokens == CONTEXT_TOKENS
    assert 600 <= caught.value.prompt_tokens <= 602
    assert rig.run(rig.job(max_tokens=1))[0].status == "finished"


def test_an_empty_prompt_is_refused(rig: Rig) -> None:
    with pytest.raises(InvalidRequest, match="empty"):
        rig.run(rig.job(""))


def lose_engine(rig: Rig, job: RunnerJob) -> None:
    """At the first boundary of the job's run."""

    def lose(progress: RunnerProgress) -> None:
        if isinstance(rig.runner, FakeRunner):
            rig.runner.lose_engine()
        else:
            strike(engine(rig))

    with pytest.raises(EngineLost):
        rig.loop.run(rig.runner.run(job, lose))


def test_a_lost_engine_is_replaced_and_the_answer_is_the_same(rig: Rig) -> None:
    job = rig.job()
    rig.run(job, stop_after=5)
    lose_engine(rig, job)
    with pytest.raises(EngineError):
        rig.run(job)
    rig.load()
    outcome, _ = rig.run(job)
    assert outcome.text == rig.whole(GREEDY).text


@pytest.mark.parametrize("boundary", [1, 4])
def test_a_later_turn_that_is_lost_goes_on_as_if_nothing_had_happened(rig: Rig, boundary: int) -> None:
    """Its prompt begins with an answer that was produced token by token, and so it is evaluated again."""
    first = rig.job(messages=chat("Tell me about a cat."), cache_key=f"talk-{boundary}")
    answer = rig.run(first)[0].text
    rig.runner.forget(first.id)

    def turn() -> RunnerJob:
        return rig.job(messages=chat("Tell me about a cat.", answer, "And then?"), cache_key=first.cache_key)

    job = turn()
    whole, _ = rig.run(job)
    rig.runner.forget(job.id)
    job = turn()
    rig.run(job, stop_after=boundary)
    lose_engine(rig, job)
    rig.load()
    outcome, _ = rig.run(job)
    assert outcome.text == whole.text
    rig.runner.forget(job.id)


def test_a_cancelled_run_leaves_the_runner_ready(rig: Rig) -> None:
    async def cancel() -> None:
        running = asyncio.create_task(rig.runner.run(rig.job(), lambda progress: begun.set()))
        begun = asyncio.Event()
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    rig.loop.run(cancel())
    assert rig.run(rig.job())[0].text == rig.whole(GREEDY).text


def test_an_emit_that_fails_leaves_the_runner_ready(rig: Rig) -> None:
    def fail(progress: RunnerProgress) -> None:
        raise KeyError("the caller's own mistake")

    with pytest.raises(KeyError):
        rig.loop.run(rig.runner.run(rig.job(), fail))
    assert rig.run(rig.job(max_tokens=2))[0].status == "finished"
