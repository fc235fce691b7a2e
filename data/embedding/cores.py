"""How wide the embedding lane may be on this machine."""

import subprocess
import sys

import psutil

_WIDE_FROM_CORES = 8


def lane_width(performance_cores: int) -> int:
    """Three at a time on machines with eight or more performance cores, else two."""
    return 3 if performance_cores >= _WIDE_FROM_CORES else 2


def performance_cores() -> int:
    """Physical cores, on Apple silicon only the fast ones."""
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "hw.perflevel0.physicalcpu"]
        try:
            return int(subprocess.run(command, capture_output=True, check=True, text=True, timeout=2).stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            pass  # an Intel Mac has one kind of core and no such entry
    return psutil.cpu_count(logical=False) or 1
