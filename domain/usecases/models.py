"""What the user does with models."""

from collections.abc import Callable
from pathlib import Path

from domain.entities.entity import Entity
from domain.entities.models import CatalogueEntry, InstalledModel, PullProgress
from domain.errors import UnknownModel
from domain.repositories.model_store import ModelStore


class ModelShelf(Entity):
    """Everything that can be chosen from."""

    installed: tuple[InstalledModel, ...]
    available: tuple[CatalogueEntry, ...]
    """In the catalogue and not installed."""
    default: str


class ListModelsUseCase:
    """What is installed, and what could be."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models

    def __call__(self) -> ModelShelf:
        """Both lists in the store's order."""
        installed = self._models.installed()
        names = {model.name for model in installed}
        available = tuple(entry for entry in self._models.catalogue() if entry.name not in names)
        return ModelShelf(installed=installed, available=available, default=self._models.default_name())


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
