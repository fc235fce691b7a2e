"""Every page, at a desk and on a phone, light and dark: photographed into build/screenshots, and examined by axe."""

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Browser, Page

from tests.presentation.web.conftest import DESK, PATIENCE_MS, PHONE, ROOT, Server, Start
from tests.presentation.web.sample import fill
from tests.presentation.web.screens import SCREENS, WAITING, Screen

PICTURES = ROOT / "build" / "screenshots"
EVERYTHING: dict[str, object] = {}
COLOURS: dict[str, object] = {"runOnly": ["color-contrast"]}


async def ready(container: DeclarativeContainer) -> None:
    """With what is searched by meaning: a server makes that on processors that nobody else wants, which may take long."""
    await fill(container)
    await container.notes_controller().embed()


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=ready, scheduler__max_queued_per_flow=WAITING)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_page_is_sound_in_every_size_and_theme(browser: Browser, server: Server, screen: Screen) -> None:
    """The theme is `auto` and follows the system, so that one visit does for all four."""
    sizes = (PHONE,) if screen.phone_only else (DESK, PHONE)
    context = browser.new_context(viewport=sizes[0], base_url=server.url, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    try:
        page = context.new_page()
        page.goto(screen.path)
        page.wait_for_function("window.did_handshake === true")
        screen.prepare(page)
        PICTURES.mkdir(parents=True, exist_ok=True)
        for size in sizes:
            page.set_viewport_size(size)
            page.wait_for_function(
                "document.documentElement.scrollWidth <= innerWidth"
            )  # no wider than the screen
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                page.wait_for_function(f"document.body.classList.contains('body--{theme}')")
                name = f"{screen.name}-{size['width']}x{size['height']}-{theme}.png"
                # Colours that are on their way to those of the theme would be neither.
                page.screenshot(path=PICTURES / name, animations="disabled")
                # Themes differ in nothing but colours.
                rules = EVERYTHING if theme == "light" else COLOURS
                assert _grave(page, rules) == [], f"at {size['width']} pixels, {theme}"
    finally:
        context.close()


def _grave(page: Page, rules: dict[str, object]) -> list[object]:
    """Serious and critical violations, with the elements that cause them."""
    return [
        (one["id"], one["help"], [node["html"][:200] for node in one["nodes"]])
        for one in Axe().run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
