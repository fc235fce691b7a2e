"""Repositories are tested on a real database."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from data.database.session import Database

Run = Callable[[Callable[[Database], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def run(url: str) -> Run:
    """Runs a coroutine function on an open database."""

    def run(test: Callable[[Database], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            async with Database(url) as database:
                await test(database)

        asyncio.run(main())

    return run
