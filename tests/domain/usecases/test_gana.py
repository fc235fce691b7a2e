"""One run of a Gana: every guard, what moves the cursor, and what is published when."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from domain.entities.gana import Gana, GanaRun, Tick
from domain.entities.llm import LlmTaskKind
from domain.errors import EngineError, JobCancelled, QueueFull
from domain.usecases.gana import OLD_NOTES
from tests.fakes import HOLD, ScriptedCoordinator, Step, answer
from tests.memory.gana_world import GanaWorld


def call(tool: str, argument: str) -> list[Step]:
    return answer(json.dumps({"tool": tool, "argument": argument}))


async def due_run(world: GanaWorld, gana: Gana) -> GanaRun:
    """As a ticker would."""
    assert gana.due_at is not None
    tick = await world.ganas.claim(gana.id, gana.due_at, None, by="app", now=world.now)
    assert tick is not None
    return await world.engine.process_gana(gana, "cron", tick=tick)


async def submitted(world: GanaWorld) -> None:
    """Until the first job waits in the queue."""
    for _ in range(1_000):
        if world.coordinator.jobs:
            return
        await asyncio.sleep(0)
    raise AssertionError("no job was submitted")


def logged(world: GanaWorld) -> list[tuple[str, str | None]]:
    runs = asyncio.run(world.ganas.runs())
    return [(run.status, run.reason) for run in runs]


def test_new_notes_become_a_note_with_the_tag() -> None:
    world = GanaWorld(ScriptedCoordinator(answer("# Week\n\nTwo things happened. #inbox")))

    async def scenario() -> None:
        old = await world.note("Old.", "inbox")
        gana = await world.gana(input_tag="inbox", output_tag="digest")
        first = await world.note("Bread rose.", "inbox")
        await world.note("Not for it.", "other")
        run = await world.engine.process_gana(gana, "interactive")
        assert (run.status, run.reason, run.input_note_ids) == ("succeeded", None, (first.id,))
        (note,) = world.ganas.published
        assert (note.source, note.origin, note.tags) == ("gana", gana.id, ("digest",))
        assert run.output_note_id == note.id
        assert world.changes.announced == [note.id]
        assert (await world.again(gana)).cursor == world.notes.arrivals[first.id, "inbox"]
        (request,) = world.coordinator.requests
        assert (request.kind, request.flow, request.deadline) == (LlmTaskKind.GANA, gana.id, None)
        assert not request.thinking
        assert "Bread rose." in request.messages[1].content
        assert old.text not in request.messages[1].content
        assert (run.tokens, run.by) == (6, "app")
        # Nothing is new now.
        again = await world.engine.process_gana(await world.again(gana), "interactive")
        assert (again.status, again.reason) == ("skipped", "no_new_input")
        assert len(world.coordinator.requests) == 1

    asyncio.run(scenario())


def test_a_gana_without_input_just_runs_on_its_own_model() -> None:
    world = GanaWorld(None, "tiny", "large")

    async def scenario() -> None:
        run = await world.engine.process_gana(await world.gana(model="large"), "interactive")
        assert run.status == "succeeded"
        assert world.coordinator.requests[0].model == "large"

    asyncio.run(scenario())


def test_a_tick_carries_its_due_time_as_deadline() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now)
        run = await due_run(world, gana)
        assert run.due_at == gana.due_at
        assert world.coordinator.requests[0].deadline == gana.due_at

    asyncio.run(scenario())


def test_a_preview_publishes_logs_and_moves_nothing() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        await world.note("Bread rose.", "inbox")  # read already: a preview shows it all the same
        gana = await world.gana(input_tag="inbox", webhook="http://127.0.0.1:9/hook", mode="one_shot")
        run = await world.engine.process_gana(gana, "preview")
        assert (run.status, run.output, run.detail) == ("succeeded", "Hello there.", OLD_NOTES)
        assert not world.ganas.published
        assert not world.webhook.sent
        assert not await world.ganas.runs()
        assert await world.again(gana) == gana
        assert world.coordinator.requests[0].deadline is None

    asyncio.run(scenario())


def test_what_was_read_between_look_and_claim_is_not_read_again() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        seen = await world.gana(input_tag="inbox")
        await world.note("Bread rose.", "inbox")
        assert (await world.engine.process_gana(seen, "interactive")).status == "succeeded"
        again = await world.engine.process_gana(seen, "interactive")
        assert (again.status, again.reason) == ("skipped", "no_new_input")
        assert len(world.ganas.published) == 1

    asyncio.run(scenario())


def test_nothing_to_say_moves_the_cursor_and_publishes_nothing() -> None:
    world = GanaWorld(ScriptedCoordinator(answer("NOTHING")))

    async def scenario() -> None:
        gana = await world.gana(input_tag="inbox")
        note = await world.note("Bread rose.", "inbox")
        run = await world.engine.process_gana(gana, "interactive")
        assert (run.status, run.reason) == ("skipped", "nothing_to_say")
        assert (await world.again(gana)).cursor == world.notes.arrivals[note.id, "inbox"]
        assert not world.ganas.published

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ([EngineError("It broke.")], "failed", "error"),
        ([ValueError("a bug")], "failed", "error"),
        ([JobCancelled("Gone.")], "skipped", "cancelled"),
    ],
)
def test_trouble_moves_no_cursor(script: list[Step], status: str, reason: str) -> None:
    world = GanaWorld(ScriptedCoordinator(script))

    async def scenario() -> None:
        gana = await world.gana(input_tag="inbox")
        await world.note("Bread rose.", "inbox")
        run = await world.engine.process_gana(gana, "interactive")
        assert (run.status, run.reason) == (status, reason)
        assert run.detail
        assert (await world.again(gana)).cursor == gana.cursor
        assert not world.ganas.published

    asyncio.run(scenario())
    assert logged(world) == [(status, reason)]


def test_without_its_model_it_is_skipped() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        gana = await world.gana(model="absent", due_at=world.now)
        run = await due_run(world, gana)
        assert (run.status, run.reason) == ("skipped", "no_model")
        assert "absent" in run.detail
        assert not world.coordinator.requests

    asyncio.run(scenario())


def test_it_never_reads_what_a_gana_wrote() -> None:
    """Not as input, not as knowledge, not with its tools, whoever wrote it."""
    world = GanaWorld(
        ScriptedCoordinator(
            call("search_notes", "bread"), call("read_note", "Secret"), call("publish", "Done.")
        )
    )

    async def scenario() -> None:
        manas = await world.library.manases.create("kitchen")
        gana = await world.gana(
            input_tag="inbox", manas_ids=(manas.id,), agentic=True, task="What is known of bread?"
        )
        own = await world.note("Bread of the Gana.", "inbox", source="gana", title="Secret")
        typed = await world.note("Bread of the user.", "inbox", title="Loaf")
        known = await world.note("Bread known to the user.", title="Known")
        await world.library.manases.add(manas.id, [own.id, typed.id, known.id])
        for note in (own, known):
            vector = await world.library.embedder.embed(note.text)
            await world.library.vectors.store(note.id, note.content_hash, vector)
        run = await world.engine.process_gana(gana, "interactive")
        assert run.status == "succeeded"
        assert run.input_note_ids == (typed.id,)
        for request in world.coordinator.requests:
            assert not any("of the Gana" in message.content for message in request.messages)
        assert "known to the user" in world.coordinator.requests[0].messages[1].content

    asyncio.run(scenario())


def test_one_run_at_a_time() -> None:
    world = GanaWorld(ScriptedCoordinator([HOLD], answer("Second.")))

    async def scenario() -> None:
        gana = await world.gana()
        first = asyncio.create_task(world.engine.process_gana(gana, "interactive"))
        await submitted(world)
        second = await world.engine.process_gana(gana, "interactive")
        assert (second.status, second.reason) == ("skipped", "already_running")
        world.engine.stop(gana.id)
        assert (await first).reason == "stopped"
        assert (await world.engine.process_gana(gana, "interactive")).status == "succeeded"

    asyncio.run(scenario())


def test_a_tick_that_the_user_stops_is_done() -> None:
    world = GanaWorld(ScriptedCoordinator([HOLD]))

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now)
        run = asyncio.create_task(due_run(world, gana))
        await submitted(world)
        world.engine.stop(gana.id)
        assert ((await run).status, (await run).reason) == ("skipped", "stopped")
        assert await world.ganas.due(world.now + timedelta(days=1), 10) == ()

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [JobCancelled("UNIUN is closing."), QueueFull(5, 5)])
def test_a_tick_that_is_cut_off_stays_due(error: Exception) -> None:
    world = GanaWorld(ScriptedCoordinator([error]))

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now)
        run = await due_run(world, gana)
        assert (run.status, run.reason) == ("skipped", "cancelled")
        assert [each.due_at for each in await world.ganas.due(world.now, 10)] == [gana.due_at]

    asyncio.run(scenario())


def test_a_tick_whose_process_is_told_to_end_stays_due() -> None:
    world = GanaWorld(ScriptedCoordinator([HOLD]))

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now, input_tag="inbox")
        await world.note("Bread rose.", "inbox")
        task = asyncio.create_task(due_run(world, gana))
        await submitted(world)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert world.coordinator.jobs[0].cancelled.is_set()
        (left,) = await world.ganas.due(world.now, 10)
        assert (left.due_at, left.cursor) == (gana.due_at, gana.cursor)
        assert not world.ganas.published

    asyncio.run(scenario())
    assert logged(world) == [("skipped", "cancelled")]


def test_a_tick_that_was_lost_publishes_nothing() -> None:
    """The claim ran out, another process did the work: `complete` says no, and the webhook stays silent."""
    world = GanaWorld()

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now, webhook="http://127.0.0.1:9/hook")
        stale = Tick(gana_id=gana.id, due_at=gana.due_at, claim="stale")
        run = await world.engine.process_gana(gana, "cron", tick=stale)
        assert (run.status, run.reason) == ("skipped", "cancelled")
        assert not world.ganas.published
        assert not world.webhook.sent
        assert (await due_run(world, gana)).status == "succeeded"
        assert len(world.ganas.published) == 1
        world.leases.lose = True
        late = await world.gana("late", due_at=world.now)
        assert (await due_run(world, late)).reason == "cancelled"
        assert len(world.ganas.published) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("due", [True, False])
def test_a_gana_that_is_removed_while_it_runs_says_so(due: bool) -> None:
    world = GanaWorld(ScriptedCoordinator([HOLD]))

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now)
        run = due_run(world, gana) if due else world.engine.process_gana(gana, "interactive")
        running = asyncio.create_task(run)
        await submitted(world)
        await world.ganas.delete(gana.id)
        world.coordinator.jobs[0].cancel()
        ended = await running
        assert (ended.status, ended.reason) == ("skipped", "cancelled")
        assert ended.detail == "It was removed while it ran, and what it was writing was not kept."
        assert not world.ganas.published

    asyncio.run(scenario())


def test_a_run_that_lost_its_claim_may_end_beside_the_one_that_took_it_over() -> None:
    world = GanaWorld(ScriptedCoordinator([HOLD], answer("Done.")))

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now, input_tag="inbox")
        await world.note("Bread rose.", "inbox")
        stale = Tick(gana_id=gana.id, due_at=gana.due_at, claim="stale")
        first = asyncio.create_task(world.engine.process_gana(gana, "cron", tick=stale))
        await submitted(world)
        assert (await due_run(world, gana)).status == "succeeded"
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert len(world.ganas.published) == 1

    asyncio.run(scenario())


def test_a_run_that_is_cancelled_while_it_is_completed_is_logged_as_it_ended() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        gana = await world.gana(due_at=world.now)
        complete = world.ganas.complete

        async def cut_off(*args: Any, **kwargs: Any) -> bool:
            await complete(*args, **kwargs)
            raise asyncio.CancelledError

        world.ganas.complete = cut_off  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await due_run(world, gana)
        assert len(world.ganas.published) == 1
        assert [run.status for run in await world.ganas.runs()] == ["succeeded"]
        assert await world.ganas.due(world.now, 5) == ()

    asyncio.run(scenario())


def test_a_one_shot_is_off_once_it_has_fired() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        at = world.now
        gana = await world.gana(due_at=at, mode="one_shot", once_at=at)
        assert (await due_run(world, gana)).status == "succeeded"
        assert not (await world.again(gana)).enabled

    asyncio.run(scenario())


def test_the_webhook_gets_the_note_and_its_failure_takes_nothing_back() -> None:
    world = GanaWorld(ScriptedCoordinator(answer("Post this to http://evil.example/ instead.")))

    async def scenario() -> None:
        gana = await world.gana(webhook="http://127.0.0.1:9/hook")
        run = await world.engine.process_gana(gana, "interactive")
        ((url, body),) = world.webhook.sent
        assert url == "http://127.0.0.1:9/hook"
        assert body == {"gana": "g", "run": run.id, "note": run.output_note_id, "text": run.output}
        world.webhook.broken = True
        failed = await world.engine.process_gana(gana, "interactive")
        assert failed.status == "succeeded"
        assert "answered 500" in failed.detail
        assert len(world.ganas.published) == 2
        assert (await world.ganas.runs())[0] == failed

    asyncio.run(scenario())


def test_more_than_fits_is_left_for_the_next_run() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        gana = await world.gana(input_tag="inbox")
        notes = [await world.note(f"Long {n}. " + "word " * 150, "inbox") for n in range(1, 8)]
        read: list[str] = []
        for _ in range(7):
            run = await world.engine.process_gana(await world.again(gana), "interactive")
            read += run.input_note_ids
        assert read == [note.id for note in notes]
        assert len(world.coordinator.requests) < 7

    asyncio.run(scenario())


def test_a_note_larger_than_the_budget_is_read_in_part_and_holds_up_nothing() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        gana = await world.gana(input_tag="inbox")
        large = await world.note("Begin. " + "word " * 50_000 + "End.", "inbox")
        later = await world.note("Later.", "inbox")
        run = await world.engine.process_gana(gana, "interactive")
        assert run.input_note_ids == (large.id,)
        (request,) = world.coordinator.requests
        assert "End." in request.messages[1].content
        assert len(request.messages[1].content) < 2048 * 3
        run = await world.engine.process_gana(await world.again(gana), "interactive")
        assert run.input_note_ids == (later.id,)

    asyncio.run(scenario())


# -- agentic


def test_an_agent_looks_and_then_publishes_one_job_a_round() -> None:
    world = GanaWorld(
        ScriptedCoordinator(
            call("search_notes", "bread"), call("neighbours", "bread"), call("publish", "Bread needs time.")
        )
    )

    async def scenario() -> None:
        gana = await world.gana(agentic=True, due_at=world.now)
        note = await world.note("Bread needs flour.", title="Loaf")
        await world.library.read(note.id, "Bread.", ("bread", "needs", "flour"))
        run = await due_run(world, gana)
        assert (run.status, run.output) == ("succeeded", "Bread needs time.")
        first, second, third = world.coordinator.requests
        assert {request.deadline for request in (first, second, third)} == {gana.due_at}
        assert all(request.json_schema for request in (first, second, third))
        assert "Loaf" in second.messages[-1].content
        assert "bread needs flour." in third.messages[-1].content
        assert run.tokens == sum(
            len(text.split()) for text in ('{"tool": x "argument": x', "1 2 3 4", "1 2 3 4 5 6")
        )

    asyncio.run(scenario())


def test_an_agent_has_four_rounds_and_the_last_must_end() -> None:
    world = GanaWorld(ScriptedCoordinator(call("search_notes", "bread")))

    async def scenario() -> None:
        run = await world.engine.process_gana(await world.gana(agentic=True), "interactive")
        assert (run.status, run.reason) == ("failed", "error")
        assert "4 rounds" in run.detail
        assert len(world.coordinator.requests) == 4
        assert "search_notes" not in json.dumps(world.coordinator.requests[-1].json_schema)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "said", ["", "not json", "[1]", '{"tool": "rm", "argument": "x"}', '{"tool": "publish"}', "[" * 9999]
)
def test_an_unreadable_call_costs_a_round_only(said: str) -> None:
    world = GanaWorld(ScriptedCoordinator(answer(said), call("nothing", "no news")))

    async def scenario() -> None:
        run = await world.engine.process_gana(await world.gana(agentic=True), "interactive")
        assert (run.status, run.reason) == ("skipped", "nothing_to_say")
        assert len(world.coordinator.requests) == 2

    asyncio.run(scenario())


def test_tools_stay_within_the_manases() -> None:
    world = GanaWorld(
        ScriptedCoordinator(call("search_notes", "bread"), call("read_note", "Diary"), call("nothing", ""))
    )

    async def scenario() -> None:
        manas = await world.library.manases.create("kitchen")
        gana = await world.gana(agentic=True, manas_ids=(manas.id,))
        inside = await world.note("Bread rises.", title="Loaf")
        await world.note("Bread was burnt, nobody may know.", title="Diary")
        await world.library.manases.add(manas.id, [inside.id])
        await world.engine.process_gana(gana, "interactive")
        _, second, third = world.coordinator.requests
        assert "Loaf" in second.messages[-1].content
        assert "burnt" not in third.messages[-1].content

    asyncio.run(scenario())


def test_the_background_leaves_agents_and_webhooks_to_the_app() -> None:
    world = GanaWorld()
    world.engine.by = "background"

    async def scenario() -> None:
        for fields in ({"agentic": True}, {"webhook": "http://127.0.0.1:9/"}):
            run = await world.engine.process_gana(await world.gana(**fields), "interactive")
            assert (run.status, run.reason, run.by) == ("skipped", "needs_app", "background")
        assert not world.coordinator.requests

    asyncio.run(scenario())


def test_the_log_keeps_ten_runs() -> None:
    world = GanaWorld()

    async def scenario() -> None:
        gana = await world.gana()
        for _ in range(13):
            await world.engine.process_gana(gana, "interactive")
        assert len(await world.ganas.runs(gana.id)) == 10

    asyncio.run(scenario())
