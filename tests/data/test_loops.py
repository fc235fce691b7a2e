import asyncio

import pytest

from data.loops import Loops


def test_loops_run_while_it_is_entered_and_an_error_waits_for_the_end() -> None:
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("endless")

    async def broken() -> None:
        raise ValueError("broken")

    async def scenario() -> None:
        async with Loops(endless, broken):
            await asyncio.sleep(0)
            ended.append("app")

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(scenario())
    assert ended == ["app", "endless"]


def test_the_apps_own_error_goes_first() -> None:
    async def broken() -> None:
        raise ValueError("broken")

    async def scenario() -> None:
        async with Loops(broken):
            await asyncio.sleep(0)
            raise KeyError("app")

    with pytest.raises(KeyError):
        asyncio.run(scenario())
