"""Repositories of the Hugging Face hub, fetched in a child process that can be killed at any moment.

As a program (`python -m data.models.hub OWNER/NAME FOLDER`) it prints one JSON object a line: first the list of files,
then progress, and on failure the cause in a word. The hub's own client resumes what is there already.
"""

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from data.models.child import run_module
from data.models.files import DISK_FULL
from data.models.inspection import MAX_MLX_FILES, MLX_FILES
from data.models.wheel import DiskFull
from domain.counting import counted
from domain.entities.models import PullProgress
from domain.errors import ModelUnavailable, UnknownModel
from domain.reasons import thread_limit

_TELL_EVERY_S = 0.5
_CAUSES = {
    "unreachable": "the hub cannot be reached; check the network",
    "gated": "its licence must be accepted on huggingface.co first (then log in with `hf auth login`)",
    "other": "it is not in MLX format; download a GGUF file yourself and register it instead",
    "failed": "the hub's client failed",
}


@dataclass(frozen=True)
class HubFile:
    """A file as the hub describes it; `sha256` only for those kept in large-file storage."""

    name: str
    size_bytes: int
    sha256: str | None


@dataclass(frozen=True)
class HubListing:
    """What a repository holds at one commit."""

    revision: str
    licence: str
    files: tuple[HubFile, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


async def fetch_repository(
    repository: str,
    folder: Path,
    progress: Callable[[PullProgress], None],
    accept: Callable[[HubListing], None],
) -> HubListing:
    """Downloads a repository's MLX files into `folder`, resuming what is there; `accept` may raise before it starts.

    Raises `UnknownModel`, `ModelUnavailable` with the cause, `DiskFull`.
    """
    listing: HubListing | None = None
    failure: dict[str, Any] = {}

    def on_line(line: str) -> None:
        nonlocal listing
        message = _message(line)
        if "files" in message:
            files = tuple(HubFile(*entry) for entry in message["files"])
            listing = HubListing(message["revision"], message["licence"], files)
            accept(listing)
        elif "done" in message and listing is not None:
            done = min(int(message["done"]), listing.total_bytes)
            progress(PullProgress(stage="download", done_bytes=done, total_bytes=listing.total_bytes))
        elif "cause" in message:
            failure.update(message)

    cache = folder / ".cache"
    result = await run_module(
        "data.models.hub",
        repository,
        str(folder),
        on_line=on_line,
        env={"HF_XET_CACHE": str(cache / "xet"), "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
    )
    if result.code == 0 and listing is not None:
        return listing
    cause = failure.get("cause", "failed")
    if cause == "full":
        raise DiskFull
    if cause == "not found":
        raise UnknownModel(
            f"The Hugging Face hub has no repository {repository}, or it is private. Check the spelling on "
            "huggingface.co; `uniun models list` shows models that are known to work."
        )
    if why := thread_limit(failure.get("detail", "") + result.tail):
        raise ModelUnavailable(f"{repository} could not be fetched. {why} Then pull again, which resumes it.")
    detail = failure.get("detail", result.cause)
    # That the hub cannot be reached says it all; what the resolver or the socket said of it helps nobody.
    more = "" if cause == "unreachable" else f" ({detail[:300]})"
    raise ModelUnavailable(
        f"{repository} could not be fetched: {_CAUSES[cause]}{more}. Pulling again resumes it. "
        "`smollm2-135m` does not need the hub: it comes from the Python package index."
    )


def _message(line: str) -> dict[str, Any]:
    """The program's own lines; whatever else the client prints is not ours and is skipped."""
    if not line.startswith('{"'):
        return {}
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _download(repository: str, folder: Path) -> None:
    from huggingface_hub import HfApi, snapshot_download

    info = HfApi().model_info(repository, files_metadata=True)
    siblings = {sibling.rfilename: sibling for sibling in info.siblings or []}
    # mlx-lm reads the top folder only; a name with a separator is not wanted, whatever it points to.
    names = [
        name
        for name in siblings
        if "/" not in name and "\\" not in name and any(fnmatch(name, pattern) for pattern in MLX_FILES)
    ]
    if not any(name.endswith(".safetensors") for name in names) or len(names) > MAX_MLX_FILES:
        raise _NotForMlx(
            f"{len(names)} of its {counted(len(siblings), 'file')} are of use, none of them weights, or too many are"
        )
    files = []
    for name in names:
        large = siblings[name].lfs
        files.append((name, siblings[name].size or 0, large.sha256 if large else None))
    licence = next((tag.split(":", 1)[1] for tag in info.tags or [] if tag.startswith("license:")), "unknown")
    _say(files=files, revision=info.sha, licence=licence)
    finished = threading.Event()
    watcher = threading.Thread(target=_tell_bytes_on_disk, args=(folder, finished), daemon=True)
    watcher.start()
    try:
        snapshot_download(
            repository,
            revision=info.sha,
            local_dir=folder,
            cache_dir=folder / ".cache" / "hub",
            allow_patterns=names,
            max_workers=4,
        )
    finally:
        finished.set()
        watcher.join()


def _tell_bytes_on_disk(folder: Path, finished: threading.Event) -> None:
    """Counted on disk: how the client reports progress differs from version to version."""
    while not finished.wait(_TELL_EVERY_S):
        partial = folder / ".cache" / "huggingface" / "download"
        done = 0
        for path in (*folder.glob("*"), *partial.glob("*.incomplete")):
            with contextlib.suppress(OSError):  # a finished part is renamed between listing and looking
                done += path.stat().st_size if path.is_file() else 0
        _say(done=done)


class _NotForMlx(Exception):
    """The repository holds something else, for example GGUF files."""


def _cause(error: BaseException) -> str:
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    if isinstance(error, _NotForMlx):
        return "other"
    if isinstance(error, GatedRepoError):
        return "gated"
    if isinstance(error, RepositoryNotFoundError):
        return "not found"
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return "full"
    if isinstance(error, HfHubHTTPError):
        return "failed"
    names = {type(e).__name__ for e in (error, error.__cause__, error.__context__) if e is not None}
    known = (
        "Connect",
        "Timeout",
        "Network",
        "Offline",
        "LocalEntry",
        "ConnectionError",
        "Proxy",
        "Protocol",
        "Read",
    )
    return "unreachable" if any(part in name for name in names for part in known) else "failed"


def main(arguments: Sequence[str]) -> int:
    try:
        _download(arguments[0], Path(arguments[1]))
    except Exception as error:  # noqa: BLE001  the client raises whatever its many layers raise; all end here
        _say(cause=_cause(error), detail=f"{type(error).__name__}: {error}".splitlines()[0])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
