import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.loops import LoopFailure, LoopLog, Loops
from tests.memory.clock import HandClock


def test_a_loop_that_dies_of_a_bug_is_logged_and_begins_again(tmp_path: Path) -> None:
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("endless")

    async def scenario() -> None:
        works = asyncio.Event()
        tries = 0

        async def broken() -> None:
            nonlocal tries
            tries += 1
            if tries < 3:
                raise ValueError(f"broken {tries}\nin two lines")
            works.set()
            await asyncio.Event().wait()

        log = LoopLog(tmp_path / "log")
        clock = HandClock()
        loops = {"reading": endless, "Ganas": broken}
        async with Loops(loops, log, clock, first_pause_s=0.0):
            await works.wait()
            ended.append("app")
        assert log.last() == LoopFailure(clock.now(), "Ganas", "ValueError: broken 2 in two lines")
        assert log.path.read_text().count("Traceback") == 2

    asyncio.run(scenario())
    assert ended == ["app", "endless"]


def test_pauses_double_up_to_a_limit_and_begin_anew_when_all_was_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    clock = HandClock()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            await asyncio.Event().wait()

    async def broken() -> None:
        if len(pauses) == 10:
            clock.run(700)
        raise ValueError("broken")

    async def scenario() -> None:
        async with Loops({"x": broken}, LoopLog(tmp_path), clock):
            while len(pauses) < 12:
                await real(0)

    real = asyncio.sleep
    monkeypatch.setattr("data.loops.asyncio.sleep", sleep)
    asyncio.run(scenario())
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 1, 2]


def test_a_log_stays_small_and_one_that_cannot_be_used_harms_nothing(tmp_path: Path) -> None:
    log = LoopLog(tmp_path)
    assert log.last() is None
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(50):
        log.add(LoopFailure(at, "x", str(number)), "line\n" * 2_000)
    assert log.last() == LoopFailure(at, "x", "49")
    assert log.path.stat().st_size <= 200_000
    (tmp_path / "file").write_text("")
    shut = LoopLog(tmp_path / "file")
    shut.add(LoopFailure(at, "x", "y"), "")
    assert shut.last() is None


def test_the_apps_own_error_is_its_own(tmp_path: Path) -> None:
    async def broken() -> None:
        raise ValueError("broken")

    async def scenario() -> None:
        async with Loops({"x": broken}, LoopLog(tmp_path), HandClock()):
            await asyncio.sleep(0)
            raise KeyError("app")

    with pytest.raises(KeyError):
        asyncio.run(scenario())
