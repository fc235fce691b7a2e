"""How the engine is run."""

from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity

DEFAULT_CONTEXT = 8192
"""Tokens; enough for most conversations, and it bounds the memory that KV state takes."""

Backend = Literal["auto", "mlx", "llama.cpp"]


class EngineOptions(Entity):
    """Settings of the engine process; the defaults suit a laptop."""

    backend: Backend = "auto"
    """`auto`: MLX on Apple silicon or CUDA, else llama.cpp when the model has a GGUF file, else MLX."""
    threads: int | None = Field(default=None, ge=1, le=512)
    """CPU threads for llama.cpp; the number of physical cores when absent."""
    context_tokens: int | None = Field(default=None, ge=64, le=1_048_576)
    """Cap on the context; the smaller of the model's own and 8,192 when absent."""
    kv_budget_bytes: int = Field(default=640 << 20, ge=1 << 20)
    """Memory for KV state, running job included."""
    chunk_s: float = Field(default=0.1, gt=0, le=10)
    """Longest wanted time of a prefill chunk: what a stop waits for."""
    interruptible_chunk_s: float = Field(default=1.0, gt=0, le=3)
    """The same where a chunk can be interrupted: what a stop throws away, and how often progress is told."""
    watchdog_s: float = Field(default=10.0, gt=0, le=3600)
    """Silence after which the engine process is taken for hung and is killed."""
    load_floor_s: float = Field(default=60.0, gt=0, le=3600)
    """A load may take this long, plus the time to read its files at `load_bytes_per_s`."""
    load_bytes_per_s: float = Field(default=20e6, gt=0)
    start_limit: int = Field(default=5, ge=1, le=100)
    """Engine processes that may be started within `start_window_s` without one job finished in between; the next load
    waits."""
    start_window_s: float = Field(default=60.0, gt=0, le=86400)

    @property
    def context_limit(self) -> int:
        """Tokens that a context holds at most, whatever the model could."""
        return self.context_tokens or DEFAULT_CONTEXT
