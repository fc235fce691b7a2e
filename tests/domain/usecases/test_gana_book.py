import asyncio
from datetime import timedelta

import pytest
from pydantic import ValidationError

from domain.entities.gana import GanaDraft
from domain.errors import GanaNotFound, InvalidRequest, ManasNotFound
from tests.memory.gana_world import GanaWorld

DAILY = {"name": "digest", "task": "Sum up.", "trigger": "every day at 8:00"}


def test_a_new_gana_is_off_and_reads_what_comes_from_now_on() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        ganas = world.gana_controller()
        await world.note("Old.", "inbox")
        gana = await ganas.create(DAILY | {"input_tag": "#Inbox", "output_tag": "My Digest"})
        assert (gana.enabled, gana.due_at) == (False, None)
        assert (gana.draft.input_tag, gana.draft.output_tag) == ("inbox", "my-digest")
        assert (await ganas.run("digest")).reason == "no_new_input"
        old = await ganas.create(DAILY | {"name": "old", "input_tag": "inbox"}, read_old_notes=True)
        assert (await ganas.run(old.id)).status == "succeeded"

    asyncio.run(scenario())


def test_enabling_computes_the_due_time_and_disabling_takes_it_away() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        ganas = world.gana_controller()
        await ganas.create(DAILY)
        on = await ganas.enable("digest", on=True)
        assert on.due_at is not None
        assert timedelta(0) < on.due_at - world.now <= timedelta(days=1)
        assert world.woken == ["ticker"]
        assert await ganas.enable("digest", on=True) == on
        off = await ganas.enable("digest", on=False)
        assert (off.enabled, off.due_at) == (False, None)

    asyncio.run(scenario())


def test_a_change_keeps_what_is_not_named_and_reschedules_only_for_a_new_trigger() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        ganas = world.gana_controller()
        await ganas.create(DAILY | {"input_tag": "inbox"})
        on = await ganas.enable("digest", on=True)
        renamed = await ganas.change("digest", {"name": "daily", "task": "Sum up briefly."})
        assert (renamed.id, renamed.due_at, renamed.draft.input_tag) == (on.id, on.due_at, "inbox")
        often = await ganas.change("daily", {"trigger": "every 30 minutes"})
        assert often.draft.cron is None
        assert often.due_at is not None
        assert often.due_at - world.now <= timedelta(minutes=30)
        manas = await world.library.manases.create("kitchen")
        moved = await ganas.change("daily", {"input_manas_id": "kitchen"})
        assert (moved.draft.input_tag, moved.draft.input_manas_id) == (None, manas.id)
        reacting = await ganas.change("daily", {"trigger": "on new notes tagged inbox"})
        assert (reacting.draft.input_tag, reacting.draft.input_manas_id) == ("inbox", None)
        assert (reacting.draft.reactive, reacting.draft.interval_minutes, reacting.due_at) == (
            True,
            None,
            None,
        )

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": ""}, "name"),
        ({"task": ""}, "say what it should do"),
        ({"trigger": "cron 61 8 * * *"}, "no cron expression"),
        ({"trigger": "every 2 minutes"}, "at most once in 5 minutes"),
        ({"webhook": "file:///etc/passwd"}, "webhook"),
        ({"input_tag": "###"}, "no tag"),
        ({"trigger": "on new notes tagged a", "input_tag": "b"}, "once"),
        ({"input_tag": "a", "input_manas_id": "kitchen"}, "not both"),
        ({"no_such_field": 1}, "no_such_field"),
    ],
)
def test_a_wrong_field_is_refused_in_one_sentence(fields: dict[str, object], reason: str) -> None:
    async def scenario() -> None:
        with pytest.raises(InvalidRequest, match=reason) as refused:
            await GanaWorld().gana_controller().create(DAILY | fields)
        assert "\n" not in str(refused.value)

    asyncio.run(scenario())


def test_names_are_unique_and_manases_exist() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        ganas = world.gana_controller()
        await ganas.create(DAILY)
        with pytest.raises(InvalidRequest, match="already"):
            await ganas.create(DAILY)
        await ganas.create(DAILY | {"name": "other"})
        with pytest.raises(InvalidRequest, match="already"):
            await ganas.change("other", {"name": "digest"})
        with pytest.raises(ManasNotFound):
            await ganas.create(DAILY | {"name": "third", "manas_ids": ("nowhere",)})
        with pytest.raises(GanaNotFound):
            await ganas.change("nobody", {})

    asyncio.run(scenario())


def test_a_one_shot_in_the_past_is_not_switched_on() -> None:
    async def scenario() -> None:
        ganas = GanaWorld().gana_controller()
        await ganas.create(DAILY | {"trigger": "once at 2020-01-01 9:00"})
        with pytest.raises(InvalidRequest, match="has passed"):
            await ganas.enable("digest", on=True)

    asyncio.run(scenario())


def test_a_form_previews_what_it_holds_before_anything_is_saved() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        ganas = world.gana_controller()
        with ganas.form() as form:
            run = await form.preview({"name": "new", "task": "Say hello."})
            assert (run.status, run.gana_id) == ("succeeded", form.gana_id)
            with pytest.raises(GanaNotFound):
                await form.preview()
        gana = await ganas.create(DAILY)
        with ganas.form(gana.id) as form:
            await form.preview({"task": "Say goodbye."})
        assert "Say goodbye." in world.coordinator.requests[-1].messages[1].content
        assert (await ganas.get("digest")).draft.task == "Sum up."
        assert await ganas.list() == (gana,)

    asyncio.run(scenario())


def test_a_removed_gana_takes_its_log_and_leaves_its_notes() -> None:
    async def scenario() -> None:
        world = GanaWorld()
        ganas = world.gana_controller()
        await ganas.create(DAILY)
        await ganas.run("digest")
        assert len(await ganas.runs("digest")) == 1
        await ganas.remove("digest")
        assert await ganas.runs() == ()
        assert len(world.ganas.published) == 1
        with pytest.raises(GanaNotFound):
            await ganas.runs("digest")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("tag", "normal"), [("#Inbox ", "inbox"), ("My Work/Plan", "my-work/plan"), (None, None)]
)
def test_tags_are_looked_for_as_notes_have_them(tag: str | None, normal: str | None) -> None:
    draft = GanaDraft(name="g", task="t", input_tag=tag, output_tag=tag)
    assert (draft.input_tag, draft.output_tag) == (normal, normal)


@pytest.mark.parametrize("tag", ["##", "x" * 101])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(ValidationError, match="tag"):
        GanaDraft(name="g", task="t", output_tag=tag)


def test_a_name_is_one_line_that_can_be_typed_again() -> None:
    assert GanaDraft(name=" my\x1b[31m\nweek ", task="t").name == "my [31m week"
    with pytest.raises(ValidationError, match="can be seen"):
        GanaDraft(name="\u200b\x07", task="t")
