"""Language models as the store knows them."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity

ModelFormat = Literal["mlx", "gguf"]
SourceKind = Literal["wheel", "hub", "folder", "gguf"]


class CatalogueEntry(Entity):
    """A model that can be pulled by name."""

    name: str
    title: str
    source: str
    """Where it comes from, in words: a wheel, or a repository on the hub."""
    licence: str
    download_bytes: int
    memory_bytes: int
    """Memory needed to run it, KV state for a typical context included."""
    context_tokens: int
    good_for: str


class InstalledModel(Entity):
    """A model whose files are complete on this machine.

    A model may be present in both formats (a converted wheel); at least one path is set.
    """

    name: str
    source: str
    licence: str = "unknown"
    size_bytes: int
    context_tokens: int | None = None
    mlx_path: Path | None = None
    """Folder with config.json, safetensors weights and tokenizer."""
    gguf_path: Path | None = None
    is_default: bool = False


class PullProgress(Entity):
    """One step of a pull; `wait` is for another process that fetches the same model.

    `total_bytes` is none when the source does not say.
    """

    stage: Literal["wait", "download", "check", "unpack", "convert", "done"]
    done_bytes: int = Field(ge=0)
    total_bytes: int | None = None


class Memory(Entity):
    """Of the machine, in bytes; `free_bytes` is what programs may still take without swapping."""

    total_bytes: int
    free_bytes: int
