"""One question, one answer, nothing remembered."""

import uuid
from collections.abc import Callable
from typing import Any

from domain.entities.llm import GenerationEvent, GenerationResult, LlmTaskKind, Message
from domain.usecases.ask import AskNotesUseCase, NotesAnswer
from domain.usecases.llm import GenerateOneShotUseCase

ONE_QUESTION = "ask-"
"""How the flow of a question that nobody goes on from begins."""


class AskController:
    """Asks on behalf of a command or another program."""

    def __init__(self, generate: GenerateOneShotUseCase, ask_notes: AskNotesUseCase) -> None:
        self._generate = generate
        self._ask_notes = ask_notes

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
        return await self._generate(kind, _flow(), messages, on_event=on_event, **options)

    async def ask_notes(
        self,
        text: str,
        *,
        kind: LlmTaskKind = LlmTaskKind.CHAT,
        manas: str | None = None,
        on_event: Callable[[GenerationEvent], None] = lambda event: None,
        **options: Any,
    ) -> NotesAnswer:
        """The same from the notes, or from those of one Manas (id or name). Raises `ManasNotFound`."""
        return await self._ask_notes(kind, _flow(), text, manas=manas, on_event=on_event, **options)


def _flow() -> str:
    return ONE_QUESTION + uuid.uuid4().hex
