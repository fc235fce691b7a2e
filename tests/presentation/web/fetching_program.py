"""The served app over a model store that fetches as it is told: files in the data folder say what happens.

`fetching_program.py PORT`. A pull comes to 30 of 100 MB and stays there until `go-NAME` appears, or fails when `fail-NAME` does,
once. Nothing is installed at first; the hub answers.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer

import uniun
from data.models.reachability import HubReachability
from domain.entities.models import InstalledModel, PullProgress
from domain.errors import ModelUnavailable
from presentation.cli.serve import serve
from tests.fakes import ENTRY, MemoryStore
from tests.presentation.web.program import PacedRunner

_LOOK_S = 0.02
_GB = 1_000_000_000


class ObedientStore(MemoryStore):
    """Implements `ModelStore`; `folder` is where it looks for what to do."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        for name, memory_gb in (("other", 1), ("huge", 5_000)):
            entry = {"name": name, "title": name.title(), "memory_bytes": memory_gb * _GB}
            self.offered.append(ENTRY.model_copy(update=entry))

    async def pull(self, name: str, progress: Callable[[PullProgress], None]) -> InstalledModel:
        fail, go = self._folder / f"fail-{name}", self._folder / f"go-{name}"
        progress(PullProgress(stage="download", done_bytes=30_000_000, total_bytes=100_000_000))
        while not await asyncio.to_thread(go.exists):
            if await asyncio.to_thread(fail.exists):
                await asyncio.to_thread(fail.unlink)
                raise ModelUnavailable(
                    f"{name} could not be fetched: its source cannot be reached. Try again."
                )
            await asyncio.sleep(_LOOK_S)
        self.names.append(name)
        progress(PullProgress(stage="done", done_bytes=100_000_000, total_bytes=100_000_000))
        return self.get(name)


async def _answers(self: HubReachability) -> bool:
    return True


def main(port: int) -> None:
    build, store = uniun.build_container, ObedientStore(Path(os.environ["UNIUN_DATA_DIR"]))

    def built(*given: Any) -> DeclarativeContainer:
        container = build(*given)
        container.runner.override(providers.Object(PacedRunner(1 / 400)))
        container.store.override(providers.Object(store))
        return container

    uniun.build_container = built  # type: ignore[assignment]
    HubReachability.answers = _answers  # type: ignore[method-assign]
    asyncio.run(serve(uniun.open_server, "127.0.0.1", port, show=False))


if __name__ == "__main__":
    main(int(sys.argv[1]))
