"""Runners under test, driven from synchronous tests."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from data.clock import SystemClock
from data.inference.fake import FakeRunner
from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from domain.entities.llm import Message, Sampling
from domain.entities.models import CatalogueEntry, InstalledModel, PullProgress, RemoteModel
from domain.errors import UnknownModel
from domain.repositories.inference_runner import InferenceRunner, RunnerJob, RunnerOutcome, RunnerProgress

GREEDY = Sampling(seed=1)
SAMPLED = Sampling(temperature=0.9, top_p=0.95, top_k=50, min_p=0.02, seed=11)
CONTEXT_TOKENS = 512
NAMES = ("one", "two")
"""Two names for the same files, so that a swap can be tested with one download."""


class Shelf:
    """A model store that knows one installed model by several names, and one damaged file."""

    def __init__(self, model: InstalledModel, damaged: Path | None = None) -> None:
        self._model = model
        self._damaged = damaged

    def get(self, name: str) -> InstalledModel:
        if name == "damaged" and self._damaged is not None:
            return InstalledModel(
                name=name, source="test", size_bytes=1, gguf_path=self._damaged, mlx_path=self._damaged.parent
            )
        if name not in NAMES:
            raise UnknownModel(f"No model named {name!r}.")
        return self._model.model_copy(update={"name": name})

    def catalogue(self) -> tuple[CatalogueEntry, ...]:
        return ()

    def installed(self) -> tuple[InstalledModel, ...]:
        return tuple(map(self.get, NAMES))

    def default_name(self) -> str:
        return NAMES[0]

    async def pull(self, name: str, progress: Callable[[PullProgress], None]) -> InstalledModel:
        return self.get(name)

    def register(self, name: str, path: Path) -> InstalledModel:
        return self.get(name)

    def register_remote(self, name: str, remote: RemoteModel, context_tokens: int | None) -> InstalledModel:
        return self.get(name)

    def use(self, name: str) -> InstalledModel:
        return self.get(name)

    def remove(self, name: str) -> int:
        return 0


def options(backend: str, **changes: object) -> EngineOptions:
    return EngineOptions.model_validate({"backend": backend, "context_tokens": CONTEXT_TOKENS, **changes})


OPENING = "Once upon a time, in a small house,"


class Rig:
    """A runner and the event loop that it lives on, for a whole module."""

    def __init__(self, kind: str, runner: InferenceRunner, *, slow: bool = False) -> None:
        self.kind = kind
        self.length = 12 if slow else 30
        """Tokens to produce: few where the engine is slow."""
        self.runner = runner
        self.loop = asyncio.Runner()
        self._jobs = 0
        self._whole: dict[tuple[str, Sampling], RunnerOutcome] = {}

    def job(self, prompt: str = OPENING, **fields: object) -> RunnerJob:
        self._jobs += 1
        given = {
            "id": f"job-{self._jobs}",
            "prompt": prompt,
            "max_tokens": self.length,
            "sampling": GREEDY,
        } | fields
        if "messages" in given:
            given["prompt"] = None
        return RunnerJob.model_validate({"cache_key": given["id"], **given})

    def load(self, name: str = "one") -> None:
        self.loop.run(self.runner.load(name))

    def run(
        self, job: RunnerJob, *, stop_after: int | None = None
    ) -> tuple[RunnerOutcome, list[RunnerProgress]]:
        """Runs to the end, or asks for a stop at the boundary of this number (1 is the first)."""
        seen: list[RunnerProgress] = []

        def emit(progress: RunnerProgress) -> None:
            seen.append(progress)
            if len(seen) == stop_after:
                self.runner.stop(job.id)

        return self.loop.run(self.runner.run(job, emit)), seen

    def run_in_pieces(self, job: RunnerJob, boundaries: int = 1) -> tuple[RunnerOutcome, int, str]:
        """Stops after every so many boundaries and resumes; outcome, number of cuts, streamed text."""
        cuts, text = 0, ""
        while True:
            outcome, seen = self.run(job, stop_after=boundaries)
            text += "".join(progress.text for progress in seen)
            assert outcome.text == text
            if outcome.status == "finished":
                return outcome, cuts, text
            cuts += 1

    def whole(self, sampling: Sampling, prompt: str = OPENING) -> RunnerOutcome:
        """The uninterrupted answer, produced once per module."""
        if (prompt, sampling) not in self._whole:
            job = self.job(prompt, sampling=sampling)
            self._whole[prompt, sampling], _ = self.run(job)
            self.runner.forget(job.id)
        return self._whole[prompt, sampling]

    def close(self) -> None:
        self.loop.run(self.runner.aclose())
        self.loop.close()


def make_rig(
    kind: str, model: InstalledModel | None = None, damaged: Path | None = None, **changes: object
) -> Rig:
    if kind == "fake":
        return Rig(kind, FakeRunner(NAMES, context_tokens=CONTEXT_TOKENS))
    assert model is not None
    return Rig(
        kind, EngineRunner(Shelf(model, damaged), options(kind, **changes), SystemClock()), slow=kind == "mlx"
    )


def engine(rig: Rig) -> EngineRunner:
    assert isinstance(rig.runner, EngineRunner)
    return rig.runner


def strike(runner: EngineRunner, number: signal.Signals = signal.SIGKILL) -> None:
    """Sends the engine process a signal."""
    assert runner.pid is not None
    os.kill(runner.pid, number)


def chat(*contents: str) -> tuple[Message, ...]:
    """User and assistant in turn."""
    return tuple(
        Message(role="assistant" if at % 2 else "user", content=content)
        for at, content in enumerate(contents)
    )
