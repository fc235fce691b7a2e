import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from data.embedding.cores import lane_width, performance_cores
from data.embedding.queue import EmbeddingQueue
from domain.errors import QueueFull


class Gate:
    """Pieces of work that run until they are let go, and tell in which order they started."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self._gates: dict[int, asyncio.Event] = {}

    def work(self, number: int) -> Callable[[], Coroutine[Any, Any, int]]:
        async def run() -> int:
            self.started.append(number)
            await self._gates.setdefault(number, asyncio.Event()).wait()
            return number

        return run

    def let_go(self, number: int) -> None:
        self._gates.setdefault(number, asyncio.Event()).set()


async def settle() -> None:
    """Lets every task that can go on do so; nothing here takes more than a few turns of the loop."""
    for _ in range(10):
        await asyncio.sleep(0)


def start(queue: EmbeddingQueue, gate: Gate, count: int) -> list[asyncio.Task[int]]:
    return [asyncio.create_task(queue.run(gate.work(number))) for number in range(count)]


def test_two_at_a_time_in_order_of_arrival() -> None:
    async def scenario() -> None:
        queue, gate = EmbeddingQueue(), Gate()
        tasks = start(queue, gate, 5)
        await settle()
        assert gate.started == [0, 1]
        assert (queue.running, queue.waiting) == (2, 3)

        gate.let_go(1)
        await settle()
        assert gate.started == [0, 1, 2]
        gate.let_go(0)
        gate.let_go(2)
        await settle()
        assert gate.started == [0, 1, 2, 3, 4]

        for number in range(5):
            gate.let_go(number)
        assert await asyncio.gather(*tasks) == [0, 1, 2, 3, 4]
        assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(scenario())


def test_a_newcomer_does_not_overtake_one_whose_turn_has_come() -> None:
    async def scenario() -> None:
        queue, gate = EmbeddingQueue(1), Gate()
        tasks = start(queue, gate, 2)
        await settle()
        gate.let_go(0)
        await asyncio.wait([tasks[0]])  # 1 has the place now, and may not have run yet
        late = asyncio.create_task(queue.run(gate.work(2)))
        await settle()
        assert gate.started == [0, 1]
        gate.let_go(1)
        gate.let_go(2)
        await asyncio.gather(*tasks, late)
        assert gate.started == [0, 1, 2]

    asyncio.run(scenario())


def test_an_error_frees_the_place() -> None:
    async def scenario() -> None:
        queue = EmbeddingQueue(1)

        async def fail() -> None:
            raise RuntimeError("broken")

        async def succeed() -> str:
            return "fine"

        for _ in range(3):
            with pytest.raises(RuntimeError, match="broken"):
                await queue.run(fail)
        assert await queue.run(succeed) == "fine"
        assert queue.running == 0

    asyncio.run(scenario())


def test_cancelled_while_running_frees_the_place() -> None:
    async def scenario() -> None:
        queue, gate = EmbeddingQueue(1), Gate()
        tasks = start(queue, gate, 2)
        await settle()
        tasks[0].cancel()
        await settle()
        assert gate.started == [0, 1]
        gate.let_go(1)
        assert await tasks[1] == 1
        assert queue.running == 0

    asyncio.run(scenario())


def test_cancelled_while_queued_gives_its_turn_away() -> None:
    async def scenario() -> None:
        queue, gate = EmbeddingQueue(1), Gate()
        tasks = start(queue, gate, 4)
        await settle()
        tasks[1].cancel()
        gate.let_go(0)  # in the same turn of the loop: the freed place must pass over the cancelled one
        await settle()
        assert gate.started == [0, 2]
        tasks[3].cancel()
        await settle()
        assert queue.waiting == 0
        gate.let_go(2)
        await settle()
        assert queue.running == 0

    asyncio.run(scenario())


def test_cancelled_in_the_moment_its_turn_comes() -> None:
    async def scenario() -> None:
        queue, gate = EmbeddingQueue(1), Gate()
        tasks = start(queue, gate, 3)
        await settle()
        gate.let_go(0)
        await asyncio.wait([tasks[0]])
        tasks[1].cancel()  # it holds the place already, but has not run
        await settle()
        assert gate.started in ([0, 2], [0, 1, 2])
        gate.let_go(2)
        assert await tasks[2] == 2
        assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(scenario())


def test_the_waiting_line_is_bounded() -> None:
    async def scenario() -> None:
        queue, gate = EmbeddingQueue(2, max_waiting=3), Gate()
        tasks = start(queue, gate, 5)
        await settle()
        with pytest.raises(QueueFull, match=r"full: 3 jobs wait and the limit is 3"):
            await queue.run(gate.work(9))
        tasks[4].cancel()
        await settle()
        tasks.append(asyncio.create_task(queue.run(gate.work(9))))  # there is room again
        for number in range(10):
            gate.let_go(number)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.started == [0, 1, 2, 3, 9]

    asyncio.run(scenario())


def test_a_lane_without_room_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="room"):
        EmbeddingQueue(0)


@pytest.mark.parametrize(("cores", "width"), [(1, 2), (4, 2), (7, 2), (8, 3), (16, 3)])
def test_the_lane_is_wider_on_large_machines(cores: int, width: int) -> None:
    assert lane_width(cores) == width


def test_this_machine_has_cores() -> None:
    assert performance_cores() >= 1
