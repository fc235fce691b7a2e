"""What the texts of llama.cpp depend on."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from data.clock import SystemClock
from data.inference.batches import Batches
from data.inference.kv_cache import KvCache
from data.inference.llama_backend import CHUNKS, SHORT_CHUNKS, LlamaBackend
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
@pytest.mark.parametrize(
    ("tokens", "chunking"),
    [
        (640, ([64] * 10, [320] * 2, [504, 136], [72, 104, 88, 120, 96, 160])),
        (63, ([63], [8] * 6 + [15], [16, 24, 23], [40, 23])),
    ],
)
def test_a_prompts_state_is_the_same_bits_in_whatever_chunks_of_a_kind_it_is_read(
    backend: LlamaBackend, tokens: int, chunking: tuple[list[int], ...]
) -> None:
    """Of llama.cpp on the CPU; what a stop and the machine's speed must not change."""
    assert all(sum(chunks) == tokens for chunks in chunking)
    first, *others = (logits(backend, chunks) for chunks in chunking)
    for chunks, other in zip(chunking[1:], others, strict=True):
        assert (other == first).all(), chunks


def test_what_the_chunks_are_for() -> None:
    """Below 64 tokens and from 64 on; see the test above."""
    assert CHUNKS[0] == 64
    assert sum(SHORT_CHUNKS) == 64


@pytest.mark.model
@pytest.mark.parametrize(
    ("tokens", "kept"), [(50, 3), (50, 40), (50, 300), (100, 3), (100, 63), (500, 64), (500, 450), (500, 499)]
)
def test_a_kept_prefix_leaves_the_bits_of_a_prompt_that_is_read_whole(
    backend: LlamaBackend, tokens: int, kept: int
) -> None:
    """Of a prompt before, of which so many tokens are the same, whether it was longer or not."""

    def read(kv: KvCache, job: str, prompt: list[int]) -> NDArray[np.float32]:
        slot = kv.take(job, job, prompt)
        sizes = ChunkSizer(0.4, backend.least_chunk, backend.most_chunk)
        while (missing := len(prompt) - (held := len(slot.tokens))) > 0:
            chunk = prompt[held : held + sizes.size(missing)]
            kv.evaluate(slot, chunk, want_logits=len(chunk) == missing)
        found = backend.logits()
        kv.end(job)
        return found

    prompt = PROMPT[:tokens]
    whole = read(KvCache(backend, 1 << 20), "whole", prompt)
    for other in ([*PROMPT[:kept], 5, 6], PROMPT[:kept] + PROMPT[kept + 1 : 600]):
        for sequence in range(backend.slots):
            backend.clear(sequence)
        kv = KvCache(backend, 1 << 20)
        read(kv, "before", other)
        assert (read(kv, "after", prompt) == whole).all()


@pytest.mark.model
@pytest.mark.parametrize(
    "chunks", [(5,), (50,), (100,), (500,), (1,), (128, 70), (90, 1, 1, 1, 20), (90, 1, 1, 100)]
)
@pytest.mark.parametrize("key", ["talk", "stranger"])
def test_a_question_that_is_asked_again_leaves_the_same_bits(
    backend: LlamaBackend, chunks: tuple[int, ...], key: str
) -> None:
    """After it was answered, also where its prompt ends with a short question behind an earlier answer."""
    kv = KvCache(backend, 1 << 20)
    prompt = PROMPT[: sum(chunks)]
    slot = kv.take("first", "talk", prompt)
    for size in chunks:
        held = len(slot.tokens)
        kv.evaluate(slot, prompt[held : held + size], want_logits=held + size == len(prompt))
    first = backend.logits()
    for token in range(3):
        kv.evaluate(slot, [token], want_logits=True)
    kv.end("first")
    for turn in range(2):
        slot = kv.take(f"again-{turn}", key, prompt)
        rest = prompt[len(slot.tokens) :]
        assert 0 < len(rest) < 72
        kv.evaluate(slot, rest, want_logits=True)
        assert (backend.logits() == first).all()
        kv.end(f"again-{turn}")


@pytest.mark.model
@pytest.mark.parametrize("question", [20, 120])
def test_a_state_that_is_lost_in_a_conversation_is_made_anew_bit_by_bit(
    backend: LlamaBackend, question: int
) -> None:
    """With what earlier turns had produced one by one, and with a batch that was cut."""
    kv = KvCache(backend, 1 << 20)
    first = kv.take("turn-1", "talk", PROMPT)
    for size in (100, *[1] * 30, 120):
        held = len(first.tokens)
        kv.evaluate(first, PROMPT[held : held + size], want_logits=False)
    kv.end("turn-1")
    prompt = PROMPT[:200] + PROMPT[300 : 300 + question]
    second = kv.take("turn-2", "talk", prompt)
    assert len(second.tokens) == 200
    kv.evaluate(second, prompt[200:-10], want_logits=False)
    kv.evaluate(second, prompt[-10:], want_logits=True)
    expected = backend.logits()

    def made(batches: Batches | None) -> NDArray[np.float32]:
        backend.clear(0)
        again = KvCache(backend, 1 << 20)
        slot = again.take("turn-2", "talk", prompt, batches)
        while (held := len(slot.tokens)) < len(prompt) - 10:
            size = (slot.batches.at(held) or (300, 300))[1]
            again.evaluate(slot, prompt[held : min(held + size, len(prompt) - 10)], want_logits=False)
        again.evaluate(slot, prompt[-10:], want_logits=True)
        return backend.logits()

    assert (made(second.batches) == expected).all()
    assert not (made(None) == expected).all()  # the numbers do depend on it


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
        batches = Batches()

        def note(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
            nonlocal batches
            if token is not None:
                produced.append(token)
            if done <= 1:
                batches = Batches(loop.batches("j").runs)

        def ignore(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
            pass

        whole = loop.run(job, [], note, lambda: False)
        for lost_after in (1, 20):
            again = TokenLoop(backend, EngineOptions(), SystemClock())
            backend.clear(0)
            outcome = again.run(job, produced[:lost_after], ignore, lambda: False, batches)
            assert outcome.text == whole.text
    finally:
        loop.close()
