"""One question, one answer, nothing remembered."""

import uuid
from collections.abc import Callable
from typing import Any

from domain.entities.llm import GenerationEvent, GenerationResult, LlmTaskKind, Message
from domain.usecases.llm import GenerateOneShotUseCase


class AskController:
    """Asks on behalf of a command or another program."""

    def __init__(self, generate: GenerateOneShotUseCase) -> None:
        self._generate = generate

    async def ask(
        self,
        text: str,
        *,
        kind: LlmTaskKind = LlmTaskKind.CHAT,
        system: str | None = None,
        on_event: Callable[[GenerationEvent], None] = lambda event: None,
        **options: Any,
    ) -> GenerationResult:
        """Each question is a flow of its own. `options` are those of a request (`model`, `sampling`, `json_schema`, …)."""
        messages = [Message(role="system", content=system)] if system else []
        messages.append(Message(role="user", content=text))
        return await self._generate(kind, uuid.uuid4().hex, messages, on_event=on_event, **options)
