import asyncio
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from domain.entities.llm import LlmTaskKind
from domain.entities.nataraj import WHOLE_LIBRARY, Card
from domain.errors import CardNotFound, EngineError, InvalidRequest, UnknownModel
from domain.usecases.nataraj import DropCardUseCase, KeepCardUseCase, RestoreCardUseCase, ShowDeckUseCase
from domain.usecases.notes import DeleteNoteUseCase
from tests.fakes import ScriptedCoordinator, answer
from tests.memory.gana_world import GanaWorld

NOTHING = answer("NOTHING")


class World(GanaWorld):
    def __init__(self, coordinator: ScriptedCoordinator | None = None) -> None:
        super().__init__(coordinator or ScriptedCoordinator(answer("Both wait.")))
        self.show = ShowDeckUseCase(self.cards, self.notes)
        self.keep = KeepCardUseCase(self.cards, self.notes, self.compose, self.changes)
        self.drop = DropCardUseCase(self.cards)
        self.restore = RestoreCardUseCase(self.cards, self.notes, DeleteNoteUseCase(self.notes, self.cards))

    async def some(self, count: int) -> list[str]:
        return [(await self.note(f"Text {n}.", title=f"Note {n}")).id for n in range(count)]


def test_one_job_a_card_on_the_active_model_in_the_scopes_flow() -> None:
    async def scenario() -> None:
        world = World()
        await world.some(6)
        filled = await world.generator.fill_buffer(WHOLE_LIBRARY, 3)
        assert [card.text for card in filled.cards] == ["Both wait."] * 3
        assert len(world.coordinator.requests) == 3
        assert {(r.kind, r.flow, r.model, r.deadline) for r in world.coordinator.requests} == {
            (LlmTaskKind.NATARAJ, WHOLE_LIBRARY, "tiny", None)
        }
        assert not any(request.thinking for request in world.coordinator.requests)
        assert (await world.show(WHOLE_LIBRARY)).cards == filled.cards

    asyncio.run(scenario())


def test_a_manas_draws_from_its_own_notes() -> None:
    async def scenario() -> None:
        world = World()
        ids = await world.some(6)
        world.notes.members["m"] = set(ids[:2])
        filled = await world.generator.fill_buffer("m", 3)
        assert [card.note_ids for card in filled.cards] == [tuple(sorted(ids[:2]))]
        assert filled.exhausted

    asyncio.run(scenario())


def test_barren_combinations_are_remembered_and_the_next_is_tried() -> None:
    async def scenario() -> None:
        world = World(ScriptedCoordinator(NOTHING, NOTHING, answer("Both wait.")))
        await world.some(8)
        filled = await world.generator.fill_buffer(WHOLE_LIBRARY, 1)
        assert (len(filled.cards), filled.barren) == (1, 2)
        assert await world.cards.counts(WHOLE_LIBRARY) == {"barren": 2, "buffered": 1}
        used = await world.cards.used_combinations(WHOLE_LIBRARY, with_dropped=True)
        assert len(used) == 3

    asyncio.run(scenario())


def test_a_model_that_finds_nothing_is_not_asked_for_ever() -> None:
    async def scenario() -> None:
        world = World(ScriptedCoordinator(NOTHING))
        await world.some(20)
        filled = await world.generator.fill_buffer(WHOLE_LIBRARY, 2)
        assert (filled.cards, filled.barren, filled.exhausted) == ((), 8, False)

    asyncio.run(scenario())


def test_no_combination_comes_twice_and_then_dropped_ones_come_back() -> None:
    async def scenario() -> None:
        world = World()
        ids = sorted(await world.some(4))
        every = {*combinations(ids, 2), *combinations(ids, 3)}
        first = await world.generator.fill_buffer(WHOLE_LIBRARY, 50)
        assert {card.note_ids for card in first.cards} == every
        assert len(first.cards) == len(every)
        for card in first.cards[:3]:
            await world.drop(card.id)
        jobs = len(world.coordinator.requests)
        again = await world.generator.fill_buffer(WHOLE_LIBRARY, 2)
        assert [card.id for card in again.cards] == [card.id for card in first.cards[:2]]
        assert (again.resurfaced, len(world.coordinator.requests)) == (2, jobs)
        assert not again.exhausted
        await world.generator.fill_buffer(WHOLE_LIBRARY, 2)
        assert (await world.generator.fill_buffer(WHOLE_LIBRARY, 2)).exhausted

    asyncio.run(scenario())


def test_fills_at_the_same_time_share_what_they_draw() -> None:
    async def scenario() -> None:
        world = World()
        await world.some(5)
        filled = await asyncio.gather(*(world.generator.fill_buffer(WHOLE_LIBRARY, 5) for _ in range(4)))
        drawn = [card.note_ids for fill in filled for card in fill.cards]
        assert len(drawn) == len(set(drawn)) == 20
        assert len(world.coordinator.requests) == 20

    asyncio.run(scenario())


def test_notes_that_are_deleted_while_their_card_is_written_leave_none() -> None:
    async def scenario() -> None:
        world = World()
        ids = await world.some(2)

        def deleted(event: object) -> None:
            world.notes.notes.pop(ids[0], None)

        filled = await world.generator.fill_buffer(WHOLE_LIBRARY, 1, deleted)
        assert filled.cards == ()
        assert await world.cards.counts(WHOLE_LIBRARY) == {}

    asyncio.run(scenario())


def test_cards_of_deleted_notes_leave_the_deck() -> None:
    async def scenario() -> None:
        world = World()
        ids = await world.some(4)
        await world.generator.fill_buffer(WHOLE_LIBRARY, 50)
        await world.notes.delete(ids[0])
        deck = await world.show(WHOLE_LIBRARY)
        assert len(deck.cards) == deck.counts["buffered"] == 4
        assert not any(ids[0] in card.note_ids for card in deck.cards)

    asyncio.run(scenario())


def test_empty_notes_cost_no_job() -> None:
    async def scenario() -> None:
        world = World()
        await world.note(" ", title="A")
        await world.note("\n", title="B")
        assert (await world.generator.fill_buffer(WHOLE_LIBRARY, 3)).cards == ()
        assert not world.coordinator.requests

    asyncio.run(scenario())


def test_what_was_written_before_a_failure_stays() -> None:
    async def scenario() -> None:
        world = World(ScriptedCoordinator(answer("Both wait."), [EngineError("It broke.")]))
        await world.some(6)
        with pytest.raises(EngineError):
            await world.generator.fill_buffer(WHOLE_LIBRARY, 3)
        assert len((await world.show(WHOLE_LIBRARY)).cards) == 1

    asyncio.run(scenario())


def test_without_a_model_nothing_is_filled() -> None:
    async def scenario() -> None:
        world = World()
        await world.some(3)
        world.store.names.clear()
        with pytest.raises(UnknownModel):
            await world.generator.fill_buffer(WHOLE_LIBRARY, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [0, -1, 51])
def test_a_count_out_of_bounds_is_refused(count: int) -> None:
    with pytest.raises(InvalidRequest):
        asyncio.run(World().generator.fill_buffer(WHOLE_LIBRARY, count))


def test_a_kept_card_is_a_note_with_links_and_keeping_it_again_is_the_same_note() -> None:
    async def scenario() -> None:
        world = World()
        first = await world.note("Text.", title="Slow [bread]")
        second = await world.note("Text.", title="Clocks")
        card = (await world.generator.fill_buffer(WHOLE_LIBRARY, 1)).cards[0]
        note = await world.keep(card.id)
        assert (note.source, note.origin, note.title) == ("nataraj", card.id, "Both wait.")
        assert {"Clocks", "Slow bread"} == set(note.links)
        assert {first.id, second.id} == set(card.note_ids)
        assert world.changes.announced == [note.id]
        assert await world.keep(card.id) == note
        assert (await world.cards.get(card.id)).note_id == note.id
        with pytest.raises(InvalidRequest):
            await world.drop(card.id)
        # A crash before the card was marked: the same note again.
        await world.cards.set_state(card.id, "buffered")
        assert (await world.keep(card.id)).id == note.id
        assert len(world.notes.notes) == 3

    asyncio.run(scenario())


def test_unknown_and_empty_cards_are_refused() -> None:
    async def scenario() -> None:
        world = World(ScriptedCoordinator(NOTHING))
        with pytest.raises(CardNotFound):
            await world.keep("nonsense")
        await world.some(2)
        await world.generator.fill_buffer(WHOLE_LIBRARY, 1)
        barren = (await world.cards.list(WHOLE_LIBRARY, "barren"))[0]
        with pytest.raises(InvalidRequest):
            await world.keep(barren.id)

    asyncio.run(scenario())


def test_names_of_pictures_and_boxes_of_tasks_are_not_given_to_the_model() -> None:
    async def scenario() -> None:
        world = World()
        await world.note("Water rises. ![[h4.png]]", title="One")
        await world.note("- [x] fed\n![the map](maps/old.png)", title="Two")
        await world.note("![[only.png]]", title="Three")
        assert len((await world.generator.fill_buffer(WHOLE_LIBRARY, 5)).cards) == 1
        (asked,) = world.coordinator.requests
        said = str(asked.messages)
        assert "Water rises." in said
        assert "- fed" in said
        assert "the map" in said
        assert not any(name in said for name in ("h4", "old.png", "[x]", "![", "only"))

    asyncio.run(scenario())


def test_long_notes_are_cut_to_the_models_context() -> None:
    async def scenario() -> None:
        world = World()
        for n in range(2):
            await world.note("word " * 20_000, title=f"Long {n}")
        await world.generator.fill_buffer(WHOLE_LIBRARY, 1)
        (request,) = world.coordinator.requests
        assert sum(len(message.content) for message in request.messages) < 2048 * 3

    asyncio.run(scenario())


@pytest.mark.parametrize("deed", ["drop", "restore", "fill"])
def test_a_card_that_is_kept_on_another_page_meanwhile_stays_kept(deed: str) -> None:
    async def scenario() -> None:
        world = World()
        await world.some(2)
        card = (await world.generator.fill_buffer(WHOLE_LIBRARY, 1)).cards[0]
        if deed != "drop":
            await world.drop(card.id)
        get, every = world.cards.get, world.cards.list

        async def get_and_be_late(card_id: str) -> Card:
            world.cards.get = get  # type: ignore[method-assign]
            found = await get(card_id)
            await world.keep(card_id)
            return found

        async def list_and_be_late(*arguments: Any, **options: Any) -> tuple[Card, ...]:
            world.cards.list = every  # type: ignore[method-assign]
            found = await every(*arguments, **options)
            await world.keep(card.id)
            return found

        if deed == "fill":
            world.cards.list = list_and_be_late  # type: ignore[method-assign]
            assert (await world.generator.fill_buffer(WHOLE_LIBRARY, 1)).cards == ()
        else:
            world.cards.get = get_and_be_late  # type: ignore[method-assign]
            if deed == "drop":
                with pytest.raises(InvalidRequest, match="was kept and is a note now"):
                    await world.drop(card.id)
            else:
                assert (await world.restore(card.id)).state == "kept"
        kept = await world.cards.get(card.id)
        assert (kept.state, kept.note_id) == ("kept", card.id)

    asyncio.run(scenario())


def test_keeping_a_card_again_does_not_undo_what_was_written_into_its_note() -> None:
    async def scenario() -> None:
        world = World()
        await world.some(2)
        card = (await world.generator.fill_buffer(WHOLE_LIBRARY, 1)).cards[0]
        note = await world.keep(card.id)
        edited = note.model_copy(update={"text": "Mine now."})
        await world.notes.save([edited])
        await world.cards.set_state(card.id, "buffered")
        assert await world.keep(card.id) == edited
        assert [each.text for each in await world.notes.many([note.id])] == ["Mine now."]

    asyncio.run(scenario())


def test_a_restored_card_lies_in_front_again_and_its_note_is_gone() -> None:
    async def scenario() -> None:
        world = World()
        await world.some(4)
        first, second, *_ = (await world.generator.fill_buffer(WHOLE_LIBRARY, 4)).cards
        await world.drop(first.id)
        note = await world.keep(second.id)
        assert await world.restore(second.id) == second
        assert await world.notes.many([note.id]) == ()
        assert await world.restore(first.id) == first
        assert await world.restore(first.id) == first  # it lies there already
        assert (await world.show(WHOLE_LIBRARY)).cards[:2] == (first, second)
        assert (await world.keep(second.id)).id == note.id

    asyncio.run(scenario())


def test_a_note_that_was_changed_since_is_not_undone() -> None:
    async def scenario() -> None:
        world = World()
        await world.some(4)
        (card,) = (await world.generator.fill_buffer(WHOLE_LIBRARY, 1)).cards
        note = await world.keep(card.id)
        await world.notes.save(
            [note.model_copy(update={"changed_at": note.changed_at + timedelta(seconds=1)})]
        )
        with pytest.raises(InvalidRequest, match="has been changed since"):
            await world.restore(card.id)
        assert (await world.cards.get(card.id)).state == "kept"

    asyncio.run(scenario())
