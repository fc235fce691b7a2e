"""When the backlog lets an answer go first: a hand clock, and a scheduler that says what a test wants."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress

from data.clock import SystemClock
from data.embedding.worker import CLAIMED, EmbeddingWorker
from data.rest import LONGEST_REST_S, LOOK_S, TURN_S, Rest
from tests.memory.claims import MemoryClaims
from tests.memory.embedder import WordEmbedder
from tests.memory.library import MemoryLibrary

NOTES = 2 * CLAIMED


class Day:
    """Somebody waits until a test says otherwise; time passes while the backlog rests, and with every note."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits = True
        self.rests: list[float] = []
        self.on_look: Callable[[], None] = lambda: None
        self.asked: Callable[[], bool] = lambda: self.waits
        self.rest = Rest(lambda: self.asked(), _Clock(self), self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.rests.append(self.now)
        self.now += seconds
        self.on_look()
        await asyncio.sleep(0)


class _Clock(SystemClock):
    def __init__(self, day: Day) -> None:
        self._day = day

    def monotonic(self) -> float:
        return self._day.now


class Desk(WordEmbedder):
    """A library whose notes wait for their vectors, and the worker on it. A note takes a second."""

    def __init__(self, day: Day) -> None:
        super().__init__()
        self.day = day
        self.library, self.claims = MemoryLibrary(), MemoryClaims()
        self.worker = EmbeddingWorker(self.library.vectors, nullcontext(self), self.claims, day.rest)
        self.at: list[float] = []
        self.on_note: Callable[[], None] = lambda: None
        self.all_done = asyncio.Event()

    async def embed(self, text: str) -> Sequence[float]:
        self.at.append(self.day.now)
        self.day.now += 1.0
        self.on_note()
        if len(self.at) == NOTES:
            self.all_done.set()
        return await super().embed(text)

    async def fill(self) -> None:
        for number in range(NOTES):
            await self.library.write(f"{number:02}", f"N {number}", "text", embedded=False)

    async def run(self) -> None:
        task = asyncio.create_task(self.worker.run())
        done = asyncio.create_task(self.all_done.wait())
        await asyncio.wait([task, done], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        done.cancel()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def play(scene: Callable[[Desk, Day], None]) -> tuple[Desk, Day]:
    async def main() -> tuple[Desk, Day]:
        day = Day()
        desk = Desk(day)
        await desk.fill()
        scene(desk, day)
        await desk.run()
        return desk, day

    return asyncio.run(main())


def test_it_rests_until_the_answer_is_there_with_nothing_claimed() -> None:
    claimed: list[int] = []

    def scene(desk: Desk, day: Day) -> None:
        def look() -> None:
            claimed.append(len(desk.claims.held))
            day.waits = day.now < 5.0

        day.on_look = look

    desk, day = play(scene)
    assert desk.at == [5.0 + number for number in range(NOTES)]
    assert day.rests == [LOOK_S * look for look in range(int(5.0 / LOOK_S))]
    assert set(claimed) == {0}


def test_an_answer_that_begins_stops_it_at_the_next_note() -> None:
    claimed: list[int] = []

    def scene(desk: Desk, day: Day) -> None:
        day.waits = False

        def begin() -> None:
            day.waits = len(desk.at) == 3

        def end() -> None:
            claimed.append(len(desk.claims.held))
            day.waits = False

        desk.on_note, day.on_look = begin, end

    desk, day = play(scene)
    assert desk.at[2:4] == [2.0, 3.0 + LOOK_S]
    assert day.rests == [3.0]
    assert claimed == [0]


def test_answers_without_end_do_not_starve_it() -> None:
    desk, day = play(lambda desk, day: None)
    first = [LONGEST_REST_S + second for second in range(int(TURN_S))]
    assert desk.at[: len(first)] == first
    assert desk.at[len(first)] == first[-1] + 1.0 + LONGEST_REST_S
    assert day.waits


def test_answers_with_short_pauses_between_them_do_not_starve_it() -> None:
    """Of three looks one falls into a pause, and the next answer has begun before a note is at hand."""

    def scene(desk: Desk, day: Day) -> None:
        looks = itertools.count(1)

        def asked() -> bool:
            look = next(looks)
            assert look < 1_000, "it only looks, and embeds nothing"
            return look % 3 != 0

        day.asked = asked

    desk, day = play(scene)
    assert len(desk.at) == NOTES
    assert day.now < NOTES + LONGEST_REST_S, "it did not come to the longest rest"


def test_who_waits_for_every_vector_does_not_wait_for_the_answer() -> None:
    async def main() -> None:
        day = Day()
        desk = Desk(day)
        await desk.fill()
        assert await desk.worker.work_off() == NOTES
        assert day.rests == []

    asyncio.run(main())
