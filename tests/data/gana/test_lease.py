import asyncio
from datetime import UTC, datetime

import pytest

from data.clock import SystemClock
from data.gana.lease import TickLeases
from domain.entities.gana import Tick
from domain.errors import DatabaseError, TickLost
from tests.memory.ganas import MemoryGanas

TICK = Tick(gana_id="g", due_at=datetime(2026, 1, 1, tzinfo=UTC), claim="c")


class Answering(MemoryGanas):
    """`renew` answers as it is told, in order; the last answer again and again."""

    def __init__(self, *answers: bool | Exception) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked = asyncio.Event()
        self.count = 0

    async def renew(self, tick: Tick, now: datetime) -> bool:
        self.count += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not self.answers or self.count >= 3:
            self.asked.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


def leases(ganas: MemoryGanas) -> TickLeases:
    return TickLeases(ganas, SystemClock(), period_s=0.0)


def test_a_claim_is_renewed_while_work_goes_on_and_not_after() -> None:
    async def scenario() -> None:
        ganas = Answering(True, DatabaseError("locked"), True)
        async with leases(ganas).hold(TICK):
            await ganas.asked.wait()
        count = ganas.count
        assert count >= 3
        for _ in range(10):
            await asyncio.sleep(0)
        assert ganas.count == count

    asyncio.run(scenario())


def test_a_lost_claim_ends_the_work() -> None:
    async def scenario() -> None:
        with pytest.raises(TickLost):
            async with leases(Answering(True, False)).hold(TICK):
                await asyncio.Event().wait()
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    asyncio.run(scenario())


def test_a_cancellation_from_outside_stays_one() -> None:
    async def scenario() -> None:
        started = asyncio.Event()

        async def work() -> None:
            async with leases(Answering(True)).hold(TICK):
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_the_works_own_error_is_not_hidden() -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="mine"):
            async with leases(Answering(True)).hold(TICK):
                raise ValueError("mine")

    asyncio.run(scenario())
