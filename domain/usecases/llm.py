"""Asking the language model: a chat answer as a stream, and one answer to one prompt."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from domain.entities.llm import (
    Finished,
    GenerationEvent,
    GenerationRequest,
    GenerationResult,
    LlmTaskKind,
    Message,
    Sampling,
)
from domain.entities.models import InstalledModel
from domain.errors import EngineError, InvalidRequest
from domain.reasons import plain_reason
from domain.repositories.model_store import ModelStore
from domain.repositories.scheduler_coordinator import JobHandle, SchedulerCoordinator
from domain.usecases.history import trim_history
from domain.usecases.schema_limits import check_schemas

HISTORY_SHARE = 0.7
"""Of the context; the rest is for the answer, and for what the estimate of tokens gets wrong."""
ANSWER_SHARE = 0.25
"""Of a small context."""
PLAIN_ANSWER_TOKENS = 1024
LONGEST_ANSWER_TOKENS = 4096
"""With a large context, where a model may think for a while before it answers."""
UNKNOWN_CONTEXT_TOKENS = 2048
"""Assumed when a model does not say how long its context is."""


def answer_tokens(context_tokens: int) -> int:
    """How long a chat answer may be."""
    plain = min(PLAIN_ANSWER_TOKENS, int(context_tokens * ANSWER_SHARE))
    return max(1, plain, min(LONGEST_ANSWER_TOKENS, context_tokens // 10))


def sampling_for(model: InstalledModel, wanted: Sampling | None) -> Sampling:
    """What is wanted; where nothing was said, what the model's makers recommend, else the likeliest token."""
    said = wanted.model_dump(exclude_unset=True) if wanted is not None else {}
    return (model.sampling or Sampling()).model_copy(update=said)


class SendChatStreamUseCase:
    """Answers the last message of a conversation, token by token, before all background work."""

    def __init__(self, coordinator: SchedulerCoordinator, models: ModelStore) -> None:
        self._coordinator = coordinator
        self._models = models

    def __call__(
        self,
        conversation: str,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> JobHandle:
        """Queues the answer; iterate the handle's `events()`, or `cancel()` it.

        `messages` is the whole conversation, oldest first; what does not fit in the context is left out here.
        Raises `UnknownModel`, `ModelDamaged`, `QueueFull`, `InvalidRequest`.
        """
        name = model or self._models.default_name()
        found = self._models.get(name)
        context = found.context_tokens or UNKNOWN_CONTEXT_TOKENS
        request = checked_request(
            kind=LlmTaskKind.CHAT,
            flow=conversation,
            model=name,
            messages=trim_history(messages, int(context * HISTORY_SHARE)),
            sampling=sampling_for(found, sampling),
            max_tokens=max_tokens or answer_tokens(context),
        )
        return self._coordinator.submit(request)


class ReadAheadUseCase:
    """Has a conversation's model loaded and what is known of its next prompt prefilled, while the user still types."""

    def __init__(self, coordinator: SchedulerCoordinator, models: ModelStore) -> None:
        self._coordinator = coordinator
        self._models = models

    def __call__(
        self, conversation: str, messages: Sequence[Message], *, model: str | None = None
    ) -> JobHandle:
        """`messages`: the conversation so far, trimmed as `SendChatStreamUseCase` will trim it. Cancel it when nobody
        types any more. Raises `UnknownModel`, `ModelDamaged`, `QueueFull`, `InvalidRequest`."""
        name = model or self._models.default_name()
        context = self._models.get(name).context_tokens or UNKNOWN_CONTEXT_TOKENS
        return self._coordinator.submit(
            checked_request(
                kind=LlmTaskKind.CHAT,
                flow=conversation,
                model=name,
                messages=trim_history(messages, int(context * HISTORY_SHARE)),
                max_tokens=1,
                ahead=True,
                foreground_hint=True,
            )
        )


class GenerateOneShotUseCase:
    """One prompt, one answer, for any kind of work."""

    def __init__(self, coordinator: SchedulerCoordinator, models: ModelStore) -> None:
        self._coordinator = coordinator
        self._models = models

    async def __call__(
        self,
        kind: LlmTaskKind,
        flow: str,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_event: Callable[[GenerationEvent], None] = lambda event: None,
        **options: Any,
    ) -> GenerationResult:
        """Returns the finished answer; `on_event` sees everything on the way. `options` are those of a request.

        Being cancelled here cancels the job. Raises `InvalidRequest` and whatever ended the job.
        """
        job = self.submit(kind, flow, messages, model=model, **options)
        try:
            async for event in job.events():
                on_event(event)
                if isinstance(event, Finished):
                    return event.result
        finally:
            job.cancel()
        raise EngineError(f"Job {job.id} ended without an answer. Ask again.")

    def submit(
        self,
        kind: LlmTaskKind,
        flow: str,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        sampling: Sampling | None = None,
        **options: Any,
    ) -> JobHandle:
        """Queues the job, for callers that may want to cancel it. Raises `InvalidRequest`, `QueueFull`, `UnknownModel`,
        `ModelDamaged`."""
        name = model or self._models.default_name()
        drawn = sampling_for(self._models.get(name), sampling)
        return self._coordinator.submit(
            checked_request(
                kind=kind, flow=flow, model=name, messages=tuple(messages), sampling=drawn, **options
            )
        )


def checked_request(**fields: Any) -> GenerationRequest:
    """A request, or `InvalidRequest` (also `InvalidSchema`) in one sentence."""
    try:
        request = GenerationRequest(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        reason = plain_reason(first["msg"])
        raise InvalidRequest(f"The request was refused: {place + ': ' if place else ''}{reason}.") from None
    check_schemas(request.json_schema, request.tooling)
    for text in (*(message.content for message in request.messages), request.prompt or "", *request.stop):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"Character {error.start + 1} of the text is no Unicode character: half of a pair, or a byte that was "
                "not UTF-8. Remove it."
            ) from None
    return request
