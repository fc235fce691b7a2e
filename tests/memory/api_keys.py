"""API keys in a dictionary."""

import itertools

from domain.entities.api import ApiKey
from domain.repositories.embedder import Embedder
from domain.repositories.identity import Identities
from domain.repositories.model_store import ModelStore
from domain.repositories.scheduler_coordinator import SchedulerCoordinator
from domain.usecases.api import EmbedTextsUseCase, SubmitApiJobUseCase
from domain.usecases.api_keys import (
    CreateApiKeyUseCase,
    IdentifyClientUseCase,
    ListApiKeysUseCase,
    RevokeApiKeyUseCase,
)
from domain.usecases.health import EngineAnswersUseCase
from domain.usecases.models import ListModelsUseCase
from presentation.controllers.api import ApiController, ApiKeysController


class MemoryApiKeys:
    """Implements `ApiKeyRepository`."""

    def __init__(self) -> None:
        self._keys: dict[str, ApiKey] = {}

    async def add(self, key: ApiKey) -> bool:
        if any(key.name == other.name or key.hash == other.hash for other in self._keys.values()):
            return False
        self._keys[key.id] = key
        return True

    async def list(self) -> tuple[ApiKey, ...]:
        return tuple(self._keys.values())

    async def by_hash(self, key_hash: str) -> ApiKey | None:
        return next((key for key in self._keys.values() if key.hash == key_hash), None)

    async def delete(self, key_id: str) -> None:
        self._keys.pop(key_id, None)


class FixedProbe:
    """Implements `EngineProbe`."""

    def __init__(self) -> None:
        self.alive = True

    async def answers(self) -> bool:
        return self.alive


def api_keys_controller(keys: MemoryApiKeys, identities: Identities) -> ApiKeysController:
    """Its keys are `uniun-secret-1`, `uniun-secret-2`, …"""
    count = itertools.count(1)
    create = CreateApiKeyUseCase(keys, identities, lambda: f"secret-{next(count)}")
    return ApiKeysController(create, ListApiKeysUseCase(keys), RevokeApiKeyUseCase(keys))


def api_controller(
    coordinator: SchedulerCoordinator,
    store: ModelStore,
    embedder: Embedder,
    identities: Identities,
    keys: MemoryApiKeys | None = None,
    probe: FixedProbe | None = None,
) -> ApiController:
    """The API's face over fakes."""
    return ApiController(
        IdentifyClientUseCase(keys or MemoryApiKeys(), identities),
        SubmitApiJobUseCase(coordinator, store),
        EmbedTextsUseCase(embedder),
        ListModelsUseCase(store),
        EngineAnswersUseCase(probe or FixedProbe()),
        identities,
    )
