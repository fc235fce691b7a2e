"""A child is tied to its parent before it imports anything that takes time: a parent killed early must leave no orphan."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """On Linux the kernel sees to it, even if native code hangs with the interpreter lock held or nothing runs at all.

    Elsewhere the end of stdin does. Ends the process now if the parent has gone already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.name == "posix" and os.getppid() != parent:
        os._exit(0)
