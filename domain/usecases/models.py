"""What the user does with models."""

from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from domain.entities.entity import Entity
from domain.entities.models import CatalogueEntry, InstalledModel, Memory, PullProgress
from domain.errors import UnknownModel
from domain.repositories.health import Health
from domain.repositories.hub import ModelHub
from domain.repositories.model_store import ModelStore

PROPOSALS = 3
MEMORY_SHARE = 0.5
"""Of the machine's memory, for the model: the rest is for what else the user runs."""


class ModelShelf(Entity):
    """Everything that can be chosen from."""

    installed: tuple[InstalledModel, ...]
    available: tuple[CatalogueEntry, ...]
    """In the catalogue and not installed."""
    default: str
    fallback: str = ""
    """The default where none is chosen, as when the chosen one is removed."""
    memory: dict[str, int] = Field(default_factory=dict)
    """Bytes that a model needs to run, of those that the catalogue knows."""
    weights: dict[str, int] = Field(default_factory=dict)
    """Bytes that are read for every token, about: the size of the download, of those that the catalogue knows."""


class ListModelsUseCase:
    """What is installed, and what could be."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models

    def __call__(self) -> ModelShelf:
        """Both lists in the store's order."""
        installed = self._models.installed()
        names = {model.name for model in installed}
        catalogue = self._models.catalogue()
        return ModelShelf(
            installed=installed,
            available=tuple(entry for entry in catalogue if entry.name not in names),
            default=self._models.default_name(),
            fallback=catalogue[0].name if catalogue else "",
            memory={entry.name: entry.memory_bytes for entry in catalogue},
            weights={entry.name: entry.download_bytes for entry in catalogue},
        )


class PullModelUseCase:
    """Fetches a model."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models

    async def __call__(self, name: str, progress: Callable[[PullProgress], None]) -> InstalledModel:
        """Raises `UnknownModel`, `ModelUnavailable`, `ModelDamaged`, `StoreBusy`."""
        return await self._models.pull(name, progress)


class EnsureModelUseCase:
    """Makes sure that a model can be used now: the default one is fetched on first use, any other must be there."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models

    async def __call__(self, name: str | None, progress: Callable[[PullProgress], None]) -> InstalledModel:
        """Raises `UnknownModel` for a named model that is absent: fetching gigabytes is the user's decision."""
        wanted = name or self._models.default_name()
        try:
            return self._models.get(wanted)
        except UnknownModel:
            catalogued = {entry.name for entry in self._models.catalogue()}
            if wanted == self._models.default_name() and wanted in catalogued:
                return await self._models.pull(wanted, progress)
            if wanted in catalogued:
                raise UnknownModel(
                    f"The model {wanted} is not installed. Fetch it with: uniun models pull {wanted}"
                ) from None
            raise


class UseModelUseCase:
    """Makes an installed model the default."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models

    def __call__(self, name: str) -> InstalledModel:
        """Raises `UnknownModel`, `ModelDamaged`."""
        return self._models.use(name)


class RemoveModelUseCase:
    """Deletes a model that the store fetched, or forgets one that was registered."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models

    def __call__(self, name: str) -> int:
        """Returns the bytes freed. Raises `UnknownModel`, `StoreBusy`."""
        return self._models.remove(name)


class RegisterModelUseCase:
    """Makes a local folder or GGUF file known under a name, without copying it."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models

    def __call__(self, name: str, path: Path) -> InstalledModel:
        """Raises `ModelDamaged` saying what the folder lacks."""
        return self._models.register(name, path)


class MeasureMemoryUseCase:
    """What there is for models."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def __call__(self) -> Memory:
        """At this moment."""
        return self._health.memory()


class ProposeModelsUseCase:
    """Larger models than the default one, by the machine's memory."""

    def __init__(self, models: ModelStore, hub: ModelHub, health: Health) -> None:
        self._models = models
        self._hub = hub
        self._health = health

    async def __call__(self) -> tuple[CatalogueEntry, ...]:
        """The largest that fit and are not installed, best first; none where the hub does not answer."""
        room = self._health.memory().total_bytes * MEMORY_SHARE
        installed = {model.name for model in self._models.installed()}
        small, *larger = self._models.catalogue()
        fitting = [
            entry
            for entry in larger
            if small.memory_bytes < entry.memory_bytes <= room and entry.name not in installed
        ]
        if not fitting or not await self._hub.answers():
            return ()
        return tuple(sorted(fitting, key=lambda entry: entry.memory_bytes, reverse=True)[:PROPOSALS])
