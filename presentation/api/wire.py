"""Requests as they come over the wire. Unknown fields are ignored; what cannot be done is refused by name."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from domain.entities.api import ApiJob, ClientKind, ServiceTier, Urgency
from domain.entities.llm import KEEP_ALIVE_LIMIT_S, Sampling, Tooling
from presentation.api.wire_messages import (
    MessageIn,
    Name,
    ResponseFormat,
    Text,
    ToolChoiceIn,
    ToolIn,
    Wire,
)


class StreamOptions(Wire):
    include_usage: bool = False


class Metadata(Wire):
    """For programs that know UNIUN; other entries are ignored. Values may be text, as OpenAI wants them."""

    kind: ClientKind | None = None
    flow: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    deadline: datetime | float | None = None
    """By when the answer should be begun: ISO 8601 with a time zone, or seconds from now."""
    foreground: bool | None = None

    @field_validator("deadline", mode="before")
    @classmethod
    def _seconds(cls, value: Any) -> Any:
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            return value
        if not 0 <= seconds <= 366 * 86_400:
            raise ValueError("it should be a time with a zone, or a number of seconds up to a year")
        return seconds

    @field_validator("deadline")
    @classmethod
    def _aware(cls, value: datetime | float | None) -> datetime | float | None:
        if isinstance(value, datetime) and value.tzinfo is None:
            raise ValueError("it should have a time zone, as in 2026-01-31T08:00:00Z")
        try:
            return value.astimezone(UTC) if isinstance(value, datetime) else value
        except OverflowError:
            raise ValueError("it is outside of the years 1 to 9999 in UTC") from None


class GenerationIn(Wire):
    """What both ways of asking for text have in common."""

    model: Name | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=1_000_000)] | None = None
    min_p: Annotated[float, Field(ge=0, lt=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    stop: (
        Annotated[str, Field(min_length=1, max_length=200)]
        | Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=16)]
        | None
    ) = None
    n: int | None = None
    user: Annotated[str, Field(max_length=100)] | None = None
    service_tier: ServiceTier | None = None
    priority: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    metadata: Metadata | None = None
    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None
    """Seconds by which the answer must have been begun."""
    keep_alive: Annotated[float, Field(ge=-1, le=KEEP_ALIVE_LIMIT_S)] | None = None
    """Seconds that the model stays loaded after the answer; 0 not at all, -1 as long as nothing else needs its place."""
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None

    @field_validator("n")
    @classmethod
    def _one_answer(cls, value: int | None) -> int | None:
        _only(value, (None, 1), "UNIUN gives one answer to a request; send it again for another")
        return value

    @field_validator("frequency_penalty", "presence_penalty", "logit_bias")
    @classmethod
    def _unsupported(cls, value: Any) -> Any:
        _only(value, (None, 0, {}), "UNIUN does not support it; leave it out")
        return value

    def urgency(self, now: datetime) -> Urgency:
        wish = self.metadata or Metadata()
        deadline = wish.deadline
        if isinstance(deadline, float):
            deadline = now + timedelta(seconds=deadline)
        return Urgency(
            service_tier=self.service_tier,
            priority=self.priority,
            foreground=wish.foreground,
            kind=wish.kind,
            flow=wish.flow,
            user=self.user or None,
            deadline=deadline,
        )

    def sampling(self) -> Sampling:
        """Holds what is given only, so that the rest can be as the model's makers recommend it."""
        given = {
            "temperature": self.temperature,
            "top_p": max(self.top_p, 1e-6) if self.top_p is not None else None,
            "top_k": max(self.top_k, 0) if self.top_k is not None else None,
            "min_p": self.min_p,
            "seed": self.seed % 2**63 if self.seed is not None else None,
        }
        return Sampling(**{name: value for name, value in given.items() if value is not None})

    def common(self, now: datetime) -> dict[str, Any]:
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        keep = self.keep_alive
        return {
            "model": self.model,
            "sampling": self.sampling(),
            "stop": stop,
            "urgency": self.urgency(now),
            "keep_alive_s": KEEP_ALIVE_LIMIT_S if keep is not None and keep < 0 else keep,
        }


class TemplateWords(Wire):
    """What llama.cpp's server and vLLM hand on to the chat template. UNIUN knows these."""

    enable_thinking: bool | None = None
    thinking: bool | None = None


class ChatIn(GenerationIn):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[MessageIn], Field(min_length=1, max_length=10_000)]
    max_completion_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[ToolIn], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoiceIn | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """`none` asks for the answer at once; between the others there is no difference."""
    chat_template_kwargs: TemplateWords | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None

    @field_validator("logprobs", "top_logprobs")
    @classmethod
    def _no_logprobs(cls, value: Any) -> Any:
        _only(value, (None, 0), "UNIUN does not tell log probabilities; leave it out")
        return value

    @field_validator("tools")
    @classmethod
    def _names_differ(cls, value: list[ToolIn] | None) -> list[ToolIn] | None:
        names = [tool.function.name for tool in value or ()]
        if len(names) != len(set(names)):
            raise ValueError("two tools have the same name")
        return value

    @field_validator("tool_choice")
    @classmethod
    def _choice_is_there(cls, value: Any, info: ValidationInfo) -> Any:
        if "tools" not in info.data:
            return value  # what is wrong with them is told
        names = [tool.function.name for tool in info.data["tools"] or ()]
        if isinstance(value, ToolChoiceIn) and value.function.name not in names:
            raise ValueError("it names a tool that is not among the tools")
        if value == "required" and not names:
            raise ValueError("it is required, but there are no tools")
        return value

    def tooling(self) -> Tooling | None:
        if not self.tools or self.tool_choice == "none":
            return None
        only = self.tool_choice.function.name if isinstance(self.tool_choice, ToolChoiceIn) else None
        return Tooling(
            tools=tuple(tool.entity() for tool in self.tools),
            must_call=only is not None or self.tool_choice == "required",
            only=only,
            parallel=self.parallel_tool_calls is not False,
        )

    def thinking(self) -> bool:
        """Whether the model may think; a word in the template's own terms has precedence."""
        words = self.chat_template_kwargs or TemplateWords()
        said = words.enable_thinking if words.enable_thinking is not None else words.thinking
        return said if said is not None else self.reasoning_effort != "none"

    def job(self, now: datetime) -> ApiJob:
        return ApiJob(
            messages=tuple(message.entity() for message in self.messages),
            max_tokens=self.max_completion_tokens or self.max_tokens,
            json_schema=self.response_format.schema_of_answer() if self.response_format else None,
            tooling=self.tooling(),
            thinking=self.thinking(),
            **self.common(now),
        )


class CompletionIn(GenerationIn):
    """`POST /v1/completions`: a raw prompt, continued as it stands, without a chat template."""

    prompt: Text | Annotated[list[Text], Field(min_length=1, max_length=1)]
    logprobs: int | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None

    @field_validator("logprobs", "echo", "suffix")
    @classmethod
    def _not_done(cls, value: Any) -> Any:
        _only(value, (None, 0, ""), "UNIUN does not support it; leave it out")
        return value

    @field_validator("best_of")
    @classmethod
    def _best_of_one(cls, value: int | None) -> int | None:
        _only(value, (None, 1), "UNIUN gives one answer to a request")
        return value

    def job(self, now: datetime) -> ApiJob:
        prompt = self.prompt if isinstance(self.prompt, str) else self.prompt[0]
        return ApiJob(
            prompt=prompt, max_tokens=self.max_tokens or DEFAULT_COMPLETION_TOKENS, **self.common(now)
        )


class EmbeddingsIn(Wire):
    """`POST /v1/embeddings`."""

    input: Text | Annotated[list[Text], Field(min_length=1, max_length=2_048)]
    model: Name | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1, le=100_000)] | None = None
    user: Annotated[str, Field(max_length=100)] | None = None

    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


DEFAULT_COMPLETION_TOKENS = 16
"""OpenAI's."""


def _only(value: object, allowed: tuple[object, ...], otherwise: str) -> None:
    if value not in allowed:
        raise ValueError(otherwise)
