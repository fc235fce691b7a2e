"""Weights in huge pages, where glibc and Linux have them.

Every token reads all weights once. In pages of 4 KiB that is a new page every few hundred multiplications; in pages of
2 MiB it is a tenth faster. A mapped file gets them on few systems, memory of the process nearly everywhere once it asks
(Linux, transhuge.rst; glibc manual, Memory Allocation Tunables). Measurements: docs/adr/0022.
"""

import contextlib
import sys
from pathlib import Path

import psutil

ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if sys.platform == "linux" else {}
"""For the engine process: glibc reads it once, at its start. The user's own setting has precedence."""
_SHARE = 0.5
"""Of the memory that is free. A copy cannot be dropped when memory runs short, as a mapped file can."""
_GROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def worth_a_copy(weights: Path) -> bool:
    """Whether to read the file into memory instead of mapping it. Raises `OSError`."""
    return sys.platform == "linux" and weights.stat().st_size <= _SHARE * _free_bytes()


def _free_bytes() -> int:
    """Of the machine, or of the container or service that this runs in (cgroup-v2.rst), where that is less."""
    free: int = psutil.virtual_memory().available
    try:
        entries = _OWN_GROUP.read_text().splitlines()
    except OSError:
        return free
    own = next((entry[3:].strip("/") for entry in entries if entry.startswith("0::")), "")
    for group in (_GROUPS / own, *(_GROUPS / own).parents):
        if group.is_relative_to(_GROUPS):
            with contextlib.suppress(
                OSError, ValueError
            ):  # the root has no limit, and most others none: "max"
                limit = int((group / "memory.max").read_text())
                free = min(free, limit - int((group / "memory.current").read_text()))
    return free
