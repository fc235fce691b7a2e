"""Weights in huge pages, where glibc and Linux have them.

Every token reads all weights once. In pages of 4 KiB that is a new page every few hundred multiplications; in pages of
2 MiB it is a tenth faster. A mapped file gets them on few systems, memory of the process nearly everywhere once it asks
(Linux, transhuge.rst; glibc manual, Memory Allocation Tunables). Measurements: docs/adr/0022.
"""

import sys
from pathlib import Path

import psutil

ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if sys.platform == "linux" else {}
"""For the engine process: glibc reads it once, at its start. The user's own setting has precedence."""
_SHARE = 0.5
"""Of the memory that is free. A copy cannot be dropped when memory runs short, as a mapped file can."""


def worth_a_copy(weights: Path) -> bool:
    """Whether to read the file into memory instead of mapping it. Raises `OSError`."""
    return sys.platform == "linux" and weights.stat().st_size <= _SHARE * psutil.virtual_memory().available
