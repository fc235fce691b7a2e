"""all-MiniLM-L6-v2 in numpy: a sentence to a vector of 384 numbers.

A BERT encoder of six layers (Devlin et al. 2019; weights by Wang et al. 2020 and sentence-transformers), then the
mean over all tokens, then length 1. One text at a time, so there is no padding and no mask.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from domain.errors import ModelDamaged

Array = npt.NDArray[np.float32]

DIMENSIONS = 384
WINDOW_TOKENS = 256
_LAYERS, _HEADS, _INNER, _LAYER_NORM_EPS = 6, 12, 1536, 1e-12
# The longest word piece is bounded too, so text far past the window need not reach the tokenizer.
MAX_CHARACTERS = 64 * WINDOW_TOKENS
# erf(x) = x P(x^2) / Q(x^2) for |x| <= 4, within 4e-7; coefficients from Eigen's float32 erf, highest power first.
_ERF_P = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_Q = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
)  # fmt: skip


class MiniLm:
    """Weights and tokenizer; `embed` may run in several threads at once."""

    def __init__(self, folder: Path) -> None:
        """Loads `model.safetensors` and `tokenizer.json`. Raises `ModelDamaged` if they do not fit the network."""
        try:
            weights: dict[str, Array] = load_file(folder / "model.safetensors")
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # tokenizers raises nothing narrower
            raise ModelDamaged(f"The embedder in {folder} cannot be loaded: {error}.") from error
        _check_shapes(folder, weights)
        # The lane runs texts side by side. BLAS threads below that only fight over the cores, with each other and with
        # the engine: on two busy cores a short note took 340 ms with two BLAS threads and 13 ms with one.
        threadpool_limits(limits=1, user_api="blas")
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(WINDOW_TOKENS)
        self._embeddings = {name: value for name, value in weights.items() if name.startswith("embeddings.")}
        self._layers = [_layer(weights, i) for i in range(_LAYERS)]

    def embed(self, text: str, step: Callable[[int], None] = lambda layer: None) -> Array:
        """(384,) of length 1; text past 256 tokens is cut. `step` is called after each layer and may raise."""
        # The tokenizer takes no half of a surrogate pair.
        sound = text[:MAX_CHARACTERS].encode(errors="replace").decode()
        ids = self._tokenizer.encode(sound).ids
        w = self._embeddings
        x = w["embeddings.word_embeddings.weight"][ids]
        x += w["embeddings.position_embeddings.weight"][: len(ids)]
        x += w["embeddings.token_type_embeddings.weight"][0]
        x = _layer_norm(x, w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"])
        for number, layer in enumerate(self._layers, start=1):
            x = _encode(x, layer)
            step(number)
        mean = x.mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


def _layer(weights: Mapping[str, Array], index: int) -> dict[str, Array]:
    """One layer's weights by short name. q, k and v stand side by side so that one product makes all three; matrices are
    (inputs, outputs) in memory, which is a third faster for few tokens."""
    prefix = f"encoder.layer.{index}."
    layer = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
    for part in ("weight", "bias"):
        layer[f"qkv.{part}"] = np.concatenate(
            [layer.pop(f"attention.self.{name}.{part}") for name in ("query", "key", "value")]
        )
    return {name: np.ascontiguousarray(value.T) for name, value in layer.items()}


def _encode(x: Array, w: Mapping[str, Array]) -> Array:
    """One transformer layer, (tokens, 384) to the same; layer norm after each half, as BERT has it."""
    tokens = len(x)
    qkv = _linear(x, w, "qkv").reshape(tokens, 3, _HEADS, DIMENSIONS // _HEADS).transpose(1, 2, 0, 3)
    q, k, v = qkv  # each (heads, tokens, 32)
    scores = np.matmul(q, k.transpose(0, 2, 1), dtype=np.float32)
    scores *= np.float32((DIMENSIONS // _HEADS) ** -0.5)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    attended = np.matmul(scores, v, dtype=np.float32).transpose(1, 0, 2).reshape(tokens, DIMENSIONS)
    half: Array = _linear(attended, w, "attention.output.dense")
    half += x
    half = _norm(half, w, "attention.output.LayerNorm")
    whole: Array = _linear(_gelu(_linear(half, w, "intermediate.dense")), w, "output.dense")
    whole += half
    return _norm(whole, w, "output.LayerNorm")


def _linear(x: Array, w: Mapping[str, Array], name: str) -> Array:
    result: Array = x @ w[f"{name}.weight"]
    result += w[f"{name}.bias"]
    return result


def _norm(x: Array, w: Mapping[str, Array], name: str) -> Array:
    return _layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"])


def _layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    x = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(x).mean(axis=-1, keepdims=True)
    x /= np.sqrt(variance + np.float32(_LAYER_NORM_EPS))
    x *= weight
    x += bias
    return x


def _gelu(x: Array) -> Array:
    """x times the normal distribution up to x, by erf and not by the tanh that approximates it."""
    result = erf(x * np.float32(0.5**0.5))
    result += np.float32(1)
    result *= x
    result *= np.float32(0.5)
    return result


def erf(x: Array) -> Array:
    """Error function of every element, in float32."""
    x = np.clip(x, np.float32(-4), np.float32(4))
    square = x * x
    x *= _polynomial(square, _ERF_P)
    x /= _polynomial(square, _ERF_Q)
    return x


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result *= x
        result += np.float32(coefficient)
    return result


def _check_shapes(folder: Path, weights: Mapping[str, Any]) -> None:
    wide, narrow = (_INNER, DIMENSIONS), (DIMENSIONS, DIMENSIONS)
    layer = {
        "attention.self.query": narrow,
        "attention.self.key": narrow,
        "attention.self.value": narrow,
        "attention.output.dense": narrow,
        "intermediate.dense": wide,
        "output.dense": wide[::-1],
    }
    expected: dict[str, tuple[int, ...]] = {
        f"encoder.layer.{i}.{name}.weight": shape for i in range(_LAYERS) for name, shape in layer.items()
    }
    expected["embeddings.LayerNorm.weight"] = (DIMENSIONS,)
    wrong = [name for name, shape in expected.items() if name not in weights or weights[name].shape != shape]
    vocabulary = weights.get("embeddings.word_embeddings.weight", np.empty((0, 0)))
    if wrong or vocabulary.shape[1:] != (DIMENSIONS,):
        raise ModelDamaged(
            f"{folder / 'model.safetensors'} is not all-MiniLM-L6-v2: {(wrong or ['vocabulary'])[0]} is off."
        )
