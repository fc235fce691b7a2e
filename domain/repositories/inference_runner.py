"""The device: loads one model at a time and runs one job at a time, stoppable at every boundary."""

from collections.abc import Callable
from typing import Literal, Protocol

from domain.entities.entity import Entity
from domain.entities.llm import FinishReason, Message, Sampling, Tooling, Usage


class LoadedModel(Entity):
    """What the engine says of a model that it has just loaded."""

    name: str
    engine: str
    """`llama.cpp`, `mlx`, `remote` or `fake`."""
    context_tokens: int
    load_s: float
    memory_bytes: int
    slots: int = 1
    """Runs that may overlap."""


class RunnerJob(Entity):
    """Everything the device needs to know of a job; `id` names its kept state."""

    id: str
    cache_key: str
    """Jobs of one conversation share it, so that the next turn finds the prefix that is kept."""
    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    sampling: Sampling = Sampling()
    """`seed` is always set."""
    max_tokens: int
    stop: tuple[str, ...] = ()
    json_schema: dict[str, object] | None = None
    tier: int = 4
    """As this run begins, smaller is sooner: for a device that orders requests of several programs."""
    tooling: Tooling | None = None
    """Rendered by the model's own chat template. Calls come in its text, in a form that `domain.usecases.tool_calls`
    reads, and only with arguments that the tool's schema allows."""
    thinking: bool = True


class RunnerProgress(Entity):
    """Told at a boundary: after a prefill chunk (`text` empty) or after a token."""

    prefilled_tokens: int
    """Prompt tokens in the KV state so far."""
    prompt_tokens: int
    tokens_done: int
    """Tokens produced so far, over all runs of the job."""
    text: str
    """New text since the last progress; may be empty while a character or a possible stop string is incomplete."""


class RunnerOutcome(Entity):
    """How a run ended: finished for good, or stopped at a boundary and ready to resume."""

    status: Literal["finished", "stopped"]
    finish_reason: FinishReason | None = None
    tokens_done: int
    text: str
    """The whole text so far, over all runs of the job. A model's thinking is in it between the tags that
    `domain.usecases.thinking` knows."""
    usage: Usage


class InferenceRunner(Protocol):
    """The port to the engine. `load` overlaps nothing, and no more runs overlap each other than the loaded model has slots;
    `stop` and `forget` may come at any time."""

    async def load(self, model: str) -> LoadedModel:
        """Unloads what is resident and loads `model`.

        Raises `UnknownModel`, `ModelDamaged`, `ModelLoadFailed`, `EngineMissing`; nothing is resident then.
        """
        ...

    async def unload(self) -> None:
        """Gives the memory back. Harmless when nothing is loaded."""
        ...

    async def run(self, job: RunnerJob, emit: Callable[[RunnerProgress], None]) -> RunnerOutcome:
        """Starts the job or, if it was stopped before, resumes it without losing a token.

        `emit` is called on the event loop at every boundary. Raises `EngineLost` when the engine died or hung (a new
        process is then ready to `load`; a later `run` resumes from the tokens), `InvalidRequest` or `EngineError` when
        this job failed. Cancelling the call stops the job at its next boundary and forgets it.
        """
        ...

    def stop(self, job_id: str) -> None:
        """Asks the running job to stop at its next boundary; `run` then returns `stopped` (or `finished`)."""
        ...

    def forget(self, job_id: str) -> None:
        """The job has ended: drops what is kept for resuming it. Its prefix may be kept for the same `cache_key`."""
        ...

    async def aclose(self) -> None:
        """Ends the engine process."""
        ...
