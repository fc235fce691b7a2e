"""Every page, at a desk and on a phone, light and dark: photographed into build/screenshots, and examined by axe."""

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, ViewportSize

from tests.presentation.web.conftest import DESK, PHONE, ROOT, Server, Start
from tests.presentation.web.sample import fill
from tests.presentation.web.screens import SCREENS, Screen

PICTURES = ROOT / "build" / "screenshots"


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=fill)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_page_is_sound_in_every_size_and_theme(
    browser: Browser, server: Server, screen: Screen, size: ViewportSize, theme: str
) -> None:
    context = browser.new_context(viewport=size, base_url=server.url, reduced_motion="reduce")
    try:
        context.add_cookies([{"name": "uniun_theme", "value": theme, "url": server.url}])
        page = context.new_page()
        page.goto(screen.path)
        page.wait_for_function("window.did_handshake === true")
        screen.prepare(page)
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"{screen.name}-{size['width']}x{size['height']}-{theme}.png")
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"the page is {overflow} pixels wider than the screen"
        found = Axe().run(page).response["violations"]
        grave = [
            (one["id"], one["help"], [node["html"][:200] for node in one["nodes"]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert grave == []
    finally:
        context.close()
