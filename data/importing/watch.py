"""Changes below a folder, in bursts."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

from watchfiles import Change, awatch

from data.importing.walk import is_hidden
from domain.errors import UniunError

QUIET_MS = 200
"""A burst ends after so long without a change: a program that saves a file by replacing it makes three or four."""
LONGEST_BURST_MS = 2_000
_LOOK_MS = 500


async def bursts(root: Path) -> AsyncGenerator[frozenset[str], None]:
    """Paths that changed. The first one, empty, says that from here on nothing is missed."""

    def is_visible(change: Change, path: str) -> bool:
        return not any(is_hidden(part) for part in os.path.relpath(path, root).split(os.sep) if part != "..")

    watching = False
    try:
        async for changes in awatch(
            root,
            watch_filter=is_visible,
            debounce=LONGEST_BURST_MS,
            step=QUIET_MS,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        ):
            if changes or not watching:
                watching = True
                yield frozenset(path for _, path in changes)
    except OSError as error:
        raise UniunError(
            f"The folder {root} cannot be watched: {error.strerror or error}. Import it now and then instead."
        ) from None
