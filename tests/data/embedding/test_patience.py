import asyncio
from collections.abc import Sequence

import pytest

from data.embedding.patience import MOST_LATE, PATIENCE_S, ImpatientEmbedder
from domain.errors import ModelDamaged, ModelUnavailable
from tests.data.demo.virtual_time import VirtualClock, run_virtually


class SlowEmbedder:
    dimensions = 2

    def __init__(self, seconds: float, error: Exception | None = None) -> None:
        self.seconds = seconds
        self.error = error
        self.done = self.begun = 0

    async def embed(self, text: str) -> Sequence[float]:
        self.begun += 1
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        self.done += 1
        return (1.0, 0.0)


def test_a_vector_that_comes_soon() -> None:
    embedder = ImpatientEmbedder(SlowEmbedder(1))
    assert embedder.dimensions == 2
    assert run_virtually(VirtualClock(), embedder.embed("x")) == (1.0, 0.0)


def test_an_error_that_comes_soon() -> None:
    with pytest.raises(ModelDamaged):
        run_virtually(VirtualClock(), ImpatientEmbedder(SlowEmbedder(1, ModelDamaged("broken"))).embed("x"))


@pytest.mark.parametrize("error", [None, ModelDamaged("broken")])
def test_one_that_comes_late_is_not_waited_for_but_finished(error: Exception | None) -> None:
    clock, slow = VirtualClock(), SlowEmbedder(60, error)

    async def scenario() -> None:
        with pytest.raises(ModelUnavailable):
            await ImpatientEmbedder(slow).embed("x")
        assert clock.seconds == PATIENCE_S
        await asyncio.sleep(60)

    run_virtually(clock, scenario())
    assert slow.done == (error is None)


def test_late_work_is_bounded_and_gone_when_done() -> None:
    clock, slow = VirtualClock(), SlowEmbedder(60)

    async def scenario() -> None:
        embedder = ImpatientEmbedder(slow)
        for _ in range(MOST_LATE + 2):
            with pytest.raises(ModelUnavailable):
                await embedder.embed("x")
        assert slow.begun == MOST_LATE
        await asyncio.sleep(60)
        slow.seconds = 0
        assert await embedder.embed("x")

    run_virtually(clock, scenario())


def test_a_cancel_ends_the_work() -> None:
    slow = SlowEmbedder(2)

    async def scenario() -> None:
        asking = asyncio.create_task(ImpatientEmbedder(slow).embed("x"))
        await asyncio.sleep(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(5)

    run_virtually(VirtualClock(), scenario())
    assert (slow.begun, slow.done) == (1, 0)
