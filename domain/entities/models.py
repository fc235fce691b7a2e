"""Language models as the store knows them."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity
from domain.entities.llm import Sampling

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


class RemoteModel(Entity):
    """A model that OpenAI-compatible servers run; several may serve the same one."""

    urls: tuple[str, ...] = Field(min_length=1, max_length=64)
    """Of each server, up to and with `/v1`."""
    model: str = Field(min_length=1, max_length=500)
    """The servers' own name for it."""
    key_variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)
    """The environment variable that holds the key. The key itself is never stored."""
    jobs: int = Field(default=1, ge=1, le=1000)
    """How many each server runs at once."""
    priority: bool = False
    """Whether the servers order requests by the field `priority`, smaller first."""
    sampling: Sampling | None = None
    """How its makers recommend to draw tokens, which no server says."""

    @property
    def slots(self) -> int:
        """Jobs at once, on all servers."""
        return self.jobs * len(self.urls)


class ServerState(Entity):
    """What one server says of itself; `error` if it did not answer as it should."""

    url: str
    kind: str = ""
    """`llama.cpp`, `vllm`, or whoever it says owns its models; empty if it does not."""
    models: tuple[str, ...] = ()
    jobs: int | None = None
    """Jobs at once, if it says."""
    context_tokens: int | None = None
    error: str | None = None


class InstalledModel(Entity):
    """A model whose files are complete on this machine, or that servers run.

    A model may be present in both formats (a converted wheel); at least one path is set, or `remote`.
    """

    name: str
    source: str
    licence: str = "unknown"
    size_bytes: int
    context_tokens: int | None = None
    sampling: Sampling | None = None
    """As its makers recommend it, if they do."""
    mlx_path: Path | None = None
    """Folder with config.json, safetensors weights and tokenizer."""
    gguf_path: Path | None = None
    remote: RemoteModel | None = None
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
    accelerated: bool = True
    """Whether there is a graphics processor that models can run on."""
