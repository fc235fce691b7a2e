"""Models that are being fetched, whichever page began it: one after another."""

import asyncio

from domain.entities.models import CatalogueEntry, InstalledModel, PullProgress
from presentation.controllers.models import ModelsController
from presentation.web.changes import Changes
from presentation.web.errands import Errand, Errands, Tell

_STAGES = {
    "wait": "Another program fetches it",
    "download": "Fetching",
    "check": "Checking",
    "unpack": "Unpacking",
    "convert": "Converting",
    "done": "Ready",
}


class Pulls:
    """A step is a `PullProgress`; none while it waits for another download."""

    def __init__(self, models: ModelsController, errands: Errands, changes: Changes) -> None:
        self._models = models
        self._errands = errands
        self._changes = changes
        self._turn = asyncio.Lock()

    def begin(self, name: str) -> Errand:
        """Fetches it, or goes on where an earlier attempt ended."""

        async def work(tell: Tell) -> InstalledModel:
            async with self._turn:
                model = await self._models.pull(name, tell)
            self._changes.tell("models")
            return model

        return self._errands.begin(_key(name), work)

    def get(self, name: str) -> Errand | None:
        """Of this model."""
        return self._errands.get(_key(name))

    def cancel(self, name: str) -> None:
        """What has come is kept for the next attempt."""
        self._errands.cancel(_key(name))

    def want_default(self) -> CatalogueEntry | None:
        """Begins to fetch the default model if it is not there; returns its entry, or none if it is there.

        One that failed is not begun again without being asked.
        """
        shelf = self._models.shelf()
        if any(model.name == shelf.default for model in shelf.installed):
            return None
        entry = next((entry for entry in shelf.available if entry.name == shelf.default), None)
        if entry is not None and self.get(entry.name) is None:
            self.begin(entry.name)
        return entry


def pull_words(step: PullProgress | None) -> str:
    """One line for a progress bar."""
    if step is None:
        return "Waiting for the download before it"
    words = _STAGES[step.stage]
    if step.stage in ("wait", "done") or not step.done_bytes:
        return f"{words}…" if step.stage != "done" else words
    total = f" of {size(step.total_bytes)}" if step.total_bytes else ""
    return f"{words}: {size(step.done_bytes)}{total}"


def fraction(step: PullProgress | None) -> float | None:
    """From 0 to 1; none when it is not known."""
    if step is None or not step.total_bytes:
        return None
    return min(1.0, step.done_bytes / step.total_bytes)


def size(count: int) -> str:
    """Bytes as a user reads them."""
    if count >= 1_000_000_000:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 1_000_000 else f"{count / 1e3:.0f} kB"


def _key(name: str) -> str:
    return f"pull/{name}"
