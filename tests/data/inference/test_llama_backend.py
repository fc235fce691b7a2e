"""What the texts of llama.cpp depend on."""

import numpy as np
import pytest
from numpy.typing import NDArray

from data.inference.llama_backend import LlamaBackend
from data.inference.options import EngineOptions
from domain.entities.models import InstalledModel


@pytest.mark.model
def test_a_prompts_state_is_the_same_bits_in_whatever_chunks_it_is_read(smollm2: InstalledModel) -> None:
    """Of llama.cpp on the CPU; what a stop, a lost engine and the machine's speed must not change."""
    assert smollm2.gguf_path is not None
    backend = LlamaBackend(smollm2.gguf_path, EngineOptions(kv_budget_bytes=1 << 20))
    try:
        prompt = [1000 + 37 * at % 3000 for at in range(190)]

        def logits(chunk: int) -> NDArray[np.float32]:
            backend.clear(0)
            for start in range(0, 189, chunk):
                part = prompt[start : min(189, start + chunk)]
                backend.evaluate(0, part, start, want_logits=False)
            backend.evaluate(0, prompt[189:], 189, want_logits=True)
            return backend.logits()

        first = logits(63)
        for chunk in (3, 7, 9, 21, 27):  # divisors of 189: no rest is shorter than three
            assert (logits(chunk) == first).all(), chunk
    finally:
        backend.close()
