"""Room on the disk, asked before a download and explained after one that ran out of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

from domain.errors import ModelUnavailable

FreeBytes = Callable[[Path], int]


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write where `folder` lies."""
    return shutil.disk_usage(folder).free


def require_space(what: str, folder: Path, needed_bytes: int, free: FreeBytes) -> None:
    """Raises `ModelUnavailable` if `folder` has no room for `needed_bytes`."""
    if free(folder) < needed_bytes:
        raise disk_full(what, folder, needed_bytes, free)


def disk_full(what: str, folder: Path, needed_bytes: int, free: FreeBytes) -> ModelUnavailable:
    """The error for a disk without room; names both numbers, in bytes."""
    return ModelUnavailable(
        f"{what} needs {needed_bytes} bytes of disk while it is installed, and {free(folder)} bytes are free in "
        f"{folder}. Free some space (`uniun models rm NAME` removes a model) and pull again."
    )
