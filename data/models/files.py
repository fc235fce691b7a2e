"""Writing so that a crash leaves either the old state or the new one, never half of one."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

# The user's quota and a process's file-size limit look to the user like a full disk.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CHUNK_BYTES = 1 << 20


def sync_tree(folder: Path) -> None:
    """Forces every file and folder below `folder`, and itself, to disk."""
    for place, _, names in os.walk(folder):
        for name in names:
            _sync(Path(place) / name)
        sync_folder(Path(place))


def sync_folder(folder: Path) -> None:
    """Forces a folder's entries (renames, new names) to disk."""
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish_folder(complete: Path, target: Path) -> None:
    """Puts a complete folder under its final name; what was there is replaced and deleted."""
    sync_tree(complete)
    old = complete.with_name(complete.name + ".old")
    if target.exists():
        target.rename(old)
    complete.rename(target)
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def write_atomically(path: Path, text: str) -> None:
    """Replaces a small text file."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    _sync(partial)
    partial.replace(path)
    sync_folder(path.parent)


def sha256_of(path: Path, each: Callable[[int], None] = lambda done: None) -> str:
    """Hex digest; `each` is called with the bytes read so far."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(CHUNK_BYTES):
            digest.update(block)
            done += len(block)
            each(done)
    return digest.hexdigest()
