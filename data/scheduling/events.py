"""What goes into the scheduler (events, each with its time) and what comes out (instructions and trace records)."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from data.scheduling.config import SchedulerConfig
from data.scheduling.jobs import JobSpec
from domain.entities.llm import LlmTaskKind


@dataclass(frozen=True, slots=True)
class Submit:
    at: float
    job: JobSpec


@dataclass(frozen=True, slots=True)
class Cancel:
    """The caller `id` wants its job, or its model switch, ended."""

    at: float
    id: str


@dataclass(frozen=True, slots=True)
class SetForeground:
    """The user looks at `kind`, with a subject at one flow of it; at nothing when `kind` is none."""

    at: float
    kind: LlmTaskKind | None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Configure:
    """The user has tuned something; it holds for this decision and all later ones."""

    at: float
    config: SchedulerConfig


@dataclass(frozen=True, slots=True)
class SwitchModel:
    at: float
    id: str
    model: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class Reload:
    """What models are loaded with has changed: the resident one is to be loaded anew."""

    at: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """The engine reached a boundary after `Stop`. `tokens_done` counts over all runs of the job."""

    at: float
    job_id: str
    tokens_done: int


@dataclass(frozen=True, slots=True)
class Completed:
    at: float
    job_id: str
    tokens_done: int


@dataclass(frozen=True, slots=True)
class JobFailed:
    at: float
    job_id: str
    error: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """`slots` jobs of it can run at once."""

    at: float
    model: str
    slots: int = 1


@dataclass(frozen=True, slots=True)
class LoadFailed:
    at: float
    model: str
    error: str


@dataclass(frozen=True, slots=True)
class EngineDied:
    """The engine process was lost, whatever it was doing. A new one has nothing resident."""

    at: float
    cause: str


@dataclass(frozen=True, slots=True)
class Tick:
    """The timer that `Wake` asked for."""

    at: float


Event: TypeAlias = (
    Submit
    | Cancel
    | SetForeground
    | Configure
    | SwitchModel
    | Reload
    | Stopped
    | Completed
    | JobFailed
    | Loaded
    | LoadFailed
    | EngineDied
    | Tick
)


class Outcome(Enum):
    """How a caller's request ended."""

    FINISHED = "finish"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REJECTED = "rejected"


class Cause(Enum):
    """What kind of error ended a request, for whoever has to raise it."""

    NONE = "none"
    QUEUE_FULL = "queue_full"
    INVALID = "invalid"
    FORCED_SWITCH = "forced_switch"
    LOAD_FAILED = "load_failed"
    ENGINE_LOST = "engine_lost"
    JOB_ERROR = "job_error"


@dataclass(frozen=True, slots=True)
class Start:
    """Run the job; `resumed` when it has run before."""

    job_id: str
    resumed: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the running job at its next boundary."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Load:
    """Unload what is resident and load `model`."""

    model: str


@dataclass(frozen=True, slots=True)
class Unload:
    """Give the memory of the resident model back."""


@dataclass(frozen=True, slots=True)
class End:
    """Answer the caller `id`. `limit` and `depth` come with `QUEUE_FULL`, `flow` too when the flow's limit is meant."""

    id: str
    job_id: str
    outcome: Outcome
    cause: Cause = Cause.NONE
    error: str = ""
    limit: int = 0
    depth: int = 0
    flow: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """The job is over: drop what is kept for resuming it."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Send a `Tick` at this time, in place of any asked for before; none is needed when `at` is none."""

    at: float | None


Instruction: TypeAlias = Start | Stop | Load | Unload | End | Release | Wake


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the trace."""

    t: float
    event: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """All that follows from one event."""

    instructions: tuple[Instruction, ...]
    records: tuple[Record, ...]
