"""The converted folder against llama.cpp running the original file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.models import conversion
from data.models.conversion import convert_gguf
from data.models.gguf import read_header
from data.models.gguf_tokenizer import build_tokenizer
from data.models.inspection import inspect_mlx
from domain.entities.models import InstalledModel
from domain.errors import ModelDamaged

PROMPT = (
    "<|im_start|>user\n"
    "Write the first sentence of a story about a lighthouse.<|im_end|>\n<|im_start|>assistant\n"
)
TRICKY = [
    "",
    " ",
    "\n",
    "  two  spaces   three\n\n\n\ttabs\t\t x     ",
    "12345 3.14159 1e10 007 ١٢٣ ½ ² Ⅳ",
    "naïve café Ünïcödé e\u0301 Z̸̨ ﬁ",
    "日本語テキスト 한국어 العربية हिन्दी",
    "👩‍👩‍👧‍👦 🇩🇪 🤷🏽‍♂️",
    "don't I'll we're THEY'VE",
    "a\u00a0b\u200bc\ufeffd \u0001\u007f \U0010ffff",
    "x = {'a': [1,2]} # code\r\n",
    "a" * 300,
    PROMPT,
    "<|im_start|><|im_end|> <|endoftext|>no<|im_start",
]


class LlamaCpp:
    """The original file, one sequence, greedy."""

    def __init__(self, gguf: Path) -> None:
        from cyllama.llama import llama_cpp

        llama_cpp.disable_logging()
        llama_cpp.ggml_backend_load_all()

        class Model(llama_cpp.LlamaModel):  # type: ignore[misc]
            n_vocab = property(lambda self: self.get_vocab().n_vocab)

        self._llama = llama_cpp
        params = llama_cpp.LlamaModelParams()
        params.n_gpu_layers = 0
        self._model = Model(str(gguf), params, verbose=False)
        self._vocab = self._model.get_vocab()

    def tokenize(self, text: str) -> list[int]:
        return list(self._vocab.tokenize(text, False, True)) if text else []

    def logits(self, tokens: list[int], first: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """(len(tokens) - first, vocabulary): what is predicted after each token from `first` on."""
        params = self._llama.LlamaContextParams()
        params.n_ctx, params.n_threads, params.n_threads_batch = 512, 2, 2
        context = self._llama.LlamaContext(self._model, params, verbose=False)
        batch = self._llama.LlamaBatch(n_tokens=512, embd=0, n_seq_max=1)
        for position, token in enumerate(tokens):
            batch.add(token, position, [0], position >= first)
        context.decode(batch)
        rows = [np.array(context.get_logits_ith(i), dtype=np.float32) for i in range(first, len(tokens))]
        return np.stack(rows)


@pytest.fixture(scope="module")
def llama(smollm2: InstalledModel) -> LlamaCpp:
    assert smollm2.gguf_path is not None
    return LlamaCpp(smollm2.gguf_path)


def _mlx_path(model: InstalledModel) -> Path:
    assert model.mlx_path is not None
    return model.mlx_path


@pytest.mark.model
@pytest.mark.parametrize("text", TRICKY)
def test_the_same_tokens_and_back(smollm2: InstalledModel, llama: LlamaCpp, text: str) -> None:
    assert smollm2.gguf_path is not None
    tokenizer = build_tokenizer(read_header(smollm2.gguf_path).metadata)

    ids = tokenizer.encode(text, add_special_tokens=False).ids

    assert ids == llama.tokenize(text)
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


@pytest.mark.model
@pytest.mark.parametrize("bits", [None, 8])
def test_the_same_predictions(smollm2: InstalledModel, llama: LlamaCpp, tmp_path: Path, bits: Any) -> None:
    """Greedy text of MLX, then what llama.cpp would have said at every step of it.

    llama.cpp rounds activations to 8 bits and MLX does not, so near-ties may fall either way; a wrong row order or a
    wrong scale would part them from the first token on.
    """
    import mlx.core as mx
    from mlx_lm import load
    from mlx_lm.models.cache import make_prompt_cache

    folder = _mlx_path(smollm2)
    if bits is not None:
        assert smollm2.gguf_path is not None
        folder = tmp_path / "q8"
        convert_gguf(smollm2.gguf_path, folder, bits=bits)
    model, tokenizer = load(str(folder))[:2]
    prompt = tokenizer.encode(PROMPT, add_special_tokens=False)
    cache = make_prompt_cache(model)
    produced: list[int] = []
    rows: list[Any] = []
    fed = prompt
    for _ in range(10):
        row = np.array(model(mx.array([fed]), cache=cache)[0, -1].astype(mx.float32))
        rows.append(row)
        produced.append(int(row.argmax()))
        fed = produced[-1:]

    theirs = llama.logits([*prompt, *produced[:-1]], len(prompt) - 1)

    ours = np.stack(rows)
    correlation = [float(np.corrcoef(a, b)[0, 1]) for a, b in zip(ours, theirs, strict=True)]
    assert min(correlation) > 0.99
    for token, row in zip(produced, theirs, strict=True):
        assert row.max() - row[token] < 0.75
    agreeing = sum(int(row.argmax()) == token for token, row in zip(produced, theirs, strict=True))
    assert agreeing >= 8


@pytest.mark.model
def test_the_folder_is_a_whole_model_with_its_template(smollm2: InstalledModel) -> None:
    from mlx_lm.utils import load_tokenizer

    folder = _mlx_path(smollm2)
    tokenizer = load_tokenizer(folder, eos_token_ids=[2])

    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )

    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.eos_token == "<|im_end|>"
    assert inspect_mlx(folder).context_tokens == 8192
    config = json.loads((folder / "config.json").read_text())
    assert config["tie_word_embeddings"] is True
    assert config["quantization"]["bits"] == 4
    assert config["quantization"]["model.embed_tokens"] == {"group_size": 32, "bits": 8}


@pytest.mark.model
def test_a_conversion_that_dies_leaves_no_folder_and_the_next_one_succeeds(
    smollm2: InstalledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert smollm2.gguf_path is not None
    target = tmp_path / "mlx"
    (tmp_path / ".mlx.partial").mkdir()
    (tmp_path / ".mlx.partial" / "model.safetensors").write_bytes(b"left by a killed conversion")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(conversion, "_write_json", full)
        with pytest.raises(OSError, match="No space"):
            convert_gguf(smollm2.gguf_path, target)
    assert list(tmp_path.iterdir()) == []

    convert_gguf(smollm2.gguf_path, target)
    assert [path.name for path in tmp_path.iterdir()] == ["mlx"]
    inspect_mlx(target)
    shutil.rmtree(target)


def test_other_architectures_are_refused(tmp_path: Path, tiny_gguf: bytes) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_gguf)

    with pytest.raises(ModelDamaged, match="architecture 'tiny'"):
        convert_gguf(path, tmp_path / "mlx")
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.gguf"]


def test_missing_metadata_are_damage(
    tmp_path: Path, gguf_of: Callable[..., bytes], tiny_metadata: dict[str, Any]
) -> None:
    path = tmp_path / "half.gguf"
    path.write_bytes(gguf_of({**tiny_metadata, "general.architecture": "llama"}))

    with pytest.raises(ModelDamaged, match=r"llama\.attention\.head_count"):
        convert_gguf(path, tmp_path / "mlx")
    assert not (tmp_path / "mlx").exists()
