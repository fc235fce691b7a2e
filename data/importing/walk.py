"""Finds the Markdown files below a folder, whatever the folder looks like."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from domain.entities.note import ImportProblem

SUFFIXES = (".md", ".markdown")
MAX_FILES = 200_000
MAX_DEPTH = 100


@dataclass(frozen=True)
class FoundFile:
    """A file that looks like a note. `origin` is its path as text, the same at every run."""

    path: str
    origin: str
    size: int
    modified_ns: int


@dataclass
class Walk:
    """What a walk found, oldest file first, and what it could not enter."""

    root: str
    files: list[FoundFile] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)
    closed_folders: list[str] = field(default_factory=list)
    """Folders whose files may still be there."""

    def problem(self, path: str, reason: str) -> None:
        self.problems.append(ImportProblem(path=as_text(path), reason=reason, imported=False))


def as_text(path: str) -> str:
    """A path that may hold bytes that are no text, as text."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")


def is_hidden(name: str) -> bool:
    """As .obsidian, .git and .trash are."""
    return name.startswith(".")


def walk(root: Path, step: Callable[[int], None]) -> Walk:
    """`root` is a real path. `step` gets the number of files so far, after each folder, and may raise.

    A link to a folder inside `root` is not followed, for what it points to is found where it is; one that points
    outside is, once.
    """
    found = Walk(str(root))
    seen = {found.root}
    waiting = [(found.root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        step(len(found.files))
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            found.problem(folder, f"The folder cannot be read: {error.strerror}.")
            found.closed_folders.append(folder)
            continue
        for entry in listed:
            if is_hidden(entry.name):
                continue
            try:
                if (below := _visit(entry, found, seen)) is not None:
                    if depth >= MAX_DEPTH:
                        found.problem(entry.path, f"The folder is more than {MAX_DEPTH} folders deep.")
                        found.closed_folders.append(entry.path)
                    else:
                        waiting.append((below, depth + 1))
            except OSError as error:
                found.problem(entry.path, f"It cannot be looked at: {error.strerror}.")
            if len(found.files) >= MAX_FILES:
                found.problem(folder, f"Only the first {MAX_FILES} files are imported.")
                found.closed_folders.append(found.root)
                waiting.clear()
                break
    found.files.sort(key=lambda file: (file.modified_ns, file.origin))
    return found


def _visit(entry: "os.DirEntry[str]", found: Walk, seen: set[str]) -> str | None:
    """Notes a file; returns a folder to enter."""
    is_note = entry.name.lower().endswith(SUFFIXES)
    if not entry.is_symlink():
        if entry.is_dir(follow_symlinks=False):
            if (real := os.path.realpath(entry.path)) in seen:
                return None
            seen.add(real)
            return entry.path
        if is_note:
            _add(entry.path, entry.stat(follow_symlinks=False), found)
        return None
    real = os.path.realpath(entry.path)
    try:
        target = os.stat(entry.path)
    except OSError as error:
        if is_note or not os.path.splitext(entry.name)[1]:
            found.problem(entry.path, f"The link leads nowhere: {error.strerror}.")
        return None
    inside = _within(real, found.root)
    if stat.S_ISDIR(target.st_mode):
        if _within(os.path.realpath(os.path.dirname(entry.path)), real):
            found.problem(entry.path, "The link points to a folder that it is in; it is not followed.")
        elif not inside and real not in seen:
            seen.add(real)
            return entry.path
    elif is_note and not inside:
        _add(entry.path, target, found)
    return None


def _add(path: str, status: os.stat_result, found: Walk) -> None:
    if stat.S_ISREG(status.st_mode):
        found.files.append(FoundFile(path, as_text(path), status.st_size, status.st_mtime_ns))
    else:
        found.problem(path, "It is no regular file.")


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
