"""Agents that the user defines."""

from datetime import datetime
from typing import Literal

from pydantic import Field, HttpUrl, field_validator, model_validator

from domain.entities.entity import Entity
from domain.entities.llm import GenerationEvent
from domain.entities.note import MAX_TAG_CHARACTERS, clean_title, normal_tag

TriggerMode = Literal["recurring", "one_shot"]
MissedRuns = Literal["skip", "latest", "all"]
GanaMode = Literal["interactive", "preview", "cron"]
RunStatus = Literal["running", "succeeded", "skipped", "failed"]
SkipReason = Literal[
    "no_model",
    "no_new_input",
    "nothing_to_say",
    "cancelled",
    "stopped",
    "missed",
    "already_running",
    "needs_app",
    "error",
]

MIN_INTERVAL_MINUTES = 5
REACTION_S = 3.0
"""A reactive Gana runs about so long after new input, so that a burst of notes is one run."""
RUNS_PER_GANA = 10
RUNS_IN_ALL = 1_000


class GanaDraft(Entity):
    """What the user says of an agent."""

    name: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=2_000)
    manas_ids: tuple[str, ...] = Field(default=(), max_length=50)
    """Knowledge that it may draw on."""
    task: str = Field(min_length=1, max_length=20_000)
    """The prompt."""
    input_tag: str | None = None
    input_manas_id: str | None = None
    """What it watches: a tag or a Manas, at most one; neither means that it needs no input."""
    output_tag: str | None = None
    """Its notes get this tag."""
    webhook: HttpUrl | None = None
    model: str | None = None
    """None: the default model."""
    mode: TriggerMode = "recurring"
    reactive: bool = False
    interval_minutes: int | None = Field(default=None, ge=MIN_INTERVAL_MINUTES, le=525_600)
    cron: str | None = Field(default=None, max_length=200)
    """Five fields, in the machine's time zone."""
    once_at: datetime | None = None
    missed_runs: MissedRuns = "latest"
    agentic: bool = False
    """May call tools over the graph, at most four rounds."""

    @field_validator("name")
    @classmethod
    def _one_line(cls, name: str) -> str:
        """As it can be shown, and typed to find it again."""
        shown = clean_title(name)
        if not shown:
            raise ValueError("a name needs a character that can be seen")
        return shown

    @field_validator("input_tag", "output_tag")
    @classmethod
    def _normal(cls, tag: str | None) -> str | None:
        """As notes have it."""
        if tag is None:
            return None
        normal = normal_tag(tag)
        if not normal:
            raise ValueError(f"{tag!r} is no tag; use letters or digits")
        if len(normal) > MAX_TAG_CHARACTERS:
            raise ValueError(f"a tag has {MAX_TAG_CHARACTERS} characters at most")
        return normal

    @property
    def needs_app(self) -> bool:
        """The background process does not run it: it calls tools, or it tells somebody outside what it wrote."""
        return self.agentic or self.webhook is not None

    @model_validator(mode="after")
    def _one_trigger(self) -> "GanaDraft":
        if self.input_tag is not None and self.input_manas_id is not None:
            raise ValueError("watch a tag or a Manas, not both")
        if self.interval_minutes is not None and self.cron is not None:
            raise ValueError("give an interval or a cron expression, not both")
        if self.mode == "one_shot" and (self.interval_minutes is not None or self.cron is not None):
            raise ValueError("a one-shot Gana has a time, not an interval")
        if self.once_at is not None and self.once_at.tzinfo is None:
            raise ValueError("the time needs a time zone")
        if self.reactive and self.input_tag is None and self.input_manas_id is None:
            raise ValueError("say which notes it reacts to, for example: when a note tagged inbox is added")
        return self


class GanaProgress(Entity):
    """One step of a run, for whoever watches."""

    round: int = 1
    tool: str = ""
    """What an agentic Gana does with the graph in this round."""
    event: GenerationEvent


class Gana(Entity):
    """An agent as it is stored. Off until the user says so."""

    id: str
    draft: GanaDraft
    enabled: bool = False
    cursor: int | None = None
    """The number of the newest arrival in its input that has been dealt with."""
    due_at: datetime | None = None
    """Its next tick; none when it has none."""
    created_at: datetime


class Tick(Entity):
    """One due time of one Gana, claimed by one process. Nobody else gets it."""

    gana_id: str
    due_at: datetime | None
    """None for a run outside the calendar: asked for by the user, or a reaction to new input."""
    claim: str
    """Who claimed it, unique per claim."""


class GanaRun(Entity):
    """One line of the run log."""

    id: str
    gana_id: str
    due_at: datetime | None
    """None for a run that the user asked for."""
    status: RunStatus
    reason: SkipReason | None = None
    detail: str = ""
    input_note_ids: tuple[str, ...] = ()
    output_note_id: str | None = None
    output: str = ""
    started_at: datetime
    seconds: float = 0.0
    tokens: int = 0
    preemptions: int = 0
    by: Literal["app", "background"] = "app"
