"""Where models come from and where they lie."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from domain.entities.models import CatalogueEntry, InstalledModel, PullProgress, RemoteModel


class ModelStore(Protocol):
    """Installed models and the catalogue of those that can be pulled."""

    def catalogue(self) -> tuple[CatalogueEntry, ...]:
        """Models that can be pulled by name, the default one first."""
        ...

    def installed(self) -> tuple[InstalledModel, ...]:
        """Models whose files are complete, by name."""
        ...

    def get(self, name: str) -> InstalledModel:
        """Raises `UnknownModel`, or `ModelDamaged` naming a file that is missing or truncated."""
        ...

    def default_name(self) -> str:
        """The model that the user chose, else the catalogue's first."""
        ...

    async def pull(self, name: str, progress: Callable[[PullProgress], None]) -> InstalledModel:
        """Fetches a catalogue name or a hub repository (`owner/name`); returns at once if it is complete.

        Cancelling it, or killing the process, leaves nothing half-written in use; a later pull resumes or restarts.
        Raises `UnknownModel`, `ModelUnavailable`, `ModelDamaged` (checksum), `StoreBusy`.
        """
        ...

    def register(self, name: str, path: Path) -> InstalledModel:
        """Makes a local MLX folder or a GGUF file known under `name`, without copying it.

        Raises `ModelDamaged` saying what the folder lacks (config, weights, tokenizer, chat template).
        """
        ...

    def register_remote(self, name: str, remote: RemoteModel, context_tokens: int | None) -> InstalledModel:
        """Makes a model known under `name` that servers run; replaces one of that kind. Raises `InvalidRequest`."""
        ...

    def use(self, name: str) -> InstalledModel:
        """Makes an installed model the default."""
        ...

    def remove(self, name: str) -> int:
        """Deletes what the store fetched (never a registered folder's own files); returns the bytes freed."""
        ...
