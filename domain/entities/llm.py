"""A request for inference and what comes back."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from domain.entities.entity import Entity

FinishReason = Literal["stop", "length"]
KEEP_ALIVE_LIMIT_S = 7 * 86_400.0
Tokens = Annotated[int, Field(ge=0)]


class LlmTaskKind(StrEnum):
    """Who asks. The scheduler derives a job's tier from it; callers never name a tier."""

    CHAT = "chat"
    EXTRACT = "extract"
    NATARAJ = "nataraj"
    GANA = "gana"
    API = "api"
    MODEL_SWITCH = "model_switch"


class Tool(Entity):
    """A function that the model may ask for; whoever offers it runs it."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")
    description: str = Field(default="", max_length=20_000)
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """A JSON schema of the arguments, which is an object."""


class Tooling(Entity):
    """The tools of one request, and whether one of them has to be called."""

    tools: tuple[Tool, ...] = Field(min_length=1, max_length=128)
    must_call: bool = False
    only: str | None = None
    """The one tool that may be called, with `must_call`."""
    parallel: bool = True
    """Whether several may be called in one answer."""


class ToolCall(Entity):
    """The model's wish to have a tool run."""

    id: str = Field(max_length=200)
    name: str = Field(max_length=200)
    arguments: dict[str, Any]


class Message(Entity):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = Field(default=(), max_length=128)
    """Of an assistant; its `content` may then be empty."""
    tool_call_id: str | None = Field(default=None, max_length=200)
    """Of a tool: the call that this is the answer to."""


class Sampling(Entity):
    """How the next token is drawn. The same seed gives the same text, preempted or not."""

    temperature: float = Field(default=0.0, ge=0, le=5)
    """0 is greedy decoding."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0, le=1_000_000)
    """0 keeps every token."""
    min_p: float = Field(default=0.0, ge=0, lt=1)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    """Drawn once per job when absent."""


class GenerationRequest(Entity):
    """One job: a prompt for one model, and who asks how urgently.

    Exactly one of `messages` (rendered with the model's chat template) and `prompt` (raw text) is given.
    """

    kind: LlmTaskKind
    flow: str = Field(min_length=1, max_length=200)
    """Who inside the kind asks: a conversation, a note, a deck scope, a Gana, a client."""
    model: str = Field(min_length=1, max_length=200)
    messages: tuple[Message, ...] = Field(default=(), max_length=10_000)
    prompt: str | None = None
    sampling: Sampling = Sampling()
    max_tokens: int = Field(default=512, ge=1, le=1_000_000)
    stop: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(default=(), max_length=16)
    json_schema: dict[str, Any] | None = None
    tooling: Tooling | None = None
    thinking: bool = True
    """Whether a model that thinks before it answers may, where its chat template leaves the choice. With a schema it
    cannot: the answer begins at once."""
    deadline: datetime | None = None
    """Aware time by which the job should have started; once past, it ranks above the fair pool."""
    foreground_hint: bool = False
    weight: float = Field(default=1.0, ge=0.001, le=1000)
    """Share of the flow inside its kind, relative to other flows."""
    coalesce_key: str | None = Field(default=None, max_length=400)
    rank: int = Field(default=0, ge=-(2**31), lt=2**31)
    """Order among the jobs of one flow, smallest first, before that of arrival."""
    keep_alive_s: float | None = Field(default=None, ge=0, le=KEEP_ALIVE_LIMIT_S)
    """How long the model stays loaded after the job when nothing is asked of it; as long as it likes when absent."""
    ahead: bool = False
    """Of a chat: its prompt is read while the user still types, so that it lies ready. Ends after one token; T1 while
    hinted, else after everything."""
    waits_for: str | None = None
    """Id of a job that must end before this one starts; it inherits this one's tier."""

    @model_validator(mode="after")
    def _one_prompt(self) -> "GenerationRequest":
        if self.kind is LlmTaskKind.MODEL_SWITCH:
            raise ValueError("model_switch is not inference: call switch_model")
        if bool(self.messages) == (self.prompt is not None):
            raise ValueError("give either messages or a prompt")
        if not any(m.content.strip() for m in self.messages) and not (self.prompt or "").strip():
            raise ValueError("the prompt is empty")
        if self.ahead and (self.kind is not LlmTaskKind.CHAT or self.max_tokens != 1):
            raise ValueError("only a chat is read ahead, and for one token")
        if self.deadline is not None and self.deadline.tzinfo is None:
            raise ValueError("the deadline needs a time zone")
        return self


class Usage(Entity):
    """Token counts of one job."""

    prompt_tokens: Tokens
    completion_tokens: Tokens
    cached_tokens: Tokens = 0
    """Prompt tokens that were not prefilled again because their KV state was kept."""


class GenerationResult(Entity):
    """The answer of a finished job."""

    text: str
    finish_reason: FinishReason
    usage: Usage
    wait_s: float
    """Submission to first dispatch."""
    first_token_s: float | None
    """Submission to first token; none if no token was produced."""
    service_s: float
    """Device seconds used, preempted time excluded."""
    preemptions: int


class Waiting(Entity):
    """The job is queued."""

    type: Literal["waiting"] = "waiting"
    position: int
    """Its place among all that wait, 1 for the next one, as things stand now …"""
    at_least: bool = False
    """… or, so far back that places are not told, a place that it is not before."""
    estimated_start_s: float | None
    reason: str


class Prefilling(Entity):
    """The prompt is being read."""

    type: Literal["prefilling"] = "prefilling"
    done_tokens: Tokens
    total_tokens: Tokens


class TextDelta(Entity):
    """New text; never splits a character and never contains a stop string. `tokens` is the count so far."""

    type: Literal["text"] = "text"
    text: str
    tokens: Tokens


class Preempted(Entity):
    """The job gave way and will resume where it stopped."""

    type: Literal["preempted"] = "preempted"
    reason: str


class Finished(Entity):
    """The job is done; always the last event."""

    type: Literal["finished"] = "finished"
    result: GenerationResult


GenerationEvent = Waiting | Prefilling | TextDelta | Preempted | Finished
