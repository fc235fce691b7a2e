"""Settings in a browser: what can be tuned, copies of everything, and how the installation is."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from presentation.web.settings_rows import SETTINGS
from tests.presentation.web.conftest import Desk, Server, Start, desk_before
from tests.presentation.web.sample import fill


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=fill)


@pytest.fixture
def fixed(browser: Browser, start: Start) -> Iterator[Desk]:
    """Where the environment has decided something."""
    yield from desk_before(browser, start(engine__threads=3))


def test_what_the_environment_sets_cannot_be_chosen(fixed: Desk) -> None:
    page = fixed.open("/settings")
    expect(page.get_by_label("Processor cores for the model, cores")).to_be_disabled()
    row = page.locator(".u-setting").filter(has_text="Processor cores for the model")
    expect(row).to_contain_text("UNIUN_ENGINE__THREADS sets it to 3 cores")


def test_a_setting_is_kept_and_holds_at_once(server: Server, desk: Desk) -> None:
    page = desk.open("/settings")
    share = page.get_by_label("Share of the time for reading notes, %")
    row = page.locator(".u-setting").filter(has_text="Share of the time for reading notes")
    expect(row).to_contain_text("Default: 60 %")
    share.fill("150")
    share.press("Enter")
    expect(row).to_contain_text("Not kept. It can be from 5 to 100 %.")
    share.fill("many")
    share.press("Tab")
    expect(row).to_contain_text("Write a number")
    share.fill("40")
    share.press("Tab")
    expect(page.get_by_text("Kept. It holds from now on.")).to_be_visible()
    page.goto("/scheduler")
    expect(page.get_by_text("of at most 40 %")).to_be_visible()
    page.goto("/settings")
    file = server.data_dir / "preferences.json"
    assert json.loads(file.read_text()) == {"extract_share": 0.4}
    server.restart()
    page = desk.open("/settings")
    expect(page.get_by_label("Share of the time for reading notes, %")).to_have_value("40")
    page.get_by_label("Share of the time for reading notes, %").fill("")
    page.get_by_label("Share of the time for reading notes, %").press("Enter")
    expect(page.get_by_text("Kept. It holds from now on.")).to_be_visible()
    assert json.loads(file.read_text()) == {}
    desk.complaints.clear()  # of the connection that was lost


def test_a_notice_can_be_read_in_the_dark(desk: Desk) -> None:
    page = desk.open("/settings")
    page.emulate_media(color_scheme="dark")
    page.get_by_label("Turns of background work, seconds").fill("20")
    page.keyboard.press("Tab")
    expect(page.locator(".q-notification").filter(has_text="Kept.")).to_be_visible()
    page.wait_for_function(
        """() => document.body.classList.contains('body--dark') && getComputedStyle(document.querySelector('.q-notification')).color
            === getComputedStyle(document.body).backgroundColor"""
    )


def test_the_theme_is_chosen_by_keyboard(desk: Desk) -> None:
    page = desk.open("/settings")
    page.get_by_role("radio", name="Dark").focus()
    page.keyboard.press("Space")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.reload()
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()


def test_copies_of_everything(server: Server, desk: Desk, tmp_path: Path) -> None:
    page = desk.open("/settings")
    page.get_by_role("button", name="Back up now").click()
    expect(page.get_by_text("The backup is there:")).to_contain_text(str(server.data_dir / "backups"))
    (written,) = (server.data_dir / "backups").glob("uniun-*.db")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download it").click()
    assert download.value.suggested_filename == written.name
    assert download.value.path().read_bytes() == written.read_bytes()
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_text("Write where the export is to go.")).to_be_visible()
    page.get_by_label("Folder to export to").fill(str(tmp_path / "out"))
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_text("Exported:")).to_be_visible()
    assert list((tmp_path / "out").rglob("Willow*.md"))
    page.get_by_role("button", name="Export").click()
    expect(page.locator(".u-banner.u-bad")).to_contain_text(str(tmp_path / "out"))


def test_equal_notices_carry_no_red_figure(desk: Desk) -> None:
    page = desk.open("/settings")
    desk.context.grant_permissions(["clipboard-write"])
    page.get_by_role("button", name="Copy the path").evaluate("(one) => { one.click(); one.click(); }")
    expect(page.locator(".q-notification")).to_have_count(2)
    expect(page.locator(".q-notification__badge")).to_have_count(0)


def test_keys_for_other_programs(desk: Desk) -> None:
    page = desk.open("/settings")
    card = page.get_by_role("region", name="Keys for other programs")
    card.get_by_role("button", name="Create a key").click()
    expect(card.get_by_text("Write what the program is called.")).to_be_visible()
    card.get_by_label("Name of the program").fill("editor")
    card.get_by_role("button", name="Create a key").click()
    expect(card.locator("code")).to_contain_text("uniun-")
    expect(card.get_by_role("listitem")).to_contain_text("editor")
    card.get_by_role("listitem").evaluate("(row) => { row.dataset.kept = 'yes' }")
    card.get_by_label("Name of the program").fill("second")
    card.get_by_role("button", name="Create a key").click()
    expect(card.get_by_role("listitem")).to_have_count(2)
    expect(card.get_by_role("listitem").filter(has_text="editor")).to_have_attribute("data-kept", "yes")
    card.get_by_role("button", name="Revoke the key of second").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(card.get_by_role("listitem")).to_have_count(1)
    page.reload()
    expect(card.get_by_role("listitem")).to_contain_text("editor")
    expect(card.locator("code")).to_have_count(0)
    card.get_by_role("button", name="Revoke the key of editor").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(card.get_by_role("listitem")).to_have_count(0)


def test_how_the_installation_is(desk: Desk) -> None:
    page = desk.open("/settings")
    expect(page.get_by_text("It is not installed.")).to_be_visible()
    page.get_by_role("button", name="Look for problems").click()
    findings = page.locator(".u-findings")
    expect(findings).to_contain_text("Python:")
    expect(findings).to_contain_text("engine:")
    expect(page.get_by_role("button", name="Look for problems")).to_be_enabled()


def test_without_a_desktop_the_folder_is_named(server: Server, desk: Desk) -> None:
    page = desk.open("/settings")
    expect(page.get_by_text(str(server.data_dir), exact=True)).to_be_visible()
    page.get_by_role("button", name="Open the folder").click()
    expect(page.get_by_role("alert").filter(has_text="no desktop here")).to_be_visible()


def test_what_is_shown_and_what_is_stored() -> None:
    by_field = {setting.field: setting for setting in SETTINGS}
    assert by_field["kv_budget_bytes"].shown(640 << 20) == "640"
    assert by_field["kv_budget_bytes"].stored("1,024") == 1 << 30
    assert by_field["extract_share"].shown(0.6) == "60"
    assert by_field["extract_share"].stored("55") == pytest.approx(0.55)
    assert by_field["threads"].stored(" ") is None
    with pytest.raises(ValueError, match="float"):
        by_field["threads"].stored("two")
