import asyncio
from datetime import timedelta

import pytest

from domain.errors import InvalidField
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
