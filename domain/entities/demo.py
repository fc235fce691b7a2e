"""What the demo shows while it runs and what it has measured. Times are seconds from the start of a run's window."""

from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import SchedulerSnapshot

DemoPolicy = Literal["idle", "fifo", "two-lane", "uniun"]
"""`idle` is the chats alone, one after another: what they take when nothing else runs."""


class DemoChat(Entity):
    """One question of the scripted user."""

    question: str
    sent_s: float
    waited_s: float
    """From sending to the first token, or to the end of the window if there was none."""
    first_token: bool
    thirtieth_waited_s: float
    """The same for the 30th token."""
    thirtieth_token: bool
    tokens: int
    text: str
    finished: bool
    """False also for an answer that was cut off by the end of the window."""

    @property
    def ended_early(self) -> bool:
        """The answer was complete before its 30th token, so there is no such time."""
        return self.finished and not self.thirtieth_token


class DemoGana(Entity):
    """One Gana run with a due time."""

    flow: str
    due_s: float
    late_s: float
    """Start after due; 0 when it started before. To the end of the window if it did not start."""
    started: bool


class DemoSpan(Entity):
    """Who had the device."""

    start_s: float
    end_s: float
    kind: LlmTaskKind


class DemoQuantile(Entity):
    """A nearest-rank quantile."""

    value_s: float
    lower_bound: bool
    """Something that counts with the time it had waited until the window closed may move the true value up."""


class DemoQuantiles(Entity):
    """Of one figure over the run's chats."""

    count: int
    p50: DemoQuantile
    p95: DemoQuantile
    max: DemoQuantile


class DemoRun(Entity):
    """One policy under the load, measured."""

    policy: DemoPolicy
    window_s: float
    load_s: float
    """Starting the engine and loading the model, before the window."""
    chats: tuple[DemoChat, ...]
    first_token_s: DemoQuantiles
    thirtieth_token_s: DemoQuantiles | None
    """None when every answer was shorter."""
    background_tokens: int
    """Produced by all jobs that are no chats, the unfinished ones included."""
    background_tokens_per_s: float
    finished: dict[LlmTaskKind, int]
    ganas: tuple[DemoGana, ...]
    busy_s: float
    chats_s: float
    """Of the busy time, what the chats took."""
    preemptions: int
    swaps: int
    spans: tuple[DemoSpan, ...]


class DemoMachine(Entity):
    """What the figures were measured on."""

    system: str
    processor: str
    cores: int = Field(ge=1)
    memory_bytes: int
    busy_before: float = Field(ge=0, le=1)
    """Share of the processor that other programs used before the first run."""
    python: str


class DemoReport(Entity):
    """The whole demo."""

    at: str
    """ISO date and time."""
    machine: DemoMachine
    engine: str
    model: str
    load: str
    """The load in words."""
    policy_time_scale: float
    """The scheduler's window and slice times of a real device, times this, were used."""
    runs: tuple[DemoRun, ...]
    verdict: str


class DemoStarting(Entity):
    """A fresh engine is being started for the next run."""

    policy: DemoPolicy
    number: int
    """1, 2, … of `count` runs."""
    count: int
    window_s: float


class DemoMoment(Entity):
    """A look at a run under way."""

    policy: DemoPolicy
    at_s: float
    window_s: float
    surface: str
    """What the scripted user looks at, in words."""
    snapshot: SchedulerSnapshot
    chats: tuple[DemoChat, ...]
    """Those sent so far, in order."""
    spans: tuple[DemoSpan, ...]
    background_tokens: int


DemoEvent = DemoMachine | DemoStarting | DemoMoment | DemoRun
"""First of all the machine. A `DemoRun` is told when its window has closed."""
