"""A child that the system is slow to take away."""

import asyncio

import pytest

from data.children import process
from data.children.process import Child, ChildProcess
from domain.errors import EngineLost

SLEEPER = Child(("-c", "import sys; sys.stdin.read()"), "sleeping", EngineLost, "Start it again.")


def test_a_child_that_was_not_reaped_in_time_can_be_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        child = await ChildProcess.start(SLEEPER)
        with monkeypatch.context() as patch:
            patch.setattr(process, "_REAP_S", 0.0)
            await child.close()
        await asyncio.gather(child._listening, return_exceptions=True)
        assert child._listening.cancelled()
        await child.close()
        assert not child.alive

    asyncio.run(main())


def test_the_loss_of_a_child_is_told_though_it_was_not_reaped_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        child = await ChildProcess.start(SLEEPER)
        with monkeypatch.context() as patch:
            patch.setattr(process, "_REAP_S", 0.0)
            await child.close()
            for _ in range(2):
                with pytest.raises(EngineLost, match="while it was asked"):
                    await child.receive(0.0, "it was asked")
        await child.close()

    asyncio.run(main())
