"""Asking the language model, and the embedder, for another program."""

from collections.abc import Sequence

from domain.entities.api import ApiClient, ApiJob, place
from domain.entities.entity import Entity
from domain.errors import InvalidRequest, UnknownModel
from domain.repositories.embedder import Embedder
from domain.repositories.model_store import ModelStore
from domain.repositories.scheduler_coordinator import JobHandle, SchedulerCoordinator
from domain.usecases.llm import UNKNOWN_CONTEXT_TOKENS, checked_request, sampling_for
from domain.usecases.text_budget import text_tokens

DEFAULT = "default"
EMBEDDER = "all-minilm-l6-v2"
MAX_TEXTS = 2_048


class SubmitApiJobUseCase:
    """Queues a program's request where its words put it."""

    def __init__(self, coordinator: SchedulerCoordinator, models: ModelStore) -> None:
        self._coordinator = coordinator
        self._models = models

    def model(self, name: str | None) -> str:
        """The model that is meant. Raises `UnknownModel`, `ModelDamaged`."""
        wanted = self._models.default_name() if name in (None, "", DEFAULT) else name
        return self._models.get(wanted).name

    def __call__(self, job: ApiJob, client: ApiClient) -> JobHandle:
        """Raises `InvalidRequest`, `UnknownModel`, `ModelDamaged`, `QueueFull`."""
        name = self.model(job.model)
        where = place(job.urgency, client)
        model = self._models.get(name)
        context = model.context_tokens or UNKNOWN_CONTEXT_TOKENS
        return self._coordinator.submit(
            checked_request(
                model=name,
                messages=job.messages,
                prompt=job.prompt,
                sampling=sampling_for(model, job.sampling),
                max_tokens=min(job.max_tokens or context, context),
                stop=job.stop,
                json_schema=job.json_schema,
                tooling=job.tooling,
                thinking=job.thinking,
                deadline=job.urgency.deadline,
                keep_alive_s=job.keep_alive_s,
                **where.model_dump(),
            )
        )


class Vectors(Entity):
    """In the order of the texts."""

    vectors: tuple[tuple[float, ...], ...]
    tokens: int
    """Guessed: the embedder does not count them."""


class EmbedTextsUseCase:
    """Vectors for a program's texts, one after another, so that no program fills the lane."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def __call__(self, texts: Sequence[str], model: str | None, dimensions: int | None) -> Vectors:
        """Raises `InvalidRequest`, `UnknownModel`, `QueueFull` and what the embedder raises."""
        if model not in (None, "", DEFAULT) and model.lower() != EMBEDDER:
            raise UnknownModel(f"There is no embedding model {model}. UNIUN has {EMBEDDER}.")
        if dimensions is not None and dimensions != self._embedder.dimensions:
            raise InvalidRequest(f"{EMBEDDER} gives vectors of {self._embedder.dimensions} numbers only.")
        if not 1 <= len(texts) <= MAX_TEXTS:
            raise InvalidRequest(f"Give between 1 and {MAX_TEXTS} texts.")
        if not all(text.strip() for text in texts):
            raise InvalidRequest("A text is empty. Leave it out.")
        vectors = [tuple(map(float, await self._embedder.embed(text))) for text in texts]
        return Vectors(vectors=tuple(vectors), tokens=sum(map(text_tokens, texts)))
