import asyncio
from datetime import timedelta

import pytest

from domain.errors import InvalidField
from domain.usecases.gana import OLD_NOTES
from tests.memory.gana_world import GanaWorld


def test_a_trigger_in_words_is_read_with_its_next_fires() -> None:
    world = GanaWorld()
    ganas = world.gana_controller()
    daily = ganas.read_trigger("every day at 8")
    assert daily.words == "every day at 8:00"
    assert len(daily.fires) == 3
    assert daily.fires[1] - daily.fires[0] == timedelta(days=1)
    once = ganas.read_trigger("once at 2099-12-24 18:00")
    assert len(once.fires) == 1
    reacting = ganas.read_trigger("when a new note with #inbox comes")
    assert (reacting.words, reacting.fires, reacting.reactive) == ("on new notes tagged inbox", (), True)


@pytest.mark.parametrize("words", ["whenever", "cron 99 * * * *", "every 2 minutes", "* * * * *"])
def test_a_trigger_that_cannot_be_is_refused_at_its_field(words: str) -> None:
    with pytest.raises(InvalidField) as refused:
        GanaWorld().gana_controller().read_trigger(words)
    assert refused.value.field in ("trigger", "interval_minutes")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("name", {"name": ""}),
        ("name", {"name": "taken"}),
        ("task", {"task": ""}),
        ("webhook", {"webhook": "nowhere"}),
        ("output_tag", {"output_tag": "#"}),
        ("trigger", {"trigger": "some day"}),
        ("trigger", {"reactive": True}),
    ],
)
def test_every_refusal_names_its_field(field: str, fields: dict[str, object]) -> None:
    async def scenario() -> None:
        world = GanaWorld()
        await world.gana("taken")
        with pytest.raises(InvalidField) as refused:
            await world.gana_controller().create({"name": "new", "task": "Sum up.", **fields})
        assert refused.value.field == field

    asyncio.run(scenario())


def test_a_preview_leaves_the_surface_to_the_face() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        run = await world.gana_controller().preview("of a form", {"name": "new", "task": "Sum up."})
        assert run.status == "succeeded"
        assert world.coordinator.surfaces == []

    asyncio.run(scenario())


def test_a_preview_of_a_new_gana_says_that_it_was_tried_on_old_notes() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        await world.note("Bread rose.", "inbox")
        ganas = world.gana_controller()
        fields = {"name": "new", "task": "Sum up.", "trigger": "when a note is added", "input_tag": "inbox"}
        tried = await ganas.preview("of a form", fields)
        assert (tried.status, tried.detail) == ("succeeded", OLD_NOTES)
        tried = await ganas.preview("of a form", fields, read_old_notes=True)
        assert (tried.status, tried.detail) == ("succeeded", "")

    asyncio.run(scenario())


def test_in_two_hours_is_from_now_on() -> None:
    world = GanaWorld()
    before = world.now
    (fire,) = world.gana_controller().read_trigger("in 2 hours").fires
    assert timedelta(0) <= fire - before - timedelta(hours=2) < timedelta(minutes=1)
