"""llama.cpp through the wheel `cyllama`."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.clock import Clock
from data.inference.backend import Interrupted, Vocabulary
from data.inference.barriers import barriers
from data.inference.huge_pages import worth_a_copy
from data.inference.options import EngineOptions
from data.inference.pieces import byte_level_piece, sentencepiece_piece
from data.inference.release import release_memory
from data.inference.sampling import greedy, seed32
from domain.entities.llm import Sampling
from domain.errors import EngineMissing, ModelLoadFailed

CHUNKS = (64, 448)
"""From 64 tokens on flash attention computes in tiles, and the bits are the same for all sizes."""
SHORT_CHUNKS = (8, 56)
"""Less than 64 tokens together, where they are the same bits too, but others; for models whose chunks must be short."""
_PARAMETERS_PER_THREAD = 250_000_000
"""At 10 GFLOP/s, which a slow core has, 64 tokens of so large a model take 3 s, and beside a busy program twice as long. The
engine counts as lost after 10."""
_F16_BYTES = 2
_MIN_SLOTS = 2
"""One for the running job and one for the job that it preempted, whatever the budget says."""
_MAX_SLOTS = 8
_BPE = 2
"""`llama_vocab_type` of byte-level BPE vocabularies."""


class LlamaBackend:
    """One llama.cpp context with a KV stream per sequence.

    `kv_unified` is off: in a unified cache attention runs over the cells of every kept sequence, which slows decoding.
    """

    name = "llama.cpp"
    last_alone = False

    def __init__(self, path: Path, options: EngineOptions, clock: Clock) -> None:
        """Raises `EngineMissing` or `ModelLoadFailed`."""
        try:
            from cyllama.llama import llama_cpp
        except ImportError as error:
            raise EngineMissing(f"llama.cpp is not installed ({error}). Run: pip install cyllama") from error
        self._llama: Any = llama_cpp
        llama_cpp.disable_logging()
        llama_cpp.ggml_backend_load_all()
        self._model: Any = None
        self._context: Any = None
        self._barriers = barriers(clock)
        try:
            self._open(path, options)
        except Exception as error:  # the file may be anything
            self.close()
            raise ModelLoadFailed(f"llama.cpp could not load {path}: {error}") from error

    def _open(self, path: Path, options: EngineOptions) -> None:
        llama = self._llama
        weights = llama.LlamaModelParams()
        if not llama.llama_supports_gpu_offload() and worth_a_copy(path):
            weights.use_mmap = False
        self._model = _model_class(llama)(str(path), weights, verbose=False)
        self.context_tokens = min(self._model.n_ctx_train, options.context_limit)
        slot_bytes = max(1, self._bytes_per_token() * self.context_tokens)
        self.slots = min(_MAX_SLOTS, max(_MIN_SLOTS, options.kv_budget_bytes // slot_bytes))
        params = llama.LlamaContextParams()
        params.n_ctx = self.context_tokens * self.slots
        params.n_seq_max = self.slots
        params.kv_unified = False
        if options.threads is not None:
            params.n_threads = params.n_threads_batch = options.threads
        # A recurrent state is written in place: half an evaluation would spoil it.
        self.interruptible = not (self._model.is_recurrent() or self._model.is_hybrid())
        small = self._model.n_params <= _PARAMETERS_PER_THREAD * params.n_threads_batch
        quick = small or llama.llama_supports_gpu_offload()
        self.least_chunk, self.most_chunk = CHUNKS if quick and self.interruptible else SHORT_CHUNKS
        params.n_batch = params.n_ubatch = self.least_chunk + self.most_chunk - 1
        self._context = llama.LlamaContext(self._model, params, verbose=False)
        if self.interruptible:
            self._context.install_cancel_callback()
        self._batch = llama.LlamaBatch(n_tokens=params.n_batch, embd=0, n_seq_max=1)
        self._greedy = llama.LlamaSampler(llama.LlamaSamplerChainParams())
        self._greedy.add_greedy()
        self.vocabulary = _vocabulary(self._model)

    def _bytes_per_token(self) -> int:
        """KV state of one token in all layers, in 16-bit floats."""
        model, meta = self._model, self._model.metadata()
        arch = meta.get("general.architecture", "")
        head = model.n_embd // max(1, model.n_head)
        key = int(meta.get(f"{arch}.attention.key_length", head))
        value = int(meta.get(f"{arch}.attention.value_length", head))
        return int(model.n_layer * model.n_head_kv * (key + value) * _F16_BYTES)

    def arm(self) -> None:
        self._context.cancel = False

    def interrupt(self) -> None:
        if self.interruptible and self._context is not None:
            self._context.cancel = True

    def evaluate(self, sequence: int, tokens: Sequence[int], position: int, *, want_logits: bool) -> None:
        batch, last = self._batch, len(tokens) - 1
        where = [sequence]
        batch.clear()
        for at, token in enumerate(tokens):
            batch.add(token, position + at, where, want_logits and at == last)
        if self._barriers is not None:
            self._barriers.look()
        try:
            self._context.decode(batch)
            self._context.synchronize()  # a GPU is still at work; the time of a chunk must include that
        except InterruptedError:
            self._context.memory_seq_rm(sequence, position, -1)
            raise Interrupted from None

    def sample(self, sampling: Sampling, position: int) -> int:
        if greedy(sampling):
            return int(self._greedy.sample(self._context, -1))
        # A fresh chain per token keeps no state that a preemption or a new process could lose.
        chain = self._llama.LlamaSampler(self._llama.LlamaSamplerChainParams())
        if sampling.top_k > 0:
            chain.add_top_k(sampling.top_k)
        if sampling.top_p < 1:
            chain.add_top_p(sampling.top_p, 1)
        if sampling.min_p > 0:
            chain.add_min_p(sampling.min_p, 1)
        chain.add_temp(sampling.temperature)
        chain.add_dist(seed32(sampling.seed or 0, position))
        return int(chain.sample(self._context, -1))

    def logits(self) -> NDArray[np.float32]:
        return np.array(self._context.get_logits_ith(-1), dtype=np.float32)

    def trim(self, sequence: int, tokens: int) -> bool:
        context = self._context
        if context.memory_seq_pos_max(sequence) < tokens:
            return True
        if context.memory_seq_pos_min(sequence) > 0:
            return False
        return bool(context.memory_seq_rm(sequence, tokens, -1))

    def clear(self, sequence: int) -> None:
        self._context.memory_seq_rm(sequence, -1, -1)

    def kv_bytes(self, sequence: int) -> int:
        return 0  # the context is allocated whole, for `slots` sequences

    def close(self) -> None:
        if self._barriers is not None:
            self._barriers.close()
        for part in (self._context, self._model):
            if part is not None:
                part.close()
        self._context = self._model = None
        release_memory()


def _model_class(llama: Any) -> Any:
    """`get_logits_ith` asks the model for `n_vocab`, which cyllama 0.2 does not define."""
    return type("Model", (llama.LlamaModel,), {"n_vocab": property(lambda model: model.get_vocab().n_vocab)})


def _vocabulary(model: Any) -> Vocabulary:
    vocab, meta = model.get_vocab(), model.metadata()
    size = vocab.n_vocab
    control = {vocab.get_text(token): token for token in range(size) if vocab.is_control(token)}
    specials = frozenset(control.values())
    bos, eos = vocab.token_bos(), vocab.token_eos()

    @functools.cache
    def piece(token: int) -> bytes:
        if token in specials or not 0 <= token < size:
            return b""
        text: str = vocab.token_to_piece(token, 0, True)
        if "\ufffd" not in text:
            return text.encode()
        # The binding decodes a piece as UTF-8 and so loses parts of characters; the raw text has them.
        raw = vocab.get_text(token)
        return byte_level_piece(raw) if vocab.vocab_type == _BPE else sentencepiece_piece(raw)

    return Vocabulary(
        size=size,
        piece=piece,
        control={text: token for text, token in control.items() if text},
        end=frozenset(token for token in range(size) if vocab.is_eog(token)),
        encode=lambda text, specials: list(vocab.tokenize(text, False, specials)) if text else [],
        bos=bos if vocab.get_add_bos() and bos >= 0 else None,
        template=meta.get("tokenizer.chat_template"),
        bos_text=vocab.get_text(bos) if bos >= 0 else "",
        eos_text=vocab.get_text(eos) if eos >= 0 else "",
    )
