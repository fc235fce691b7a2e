import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from data.knowledge.backfill import DATABASE_PAUSE_S, FIRST_PAUSE_S, LONGEST_PAUSE_S, LOOK_PERIOD_S, Backfill
from domain.entities.knowledge import Extraction
from domain.errors import DatabaseError, UnknownModel
from domain.usecases.knowledge import Reading
from tests.data.demo.virtual_time import VirtualClock, run_virtually
from tests.memory.library import MemoryLibrary


class Reader:
    """Reads a note in ten seconds, or raises what it is told to."""

    def __init__(self, library: MemoryLibrary, clock: VirtualClock) -> None:
        self.library = library
        self.clock = clock
        self.begun: list[tuple[str, float]] = []
        self.running = 0
        self.most = 0
        self.error: Exception | None = None
        self.outcome: Reading = "read"
        self.wanted = True

    async def __call__(self, note_id: str) -> Reading:
        self.begun.append((note_id, self.clock.seconds))
        if self.error is not None:
            raise self.error
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(10)
        finally:
            self.running -= 1
        if self.outcome == "read":
            note = await self.library.notes.get(note_id)
            await self.library.knowledge.assert_extraction(note_id, note.content_hash, Extraction())
        return self.outcome


def play(scenario: Callable[[Backfill, Reader], Awaitable[None]]) -> Reader:
    """Runs the scenario beside a running backfill, on virtual time; afterwards the backfill is cancelled."""
    clock, library = VirtualClock(), MemoryLibrary()
    reader = Reader(library, clock)

    async def main() -> None:
        backfill = Backfill(reader, library.knowledge, clock, wanted=lambda: reader.wanted)
        running = asyncio.create_task(backfill.run())
        try:
            await scenario(backfill, reader)
        finally:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert reader.running == 0

    run_virtually(clock, main())
    return reader


async def write(reader: Reader, *note_ids: str) -> None:
    for note_id in note_ids:
        await reader.library.write(note_id, note_id, "Text.")


def test_two_at_a_time_until_nothing_is_left() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, *"abcde")
        await asyncio.sleep(31)
        assert await reader.library.knowledge.pending(9) == ()

    reader = play(scenario)
    assert reader.begun == [("e", 0), ("d", 0), ("c", 10), ("a", 10), ("b", 20)], "every fourth is the oldest"
    assert reader.most == 2


def test_what_was_just_written_is_read_before_a_backlog() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, *"abcdef")
        await asyncio.sleep(5)
        await write(reader, "new")
        backfill.wake()
        await asyncio.sleep(6)

    assert [note_id for note_id, _ in play(scenario).begun] == ["f", "e", "new", "a"]


def test_a_note_does_not_wait_for_ever_while_others_are_changed() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, *"abcd")
        for number in range(40):
            await write(reader, f"new {number}")
            backfill.wake()
            await asyncio.sleep(4)

    begun = [note_id for note_id, _ in play(scenario).begun]
    assert (begun[3], begun[7]) == ("a", "b")
    assert all(note_id.startswith("new") for note_id in (begun[0], begun[2], *begun[4:7]))


def test_a_change_wakes_it_and_what_other_processes_write_is_found() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await asyncio.sleep(3)
        await write(reader, "a")
        backfill.wake()
        await asyncio.sleep(11)
        await write(reader, "b")
        await asyncio.sleep(2 * LOOK_PERIOD_S)

    reader = play(scenario)
    assert reader.begun[0] == ("a", 3)
    assert reader.begun[1][0] == "b"
    assert reader.begun[1][1] <= 14 + LOOK_PERIOD_S


def test_it_backs_off_while_the_model_is_missing_and_says_why() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, "a")
        reader.error = UnknownModel("There is no model.")
        await asyncio.sleep(3_600)
        assert backfill.hindrance == "There is no model."
        reader.error = None
        backfill.wake()
        await asyncio.sleep(11)
        assert backfill.hindrance is None

    reader = play(scenario)
    starts = [at for _, at in reader.begun]
    pauses = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert max(pauses) == LONGEST_PAUSE_S
    assert len(starts) < 20


def test_a_busy_database_is_waited_for() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        real = reader.library.knowledge.pending
        failures = iter([True, True])

        async def pending(limit: int, *, oldest: bool) -> object:
            if next(failures, False):
                raise DatabaseError("It is locked.")
            return await real(limit, oldest=oldest)

        reader.library.knowledge.pending = pending  # type: ignore[method-assign,assignment]
        await write(reader, "a")
        await asyncio.sleep(0)
        await asyncio.sleep(3 * FIRST_PAUSE_S + 1)

    assert play(scenario).begun == [("a", 3 * FIRST_PAUSE_S)]


def test_after_an_hour_without_the_database_reading_goes_on_within_a_minute() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        real = reader.library.knowledge.pending

        async def pending(limit: int, *, oldest: bool) -> object:
            if reader.clock.seconds < 3700:
                raise DatabaseError("It cannot be reached.")
            return await real(limit, oldest=oldest)

        await write(reader, "a")
        reader.library.knowledge.pending = pending  # type: ignore[method-assign,assignment]
        backfill.wake()
        await asyncio.sleep(3700 + DATABASE_PAUSE_S + 1)

    assert [note_id for note_id, _ in play(scenario).begun] == ["a"]


def test_what_says_nothing_new_is_not_asked_for_at_once_again() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, "a")
        reader.outcome = "being_read"
        await asyncio.sleep(60)

    assert len(play(scenario).begun) == 4  # ten seconds each, and five between


def test_a_refused_note_is_tried_again_at_once() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, "a")
        reader.outcome = "refused"
        await asyncio.sleep(25)

    assert [at for _, at in play(scenario).begun] == [0, 10, 20]


def test_a_cancel_costs_only_what_is_in_flight() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, "a", "b", "c")
        await asyncio.sleep(5)

    reader = play(scenario)
    assert [note_id for note_id, _ in reader.begun] == ["c", "b"]
    assert len(asyncio.run(reader.library.knowledge.pending(9))) == 3


def test_a_bug_is_not_swallowed() -> None:
    clock, library = VirtualClock(), MemoryLibrary()
    reader = Reader(library, clock)
    reader.error = ZeroDivisionError()

    async def main() -> None:
        await write(reader, "a")
        await Backfill(reader, library.knowledge, clock).run()

    with pytest.raises(ZeroDivisionError):
        run_virtually(clock, main())


def test_a_pause_takes_back_what_was_begun_and_the_rest_is_read_afterwards() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, *"abcd")
        await asyncio.sleep(13)
        assert reader.running == 2
        reader.wanted = False
        backfill.wake()
        await asyncio.sleep(1)
        assert (reader.running, backfill.paused(), backfill.hindrance) == (0, True, None)
        await asyncio.sleep(3_600)
        assert [one.note_id for one in await reader.library.knowledge.pending(9)] == ["b", "a"]
        reader.wanted = True
        backfill.wake()
        await asyncio.sleep(11)
        assert await reader.library.knowledge.pending(9) == ()

    assert len(play(scenario).begun) == 6


def test_the_pace_is_that_of_the_last_notes_read_without_a_break() -> None:
    async def scenario(backfill: Backfill, reader: Reader) -> None:
        await write(reader, *"abcdefgh")
        await asyncio.sleep(21)
        assert backfill.pace_s() is None
        await asyncio.sleep(10)
        # Two at once, each in ten seconds.
        assert backfill.pace_s() == pytest.approx(4)
        reader.wanted = False
        backfill.wake()
        await asyncio.sleep(1)
        assert backfill.pace_s() is None

    play(scenario)
