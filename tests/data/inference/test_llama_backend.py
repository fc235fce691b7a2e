"""What the texts of llama.cpp depend on."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from data.clock import SystemClock
from data.inference.llama_backend import TILE, LlamaBackend
from data.inference.options import EngineOptions
from domain.entities.models import InstalledModel

PROMPT = [1000 + 37 * at % 3000 for at in range(400)]


@pytest.fixture
def backend(smollm2: InstalledModel) -> Iterator[LlamaBackend]:
    assert smollm2.gguf_path is not None
    made = LlamaBackend(smollm2.gguf_path, EngineOptions(kv_budget_bytes=1 << 20, threads=2), SystemClock())
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
def test_a_prompts_state_is_the_same_bits_in_whatever_chunks_of_one_kind_it_is_read(
    backend: LlamaBackend,
) -> None:
    """Of llama.cpp on the CPU; what a stop, a lost engine and the machine's speed must not change."""
    short = logits(backend, [63] * 3)
    for size in (3, 7, 9, 21, 27):  # divisors of 189: no rest is shorter than three
        assert (logits(backend, [size] * (189 // size)) == short).all(), size
    tiled = logits(backend, [189, 189])
    for chunks in ([TILE] * 4 + [122], [191, 187], [97, 101, 65, 115], [128, 128, 122], [TILE, 190, 124]):
        assert (logits(backend, chunks) == tiled).all(), chunks


@pytest.mark.model
def test_chunks_are_long_where_one_takes_no_longer_than_a_stop_may_throw_away(
    smollm2: InstalledModel,
) -> None:
    path = smollm2.gguf_path
    assert path is not None

    def chunks(threads: int, interruptible_chunk_s: float) -> tuple[int, int]:
        options = EngineOptions(
            kv_budget_bytes=1 << 20, threads=threads, interruptible_chunk_s=interruptible_chunk_s
        )
        made = LlamaBackend(path, options, SystemClock())
        try:
            return made.least_chunk, made.most_chunk
        finally:
            made.close()

    least, most = chunks(2, 0.4)
    assert least >= TILE
    assert most >= least
    least, most = chunks(1, 0.1)
    assert most + least - 1 < TILE
