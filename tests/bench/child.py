"""Modules run as processes of their own."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def child(
    module: str, *arguments: str, environment: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process with pipes for standard input and output, killed at the end. The user's own environment has precedence."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=Path(__file__).parents[2],
        env={**environment, **os.environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
