"""Giving freed memory back to the system."""

import ctypes
import gc
import sys


def release_memory() -> None:
    """glibc keeps freed pages for later; a model that is gone should not go on taking memory."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # glibc only
            trim(0)
