"""The models on this machine."""

from collections.abc import Callable
from pathlib import Path

from domain.entities.health import EngineProcess
from domain.entities.llm import Sampling
from domain.entities.models import CatalogueEntry, InstalledModel, Memory, PullProgress
from domain.usecases.health import ListEngineProcessesUseCase
from domain.usecases.models import (
    EnsureModelUseCase,
    ListModelsUseCase,
    MeasureMemoryUseCase,
    ModelShelf,
    ProposeModelsUseCase,
    PullModelUseCase,
    RegisterModelUseCase,
    RemoveModelUseCase,
    UseModelUseCase,
)
from domain.usecases.remote_models import AddedRemoteModel, AddRemoteModelUseCase


class ModelsController:
    """What every face offers about models."""

    def __init__(
        self,
        list_models: ListModelsUseCase,
        pull: PullModelUseCase,
        ensure: EnsureModelUseCase,
        use: UseModelUseCase,
        remove: RemoveModelUseCase,
        register: RegisterModelUseCase,
        list_processes: ListEngineProcessesUseCase,
        memory: MeasureMemoryUseCase,
        propose: ProposeModelsUseCase,
        add_remote: AddRemoteModelUseCase,
    ) -> None:
        self._add_remote = add_remote
        self._list = list_models
        self._pull = pull
        self._ensure = ensure
        self._use = use
        self._remove = remove
        self._register = register
        self._processes = list_processes
        self._memory = memory
        self._propose = propose

    def shelf(self) -> ModelShelf:
        """Installed models and those that can be fetched."""
        return self._list()

    async def pull(self, name: str, progress: Callable[[PullProgress], None]) -> InstalledModel:
        """Fetches a catalogue name or a hub repository."""
        return await self._pull(name, progress)

    async def ensure(self, name: str | None, progress: Callable[[PullProgress], None]) -> InstalledModel:
        """The named model or the default one, which is fetched when it is absent."""
        return await self._ensure(name, progress)

    def use(self, name: str) -> InstalledModel:
        """Makes it the default."""
        return self._use(name)

    def remove(self, name: str) -> int:
        """Bytes freed."""
        return self._remove(name)

    def add(self, name: str, path: Path) -> InstalledModel:
        """Registers a folder or a GGUF file."""
        return self._register(name, path)

    async def add_remote(
        self,
        name: str,
        urls: tuple[str, ...],
        model: str,
        *,
        key_variable: str | None = None,
        jobs: int | None = None,
        context_tokens: int | None = None,
        priority: bool = False,
        sampling: Sampling | None = None,
    ) -> AddedRemoteModel:
        """Registers servers that run a model, and asks them how they are."""
        return await self._add_remote(
            name,
            urls,
            model,
            key_variable=key_variable,
            jobs=jobs,
            context_tokens=context_tokens,
            priority=priority,
            sampling=sampling,
        )

    def processes(self) -> tuple[EngineProcess, ...]:
        """Engine processes that are alive."""
        return self._processes()

    def memory(self) -> Memory:
        """Of this machine."""
        return self._memory()

    async def proposals(self) -> tuple[CatalogueEntry, ...]:
        """Larger models that this machine can hold, best first; none where their source does not answer."""
        return await self._propose()
