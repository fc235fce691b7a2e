"""What another program asks of the language model, in its own words."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from domain.entities.entity import Entity
from domain.entities.llm import LlmTaskKind, Message, Sampling, Tooling

ServiceTier = Literal["auto", "default", "priority", "fast", "scale", "flex"]
ClientKind = Literal["chat", "extract", "nataraj", "gana", "api"]
Weight = Annotated[float, Field(gt=0, le=100)]
PerMinute = Annotated[int, Field(ge=1, le=100_000)]


class ApiKey(Entity):
    """A program that may use the API, and how it is ranked. Of the key itself only a hash is kept."""

    id: str
    name: str = Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f/]+$")
    hash: str
    kind: ClientKind = "api"
    """Of requests that do not say."""
    weight: Weight = 1.0
    """Its share of the fair pool, relative to other clients of the same kind."""
    per_minute: PerMinute | None = None
    """Requests that it may make in a minute; any number when absent."""
    created_at: datetime


class ApiClient(Entity):
    """Who asks."""

    key: ApiKey | None = None
    address: str = "local"
    agent: str = ""


class Urgency(Entity):
    """How soon a client wants its answer, in the words of the protocols that clients speak.

    The more specific word counts: `foreground` before `priority` before `service_tier`.
    """

    service_tier: ServiceTier | None = None
    """`flex` waits in the fair pool. Anything else, or nothing, is for somebody who waits."""
    priority: int | None = Field(default=None, ge=-(2**31), lt=2**31)
    """vLLM's: above 0 waits in the fair pool; among a client's own requests, lower is sooner."""
    foreground: bool | None = None
    kind: ClientKind | None = None
    flow: str | None = Field(default=None, min_length=1, max_length=100)
    user: str | None = Field(default=None, min_length=1, max_length=100)
    deadline: datetime | None = None


class ApiJob(Entity):
    """One request for text. Of `messages` and `prompt` exactly one is given."""

    model: str | None = None
    """None or `default` for the one that the user chose."""
    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    """As many as fit when absent."""
    stop: tuple[str, ...] = ()
    json_schema: dict[str, Any] | None = None
    tooling: Tooling | None = None
    thinking: bool = True
    urgency: Urgency = Urgency()
    keep_alive_s: float | None = None


class Place(Entity):
    """Where a request stands in the scheduler's words."""

    kind: LlmTaskKind
    flow: str
    foreground_hint: bool
    rank: int
    weight: float


def place(urgency: Urgency, client: ApiClient) -> Place:
    """A client's words in the scheduler's. Who presents a key stays inside it, whatever flow or user it names."""
    key = client.key
    kind = LlmTaskKind(urgency.kind or (key.kind if key else "api"))
    priority = urgency.priority or 0
    if urgency.foreground is not None:
        hint = urgency.foreground
    elif urgency.priority is not None:
        hint = urgency.priority <= 0
    else:
        hint = kind is LlmTaskKind.API and urgency.service_tier != "flex"
    return Place(
        kind=kind,
        flow=_flow(urgency, client),
        foreground_hint=hint,
        rank=priority,
        weight=key.weight if key else 1.0,
    )


def _flow(urgency: Urgency, client: ApiClient) -> str:
    if client.key is not None:
        return f"{client.key.name}/{urgency.flow}" if urgency.flow else client.key.name
    if urgency.flow is not None:
        return urgency.flow
    if urgency.user is not None:
        return f"user {urgency.user}"
    return f"{client.address} {client.agent}".strip()[:190]
