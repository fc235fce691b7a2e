import asyncio

from data.nataraj.refill import DATABASE_PAUSE_S, DECKS, FIRST_PAUSE_S, DeckRefill
from domain.entities.nataraj import WHOLE_LIBRARY, DeckWork
from domain.errors import DatabaseError
from tests.fakes import HOLD, ScriptedCoordinator, answer
from tests.memory.claims import MemoryClaims
from tests.memory.clock import HandClock
from tests.memory.gana_world import GanaWorld


class World(GanaWorld):
    def __init__(self, coordinator: ScriptedCoordinator | None = None) -> None:
        super().__init__(coordinator or ScriptedCoordinator(answer("Both wait.")))
        self.clock = HandClock()
        self.claims = MemoryClaims()
        self.refill = DeckRefill(self.generator, self.cards, self.clock, self.claims)

    async def lying(self, scope: str = WHOLE_LIBRARY) -> int:
        return (await self.cards.counts(scope)).get("buffered", 0)

    async def write(self, count: int) -> list[str]:
        return [(await self.note(f"Text {n}.", title=f"Note {n}")).id for n in range(count)]


def test_a_deck_is_filled_before_it_runs_out() -> None:
    async def scenario() -> None:
        world = World()
        await world.write(10)
        await world.refill.fill()
        assert await world.lying() == 8
        deck = await world.cards.list(WHOLE_LIBRARY, "buffered")
        for card in deck[:4]:
            await world.cards.set_state(card.id, "dropped")
        await world.refill.fill()
        assert await world.lying() == 4
        await world.cards.set_state(deck[4].id, "dropped")
        await world.refill.fill()
        assert await world.lying() == 8

    asyncio.run(scenario())


def test_a_deck_that_another_process_fills_is_left_to_it() -> None:
    async def scenario() -> None:
        world = World()
        await world.write(10)
        world.claims.elsewhere.add(("deck", WHOLE_LIBRARY))
        await world.refill.fill()
        assert await world.lying() == 0
        assert world.refill.hindrance is None
        world.claims.elsewhere.clear()
        await world.refill.fill()
        assert await world.lying() == 8
        assert world.claims.held == []

    asyncio.run(scenario())


def test_the_deck_that_is_looked_at_is_kept_filled_and_old_ones_are_forgotten() -> None:
    async def scenario() -> None:
        world = World()
        ids = await world.write(8)
        for number in range(DECKS + 2):
            world.notes.members[f"m{number}"] = set(ids)
            world.refill.look_at(f"m{number}")
        await world.refill.fill()
        filled = [scope for scope in ("all", *world.notes.members) if await world.lying(scope)]
        assert len(filled) == DECKS
        assert "all" in filled
        assert "m0" not in filled
        assert world.coordinator.requests[0].flow == f"m{DECKS + 1}"

    asyncio.run(scenario())


def test_a_deck_that_cannot_be_filled_is_left_alone_longer_each_time() -> None:
    async def scenario() -> None:
        world = World(ScriptedCoordinator(answer("NOTHING")))
        await world.write(30)
        await world.refill.fill()
        jobs = len(world.coordinator.requests)
        await world.refill.fill()
        assert len(world.coordinator.requests) == jobs
        world.clock.run(FIRST_PAUSE_S)
        await world.refill.fill()
        assert len(world.coordinator.requests) == 2 * jobs
        world.clock.run(FIRST_PAUSE_S)
        await world.refill.fill()
        assert len(world.coordinator.requests) == 2 * jobs
        world.refill.wake(["a new note"])
        await world.refill.fill()
        assert len(world.coordinator.requests) == 3 * jobs

    asyncio.run(scenario())


def test_without_a_model_it_says_why_and_waits() -> None:
    async def scenario() -> None:
        world = World()
        await world.write(5)
        world.store.names.clear()
        await world.refill.fill()
        assert "no model" in str(world.refill.hindrance)
        world.store.names.append("tiny")
        world.clock.run(FIRST_PAUSE_S)
        await world.refill.fill()
        assert world.refill.hindrance is None
        assert await world.lying() == 8

    asyncio.run(scenario())


def test_after_hours_without_the_database_a_deck_is_filled_within_a_minute() -> None:
    async def scenario() -> None:
        world = World()
        await world.write(10)
        real = world.cards.counts

        async def counts(scope: str) -> object:
            raise DatabaseError("It cannot be reached.")

        world.cards.counts = counts  # type: ignore[method-assign,assignment]
        for _ in range(100):
            await world.refill.fill()
            world.clock.run(DATABASE_PAUSE_S)
        world.cards.counts = real  # type: ignore[method-assign]
        await world.refill.fill()
        assert await world.lying() == 8

    asyncio.run(scenario())


def test_it_says_what_it_does() -> None:
    async def scenario() -> None:
        world = World(ScriptedCoordinator([HOLD], answer("Both wait.")))
        await world.write(3)
        assert await world.refill.work(WHOLE_LIBRARY) == DeckWork()
        filling = asyncio.create_task(world.refill.fill())
        async with asyncio.timeout(120):
            while not world.coordinator.jobs:  # noqa: ASYNC110 - fakes tell nobody
                await asyncio.sleep(0)
        assert await world.refill.work(WHOLE_LIBRARY) == DeckWork(writing=8)
        world.coordinator.jobs[0].cancel()
        await filling
        assert await world.refill.work(WHOLE_LIBRARY) == DeckWork(hindrance="The job was cancelled.")
        world.clock.run(FIRST_PAUSE_S)
        await world.refill.fill()
        # Three notes are three pairs and a triple.
        assert await world.refill.work(WHOLE_LIBRARY) == DeckWork(exhausted=True)

    asyncio.run(scenario())


def test_it_works_until_it_is_cancelled_and_looks_when_told() -> None:
    async def scenario() -> None:
        world = World()
        running = asyncio.create_task(world.refill.run())
        await asyncio.sleep(0)
        await world.write(10)
        world.refill.wake()
        async with asyncio.timeout(120):
            while await world.lying() < 8:  # noqa: ASYNC110 - fakes tell nobody
                await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled()

    asyncio.run(scenario())
