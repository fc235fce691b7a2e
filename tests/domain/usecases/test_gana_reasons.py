"""What a run says of itself: why there was nothing to read, and how long it took."""

import asyncio

import pytest

from data.identity import RandomIdentities
from tests.memory.clock import HandClock
from tests.memory.gana_world import GanaWorld


@pytest.mark.parametrize("mode", ["preview", "interactive"])
def test_where_no_note_is_to_be_found_that_is_said(mode: str) -> None:
    async def scenario() -> None:
        world = GanaWorld()
        await world.note("Bread rose.", "wol")
        manas = await world.library.manases.create("sheep")
        tagged = await world.gana("tagged", input_tag="wool")
        kept = await world.gana("kept", input_manas_id=manas.id)
        for gana, why in (
            (tagged, "No note is tagged wool yet."),
            (kept, "No note is in the Manas that it watches yet."),
        ):
            run = await world.engine.process_gana(gana, "preview" if mode == "preview" else "interactive")
            assert (run.reason, run.detail) == ("no_new_input", why)

    asyncio.run(scenario())


def test_where_all_has_been_read_that_is_said() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        await world.note("Bread rose.", "wool")
        run = await world.engine.process_gana(await world.gana(input_tag="wool"), "interactive")
        assert (run.reason, run.detail) == ("no_new_input", "No note is new since its last run.")

    asyncio.run(scenario())


@pytest.mark.parametrize("hours", [3, -3])
def test_a_clock_that_is_set_in_a_run_makes_it_no_longer(hours: int) -> None:
    async def scenario() -> None:
        clock = HandClock()
        world = GanaWorld(identities=RandomIdentities(clock))
        steps: list[object] = []

        def pass_time(progress: object) -> None:
            if not steps:
                clock.jump(hours=hours)
                clock.run(5)
            steps.append(progress)

        run = await world.engine.process_gana(await world.gana(), "interactive", watch=pass_time)
        assert steps
        assert run.seconds == 5

    asyncio.run(scenario())
