"""MLX through mlx-lm's model classes and caches."""

import contextlib
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.inference.backend import Vocabulary
from data.inference.options import DEFAULT_CONTEXT, EngineOptions
from data.inference.pieces import byte_level_piece, sentencepiece_piece
from data.inference.release import release_memory
from data.inference.sampling import greedy, sample
from domain.entities.llm import Sampling
from domain.errors import EngineMissing, ModelLoadFailed

_SLOTS = 64
"""MLX state grows with its sequence, so the byte budget is the limit that counts."""
_MAX_CONFIG_BYTES = 64 * 1024 * 1024


class MlxBackend:
    """One mlx-lm model; each sequence has a prompt cache of its own.

    No token is computed ahead, unlike mlx-lm's own generator: after a stop the cache holds exactly what was evaluated,
    which also suits caches that cannot be trimmed.
    """

    name = "mlx"
    least_chunk, most_chunk = 8, 512
    last_alone = True
    interruptible = False
    slots = _SLOTS

    def __init__(self, path: Path, options: EngineOptions) -> None:
        """Raises `EngineMissing` or `ModelLoadFailed`."""
        try:
            import mlx.core as mx
            from mlx_lm.models import cache
            from mlx_lm.utils import load_model
        except ImportError as error:
            raise EngineMissing(
                f"MLX is not installed ({error}). Run: pip install mlx-lm, and on Linux also mlx[cpu]"
            ) from error
        self._mx: Any = mx
        self._cache: Any = cache
        self._kv: dict[int, Any] = {}
        self._last: Any = None
        try:
            self._model, config = load_model(path)
            if mx.default_device() == mx.cpu:
                # Half precision is emulated on the CPU and runs at about one token per second.
                self._model.set_dtype(mx.float32)
                mx.eval(self._model.parameters())
            self.vocabulary = _vocabulary(path, config)
        except Exception as error:  # tokenizers raises nothing narrower, and the files may be anything
            self.close()
            raise ModelLoadFailed(f"MLX could not load {path}: {error}") from error
        text = config.get("text_config") or config
        self.context_tokens = min(
            int(text.get("max_position_embeddings") or DEFAULT_CONTEXT),
            options.context_limit,
        )

    def arm(self) -> None:
        pass

    def interrupt(self) -> None:
        """A graph that MLX has begun runs to its end, which is why its chunks are short."""

    def evaluate(self, sequence: int, tokens: Sequence[int], position: int, *, want_logits: bool) -> None:
        mx = self._mx
        if sequence not in self._kv:
            self._kv[sequence] = self._cache.make_prompt_cache(self._model)
        kv = self._kv[sequence]
        logits = self._model(mx.array([list(tokens)]), cache=kv)
        if want_logits:
            self._last = logits[0, -1, : self.vocabulary.size].astype(mx.float32)
            mx.eval(self._last, [layer.state for layer in kv])
        else:
            mx.eval([layer.state for layer in kv])

    def sample(self, sampling: Sampling, position: int) -> int:
        if greedy(sampling):
            return int(self._mx.argmax(self._last).item())
        return sample(self.logits(), sampling, position)

    def logits(self) -> NDArray[np.float32]:
        return np.array(self._last)

    def trim(self, sequence: int, tokens: int) -> bool:
        kv = self._kv[sequence]
        surplus = kv[0].offset - tokens if hasattr(kv[0], "offset") else None
        if surplus is None or not self._cache.can_trim_prompt_cache(kv):
            return False
        return bool(self._cache.trim_prompt_cache(kv, surplus) == surplus)

    def clear(self, sequence: int) -> None:
        if self._kv.pop(sequence, None) is not None:
            self._mx.clear_cache()

    def kv_bytes(self, sequence: int) -> int:
        return sum(layer.nbytes for layer in self._kv.get(sequence, ()))

    def close(self) -> None:
        self._mx.synchronize()
        self._kv.clear()
        self._model = self._last = None
        self._mx.clear_cache()
        release_memory()


def _vocabulary(path: Path, config: dict[str, Any]) -> Vocabulary:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    # A second one that reads control tokens as plain text: the switch is a property of the object.
    plain = Tokenizer.from_file(str(path / "tokenizer.json"))
    plain.encode_special_tokens = True
    settings = _read_json(path / "tokenizer_config.json")
    added = tokenizer.get_added_tokens_decoder()
    control = {token.content: at for at, token in added.items() if token.special}
    specials = frozenset(control.values())
    byte_level = '"ByteLevel"' in json.dumps(_read_json(path / "tokenizer.json").get("decoder"))
    to_bytes = byte_level_piece if byte_level else sentencepiece_piece

    @functools.cache
    def piece(token: int) -> bytes:
        if token in specials:
            return b""
        if token in added:
            return str(added[token].content).encode()
        text = tokenizer.id_to_token(token)
        return b"" if text is None else to_bytes(text)

    def encode(text: str, with_specials: bool) -> list[int]:
        return list((tokenizer if with_specials else plain).encode(text, add_special_tokens=False).ids)

    bos_text, eos_text = _token_text(settings.get("bos_token")), _token_text(settings.get("eos_token"))
    return Vocabulary(
        size=max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1,
        piece=piece,
        control=control,
        end=_end_tokens(path, config, control, eos_text),
        encode=encode,
        bos=control.get(bos_text) if settings.get("add_bos_token") else None,
        template=_template(path, settings),
        bos_text=bos_text,
        eos_text=eos_text,
    )


def _end_tokens(path: Path, config: dict[str, Any], control: dict[str, int], eos_text: str) -> frozenset[int]:
    """The tokenizer's and those of both configurations, each one number or a list."""
    ends = {control[eos_text]} if eos_text in control else set()
    for source in (config, _read_json(path / "generation_config.json")):
        ids = source.get("eos_token_id")
        ends.update(ids if isinstance(ids, list) else [] if ids is None else [ids])
    if not ends or not all(isinstance(token, int) for token in ends):
        raise ValueError("the model names no end-of-sequence token")
    return frozenset(ends)


def _template(path: Path, settings: dict[str, Any]) -> str | None:
    """From a file of its own, or from the tokenizer's settings (a string, or a list of named ones)."""
    with contextlib.suppress(FileNotFoundError):
        return (path / "chat_template.jinja").read_text(encoding="utf-8")
    found = settings.get("chat_template") or _read_json(path / "chat_template.json").get("chat_template")
    if isinstance(found, list):
        found = {entry["name"]: entry["template"] for entry in found}.get("default")
    return found if isinstance(found, str) else None


def _token_text(token: object) -> str:
    """A special token is written as a string or as an object."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _read_json(path: Path) -> dict[str, Any]:
    """An object, empty if the file is missing."""
    try:
        if path.stat().st_size > _MAX_CONFIG_BYTES:
            raise ValueError(f"{path.name} is too large")
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return found
