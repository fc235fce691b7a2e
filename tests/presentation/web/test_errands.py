"""Work that outlives the page that began it."""

import asyncio

import pytest

from presentation.web.errands import MAX_KEPT, MAX_RUNNING, Errands, Tell, TooManyErrands


async def _soon(tell: Tell) -> str:
    tell("half")
    return "done"


async def _never(tell: Tell) -> None:
    await asyncio.Event().wait()


async def _badly(tell: Tell) -> None:
    raise ValueError("no")


async def _ended(errands: Errands, key: str) -> None:
    errand = errands.get(key)
    assert errand is not None
    assert errand.task is not None
    await asyncio.gather(errand.task, return_exceptions=True)


def test_an_errand_is_seen_from_its_beginning_to_its_end() -> None:
    async def scenario() -> None:
        errands = Errands()
        errand = errands.begin("a", _soon)
        assert errand.running
        assert errands.begin("a", _never) is errand
        before = errand.version
        await _ended(errands, "a")
        assert (errand.step, errand.result, errand.error, errand.running) == ("half", "done", None, False)
        assert errand.version > before
        again = errands.begin("a", _badly)
        await _ended(errands, "a")
        assert isinstance(again.error, ValueError)
        errands.dismiss("a")
        assert errands.get("a") is None

    asyncio.run(scenario())


def test_it_can_be_cancelled_and_all_end_with_the_server() -> None:
    async def scenario() -> None:
        errands = Errands()
        one, other = errands.begin("a", _never), errands.begin("b", _never)
        watching = asyncio.create_task(errands.watch())
        errands.dismiss("a")
        await asyncio.sleep(0)
        errands.cancel("a")
        errands.cancel("nobody")
        await _ended(errands, "a")
        assert one.cancelled
        assert other.running
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert other.cancelled

    asyncio.run(scenario())


def test_there_is_a_limit_to_all_of_it() -> None:
    async def scenario() -> None:
        errands = Errands()
        for number in range(2 * MAX_KEPT):
            errands.begin(str(number), _soon)
            await _ended(errands, str(number))
        assert errands.get("0") is None
        assert errands.get(str(2 * MAX_KEPT - 1)) is not None
        for number in range(MAX_RUNNING):
            errands.begin(f"long {number}", _never)
        with pytest.raises(TooManyErrands):
            errands.begin("one more", _never)
        watching = asyncio.create_task(errands.watch())
        await asyncio.sleep(0)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(scenario())
