"""How far the reading of notes is, and its switch, which holds over restarts."""

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import expect

from tests.presentation.web.conftest import Desk, Server, Start


async def two_notes(container: DeclarativeContainer) -> None:
    container.settings_controller().change({"read_notes": False})
    for title in ("Willow", "Bees"):
        await container.notes_controller().add(f"{title} in the wet ground.", title=title)


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=two_notes)


def test_reading_is_paused_until_it_goes_on(desk: Desk, server: Server) -> None:
    page = desk.open("/notes")
    told = page.get_by_text("Reading is paused: 0 of 2 notes read into the graph")
    expect(told).to_be_visible()
    page.get_by_role("link", name="Willow").click()
    expect(page.get_by_text("Waiting to be read: reading is paused.")).to_be_visible()
    page.goto("/settings")
    expect(page.get_by_role("switch", name="Read notes in the background")).not_to_be_checked()
    page.goto("/notes")
    page.get_by_role("button", name="Go on reading").click()
    expect(told).to_have_count(0)
    expect(page.get_by_role("button", name="Go on reading")).to_be_hidden()
    page.close()
    server.restart()
    page = desk.open("/settings")
    switch = page.get_by_role("switch", name="Read notes in the background")
    expect(switch).to_be_checked()
    switch.click()
    expect(page.get_by_text("Kept. It holds from now on.")).to_be_visible()
    assert '"read_notes": false' in (server.data_dir / "preferences.json").read_text()


def test_an_empty_note_has_nothing_to_be_read(desk: Desk) -> None:
    page = desk.open("/notes")
    page.get_by_role("button", name="New note").click()
    nothing = page.get_by_text("what is read in the note stand here once something is typed")
    expect(nothing).to_be_visible()
    page.get_by_role("textbox", name="Text of the note").fill("Now there is something.")
    expect(nothing).to_have_count(0)
