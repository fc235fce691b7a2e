"""What other programs may ask for; the HTTP API puts it into OpenAI's words."""

from collections.abc import Sequence
from datetime import datetime

from domain.entities.api import ApiClient, ApiJob, ApiKey
from domain.entities.models import InstalledModel
from domain.repositories.identity import Identities
from domain.repositories.scheduler_coordinator import JobHandle
from domain.usecases.api import EmbedTextsUseCase, SubmitApiJobUseCase, Vectors
from domain.usecases.api_keys import (
    CreateApiKeyUseCase,
    IdentifyClientUseCase,
    ListApiKeysUseCase,
    RevokeApiKeyUseCase,
)
from domain.usecases.health import EngineAnswersUseCase
from domain.usecases.models import ListModelsUseCase


class ApiController:
    """For one server; it remembers how often each key was used."""

    def __init__(
        self,
        identify: IdentifyClientUseCase,
        submit: SubmitApiJobUseCase,
        embed: EmbedTextsUseCase,
        list_models: ListModelsUseCase,
        engine_answers: EngineAnswersUseCase,
        identities: Identities,
    ) -> None:
        self._identify = identify
        self._submit = submit
        self._embed = embed
        self._list_models = list_models
        self._engine_answers = engine_answers
        self._identities = identities

    def now(self) -> datetime:
        """The wall clock."""
        return self._identities.now()

    def new_id(self, prefix: str) -> str:
        """Of an answer."""
        return f"{prefix}-{self._identities.new_id()}"

    async def key_fits(self, key: str) -> bool:
        """Whether the key lets its bearer in where one is needed."""
        return await self._identify.fits(key)

    async def client(self, key: str | None, address: str, agent: str) -> ApiClient:
        """Who asks. Raises `KeyRefused`."""
        return await self._identify(key, address, agent)

    def submit(self, job: ApiJob, client: ApiClient) -> JobHandle:
        """Queues a job; it counts against the key's rate. Raises `RateLimited` and as the use case does."""
        self._identify.spend(client)
        return self._submit(job, client)

    def model_name(self, name: str | None) -> str:
        """The model that a request means. Raises `UnknownModel`."""
        return self._submit.model(name)

    async def embed(
        self, texts: Sequence[str], client: ApiClient, *, model: str | None, dimensions: int | None
    ) -> Vectors:
        """Counts against the key's rate."""
        self._identify.spend(client)
        return await self._embed(texts, model, dimensions)

    def models(self) -> tuple[InstalledModel, ...]:
        """Those that can be asked."""
        return self._list_models().installed

    async def engine_answers(self) -> bool:
        """Whether the engine process gives a sign of life now."""
        return await self._engine_answers()


class ApiKeysController:
    """What `uniun keys` and a settings page need."""

    def __init__(
        self, create: CreateApiKeyUseCase, list_keys: ListApiKeysUseCase, revoke: RevokeApiKeyUseCase
    ) -> None:
        self._create = create
        self._list = list_keys
        self._revoke = revoke

    async def create(
        self, name: str, *, kind: str = "api", weight: float = 1.0, per_minute: int | None = None
    ) -> tuple[ApiKey, str]:
        """The key, and its text, which is never shown again."""
        return await self._create(name, kind=kind, weight=weight, per_minute=per_minute)

    async def list(self) -> tuple[ApiKey, ...]:
        """Oldest first."""
        return await self._list()

    async def find(self, reference: str) -> ApiKey:
        """By name or the beginning of an id."""
        return await self._revoke.find(reference)

    async def revoke(self, reference: str) -> ApiKey:
        """By name or the beginning of an id."""
        return await self._revoke(reference)
