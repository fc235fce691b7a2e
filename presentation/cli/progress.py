"""What a waiting user sees, on stderr and only on a terminal."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from domain.entities.llm import GenerationEvent, Preempted, Prefilling, Waiting
from domain.entities.models import InstalledModel, PullProgress
from presentation.cli.terminal import err, printable, say
from presentation.controllers.models import ModelsController
from presentation.counting import counted
from presentation.scheduler_words import because, wait_words

PATIENCE_S = 1.0
"""Shorter waits are not worth a word."""
_STAGES = {
    "wait": "another uniun is fetching",
    "download": "fetching",
    "check": "checking",
    "unpack": "unpacking",
    "convert": "converting",
    "done": "done",
}


class CountColumn(MofNCompleteColumn):
    """Empty until it is known how many there are."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class WaitingLine:
    """A line with the reason, from one second of silence until the first text.

    Enter it in a running event loop.
    """

    def __init__(self, reason: str) -> None:
        self._console = err()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task(reason, total=None)
        self._timer: asyncio.TimerHandle | None = None
        self._started = False

    def __enter__(self) -> "WaitingLine":
        if self._console.is_terminal:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._start)
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def tell(self, event: GenerationEvent) -> None:
        """Takes the reason from what happens to the job."""
        match event:
            case Waiting(reason=reason):
                self.show(wait_words(reason))
            case Prefilling(done_tokens=done, total_tokens=total):
                self.show(f"reading the prompt, {done:,} of {counted(total, 'token')}")
            case Preempted(reason=reason):
                self.show(f"gave way: {because(reason)}")

    def close(self) -> None:
        """Wipes the line; nothing is shown from here on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._started:
            self._progress.stop()

    def _start(self) -> None:
        self._started = True
        self._progress.start()

    def show(self, reason: str) -> None:
        """What is being waited for."""
        self._progress.update(self._task, description=printable(reason))


async def ensure(models: ModelsController, name: str | None) -> InstalledModel:
    """The model to use; the default one is fetched, with a bar, when it is not there."""
    with _pull_bar(tell_ready=True) as report:
        return await models.ensure(name, report)


async def pull(models: ModelsController, name: str) -> InstalledModel:
    """Fetches a model with a bar."""
    with _pull_bar(tell_ready=False) as report:
        return await models.pull(name, report)


class _PullBar:
    """Appears with the first report: a model that is there already shows nothing."""

    def __init__(self, *, tell_ready: bool) -> None:
        self._console = err()
        self._tell_ready = tell_ready
        self._progress: Progress | None = None
        self._stage = ""

    def __call__(self, step: PullProgress) -> None:
        if self._progress is None:
            self._progress = self._open()
            self._task = self._progress.add_task("", total=step.total_bytes)
        if step.stage != self._stage:
            self._stage = step.stage
            if not self._console.is_terminal:
                self._tell()
            self._progress.reset(self._task, total=step.total_bytes, description=_STAGES[step.stage])
        self._progress.update(self._task, completed=step.done_bytes, total=step.total_bytes)

    def _tell(self) -> None:
        if self._stage != "done":
            say(f"{_STAGES[self._stage]} the model…")
        elif self._tell_ready:
            say("the model is ready.")

    def _open(self) -> Progress:
        progress = Progress(
            TextColumn("{task.description:10}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        progress.start()
        return progress

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


@contextmanager
def _pull_bar(*, tell_ready: bool) -> Iterator[_PullBar]:
    bar = _PullBar(tell_ready=tell_ready)
    try:
        yield bar
    finally:
        bar.close()
