"""What the demo's figures depend on."""

import asyncio
import platform
from pathlib import Path

import psutil

from domain.entities.demo import DemoMachine

_LOOK_S = 0.5


async def machine() -> DemoMachine:
    """Takes half a second, to see how busy others keep the processor."""
    psutil.cpu_percent()
    await asyncio.sleep(_LOOK_S)
    busy = psutil.cpu_percent() / 100
    return DemoMachine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        busy_before=min(1.0, max(0.0, busy)),
        python=platform.python_version(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")
