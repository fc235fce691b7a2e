"""The background service, installed and removed from the settings page in a browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, expect

from background.service import UNIT
from tests.background.user_manager import UserManager, available
from tests.presentation.web.conftest import Desk, Server, Start, desk_before

SECTION = "While the app is closed"
PATIENCE_MS = 240_000
"""The service is a Python process, which waits for its turn on a busy machine."""


def start_at(start: Start, home: Path, runtime: str) -> Server:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        return start()


@pytest.fixture
def nobody(browser: Browser, start: Start, tmp_path: Path) -> Iterator[Desk]:
    """For a user whom no service manager serves."""
    yield from desk_before(browser, start_at(start, tmp_path, str(tmp_path / "gone")))


def test_without_a_service_manager_it_says_what_to_do(nobody: Desk, tmp_path: Path) -> None:
    part = nobody.open("/settings").get_by_role("region", name=SECTION)
    part.get_by_role("button", name="Install").click()
    alert = part.page.get_by_role("alert").filter(has_text="There is no systemd for this user here")
    expect(alert).to_contain_text("uniun background run (in a terminal)")
    expect(part).to_contain_text("It is not installed.")
    # One that was installed before systemd was gone.
    file = tmp_path / ".config" / "systemd" / "user" / UNIT
    file.parent.mkdir(parents=True)
    file.touch()
    part.page.reload()
    expect(part.locator(".u-bad")).to_contain_text("there is no systemd for this user now")
    part.get_by_role("button", name="Uninstall").click()
    expect(part).to_contain_text("It is not installed.")
    assert not list((tmp_path / ".config").rglob(UNIT))


if available():

    @pytest.fixture(scope="module")
    def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserManager]:
        with UserManager(tmp_path_factory.mktemp("home"), {}) as manager:
            yield manager

    @pytest.fixture
    def served(browser: Browser, start: Start, manager: UserManager) -> Iterator[Desk]:
        server = start_at(start, manager.home, manager.environment["XDG_RUNTIME_DIR"])
        yield from desk_before(browser, server)

    def test_it_is_installed_and_removed_with_a_click(served: Desk, manager: UserManager) -> None:
        part = served.open("/settings").get_by_role("region", name=SECTION)
        part.get_by_role("button", name="Install").click()
        runs = part.get_by_text("It starts when you log in, and runs now")
        expect(runs).to_be_visible(timeout=PATIENCE_MS)
        expect(part).to_contain_text("loginctl enable-linger")
        assert manager.systemctl("is-enabled", UNIT) == "enabled"
        found = re.search(r"process (\d+)", runs.inner_text())
        assert found is not None
        psutil.Process(int(found[1])).kill()
        manager.wait_for(UNIT, "SubState", "auto-restart")
        part.page.reload()
        expect(part.locator(".u-bad")).to_contain_text("It was killed by signal 9. It is started again")
        part.get_by_role("button", name="Install again").click()
        expect(runs).to_be_visible(timeout=PATIENCE_MS)
        part.get_by_role("button", name="Uninstall").click()
        expect(part).to_contain_text("It is not installed.", timeout=PATIENCE_MS)
        assert manager.systemctl("is-active", UNIT) == "inactive"
