import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest

from data.embedding.minilm import DIMENSIONS, WINDOW_TOKENS, MiniLm, erf
from domain.errors import ModelDamaged

pytestmark = pytest.mark.model


def test_values_that_two_other_implementations_gave(minilm: MiniLm) -> None:
    first = minilm.embed("This is an example sentence")
    second = minilm.embed("Each sentence is converted")

    expected = [0.0676569, 0.0634959, 0.0487131, 0.0793050, 0.0374480, 0.0026528]
    assert first[:6].tolist() == pytest.approx(expected, abs=1e-6)
    assert float(first @ second) == pytest.approx(0.404559, abs=1e-6)
    assert first.shape == (DIMENSIONS,)
    assert first.dtype == np.float32


@pytest.mark.parametrize("text", ["", " ", "a", "日本語 🇩🇪 \0 \ud7ff", "word " * 10_000, "x" * 1_000_000])
def test_every_text_has_a_vector_of_length_one(minilm: MiniLm, text: str) -> None:
    vector = minilm.embed(text)

    assert np.isfinite(vector).all()
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


def test_what_lies_past_the_window_does_not_count(minilm: MiniLm) -> None:
    words = "note " * (WINDOW_TOKENS - 2)  # with the tokens at both ends, exactly the window

    assert np.array_equal(minilm.embed(words), minilm.embed(words + "and something else entirely"))
    assert not np.array_equal(minilm.embed(words), minilm.embed("different " + words))


def test_meaning_decides_and_not_the_words(minilm: MiniLm) -> None:
    question = minilm.embed("How do I look after my houseplants?")
    near = minilm.embed("Water the ferns twice a week and keep them out of direct sun.")
    far = minilm.embed("The plant manager signed the quarterly steel contract.")

    assert float(question @ near) > float(question @ far) + 0.1


def test_step_can_stop_it_after_a_layer(minilm: MiniLm) -> None:
    layers: list[int] = []

    def stop(layer: int) -> None:
        layers.append(layer)
        if layer == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        minilm.embed("text", stop)
    assert layers == [1, 2]


def test_erf_is_exact_to_float32() -> None:
    points = np.linspace(-6, 6, 20_001, dtype=np.float32)

    worst = max(abs(float(ours) - math.erf(float(x))) for ours, x in zip(erf(points), points, strict=True))

    assert worst < 5e-7


def test_files_that_are_no_embedder(minilm: MiniLm, tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match="cannot be loaded"):
        MiniLm(tmp_path)

    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelDamaged, match="cannot be loaded"):
        MiniLm(tmp_path)
    minilm._tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelDamaged, match="is not all-MiniLM-L6-v2"):
        MiniLm(tmp_path)
