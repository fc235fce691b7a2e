"""What the texts of llama.cpp depend on."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from data.clock import SystemClock
from data.inference.llama_backend import LEAST_CHUNK, MOST_CHUNK, LlamaBackend
from data.inference.options import EngineOptions
from data.inference.prefill import ChunkSizer
from data.inference.token_loop import TokenLoop
from domain.entities.llm import Sampling
from domain.entities.models import InstalledModel
from domain.repositories.inference_runner import RunnerJob

PROMPT = [1000 + 37 * at % 3000 for at in range(700)]


def opened(model: InstalledModel) -> LlamaBackend:
    assert model.gguf_path is not None
    options = EngineOptions(kv_budget_bytes=1 << 20, context_tokens=1024, threads=2)
    return LlamaBackend(model.gguf_path, options, SystemClock())


@pytest.fixture
def backend(smollm2: InstalledModel) -> Iterator[LlamaBackend]:
    made = opened(smollm2)
    yield made
    made.close()


def logits(backend: LlamaBackend, chunks: Sequence[int]) -> NDArray[np.float32]:
    backend.clear(0)
    start = 0
    for size in chunks:
        backend.evaluate(0, PROMPT[start : start + size], start, want_logits=False)
        start += size
    backend.evaluate(0, PROMPT[start : start + 1], start, want_logits=True)
    return backend.logits()


@pytest.mark.model
def test_a_prompts_state_is_the_same_bits_in_whatever_chunks_it_is_read(backend: LlamaBackend) -> None:
    """Of llama.cpp on the CPU; what a stop, a lost engine, a kept prefix and the machine's speed must not change."""
    first = logits(backend, [LEAST_CHUNK + MOST_CHUNK - 1] * 6)
    for size in (3, 7, 9, 21, 27):  # divisors of 378: no rest is shorter than three
        assert (logits(backend, [size] * (378 // size)) == first).all(), size


@pytest.mark.model
@pytest.mark.parametrize("kept", [3, 40, 300, 479])
def test_a_kept_prefix_leaves_the_bits_of_a_prompt_that_is_read_whole(
    backend: LlamaBackend, kept: int
) -> None:
    sizes = ChunkSizer(0.4, LEAST_CHUNK, MOST_CHUNK)

    def chunks(missing: int) -> list[int]:
        found = []
        while missing:
            found.append(sizes.size(missing))
            missing -= found[-1]
        return found

    assert (logits(backend, chunks(kept) + chunks(500 - kept)) == logits(backend, chunks(500))).all()


@pytest.mark.model
@pytest.mark.parametrize("prompt_tokens", [40, 300, 500])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_lost_job_goes_on_as_if_nothing_had_happened(
    smollm2: InstalledModel, prompt_tokens: int, temperature: float
) -> None:
    """In a long context a single token is computed by other kernels than several."""
    backend = opened(smollm2)
    loop = TokenLoop(backend, EngineOptions(), SystemClock())
    try:
        text = "".join(backend.vocabulary.piece(token).decode("utf-8", "ignore") for token in PROMPT)
        job = RunnerJob(
            id="j",
            cache_key="j",
            prompt=text[: 4 * prompt_tokens],
            max_tokens=40,
            sampling=Sampling(temperature=temperature, seed=5),
        )
        produced: list[int] = []

        def note(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
            if token is not None:
                produced.append(token)

        def ignore(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
            pass

        whole = loop.run(job, [], note, lambda: False)
        for lost_after in (1, 20):
            again = TokenLoop(backend, EngineOptions(), SystemClock())
            backend.clear(0)
            outcome = again.run(job, produced[:lost_after], ignore, lambda: False)
            assert outcome.text == whole.text
    finally:
        loop.close()
