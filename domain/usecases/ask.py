"""One question, answered from the notes; nothing is kept."""

from collections.abc import Callable
from typing import Any

from domain.entities.conversation import Citation
from domain.entities.entity import Entity
from domain.entities.llm import GenerationEvent, GenerationResult, LlmTaskKind, Message
from domain.prompts import chat as prompt
from domain.repositories.model_store import ModelStore
from domain.repositories.notes import ManasRepository
from domain.usecases.citations import citations_of
from domain.usecases.llm import UNKNOWN_CONTEXT_TOKENS, GenerateOneShotUseCase
from domain.usecases.retrieval import RetrieveContextUseCase, context_budget


class NotesAnswer(Entity):
    """An answer and the notes that it was given."""

    result: GenerationResult
    citations: tuple[Citation, ...]
    hindrance: str | None
    """Why the notes could not be searched as well as usual; none when they could."""


class AskNotesUseCase:
    """Retrieves, asks, and says what could be cited."""

    def __init__(
        self,
        generate: GenerateOneShotUseCase,
        retrieve: RetrieveContextUseCase,
        models: ModelStore,
        manases: ManasRepository,
    ) -> None:
        self._generate = generate
        self._retrieve = retrieve
        self._models = models
        self._manases = manases

    async def __call__(
        self,
        kind: LlmTaskKind,
        flow: str,
        text: str,
        *,
        manas: str | None = None,
        model: str | None = None,
        system: str | None = None,
        on_event: Callable[[GenerationEvent], None] = lambda event: None,
        **options: Any,
    ) -> NotesAnswer:
        """`manas` is an id or a name. Raises `ManasNotFound`, and what `GenerateOneShotUseCase` raises."""
        name = model or self._models.default_name()
        manas_id = (await self._manases.get(manas)).id if manas is not None else None
        budget = context_budget(self._models.get(name).context_tokens or UNKNOWN_CONTEXT_TOKENS)
        context = await self._retrieve(text, budget_tokens=budget, manas_id=manas_id)
        rules = "\n\n".join(part for part in (prompt.ANSWERING, system) if part)
        messages = (
            Message(role="system", content=rules),
            Message(role="user", content=prompt.question(text, context)),
        )
        result = await self._generate(kind, flow, messages, model=name, on_event=on_event, **options)
        return NotesAnswer(
            result=result,
            citations=citations_of(context),
            hindrance=context.hindrance,
        )
