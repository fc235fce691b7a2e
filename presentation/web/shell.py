"""The frame around every page: navigation, landmarks, theme, errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from presentation.web.notices import tell_error
from presentation.web.site import Site
from presentation.web.theme import ThemeSwitch


@dataclass(frozen=True)
class Place:
    """An entry of the navigation."""

    path: str
    title: str
    icon: str


PLACES = (
    Place("/", "Chat", "chat_bubble_outline"),
    Place("/notes", "Notes", "description"),
    Place("/deck", "Deck", "style"),
    Place("/ganas", "Ganas", "auto_awesome"),
    Place("/scheduler", "Scheduler", "timeline"),
    Place("/models", "Models", "memory"),
    Place("/settings", "Settings", "tune"),
)


@contextmanager
def shell(site: Site, title: str, *, place: str | None, wide: bool) -> Iterator[None]:
    """What is drawn inside is the page's main part. `wide` leaves margins and scrolling to the page."""
    client = ui.context.client
    ui.page_title(f"{title} · UNIUN")
    ui.on_exception(tell_error)
    ThemeSwitch()
    site.surfaces.follow(client)
    with client.layout:
        with ui.element("div").classes("u-frame") as frame:
            _link("#content", "Skip to the content").classes("u-skip")
            _navigation(place)
        frame.move(target_index=0)
    with (
        ui.element("div").props("id=content tabindex=-1").classes("u-content u-wide" if wide else "u-content")
    ):
        yield
    site.surfaces.turn_to(client.id)


@contextmanager
def heading(text: str) -> Iterator[None]:
    """The page's title; what is drawn inside stands to the right of it. Once a page."""
    with ui.element("header").classes("u-heading"):
        with ui.element("h1"):
            plain(text)
        with ui.element("div").classes("u-actions"):
            yield


def empty(icon: str, title: str, text: str) -> Element:
    """What a list shows while it is empty; buttons may be drawn into it."""
    with ui.element("div").classes("u-empty") as box:
        ui.icon(icon).classes("u-empty-icon")
        with ui.element("h2"):
            plain(title)
        with ui.element("p"):
            plain(text)
    return box


def plain(text: str) -> TextElement:
    """Text that is nothing but text."""
    return TextElement(tag="span", text=text)


def _navigation(current: str | None) -> None:
    with ui.element("nav").props('aria-label="Main"').classes("u-nav"):
        with _link("/").classes("u-brand").props('aria-label="UNIUN, to the chat"'):
            plain("UNIUN")
        with ui.element("ul"):
            for place in PLACES:
                with ui.element("li"), _link(place.path).classes("u-nav-link") as link:
                    if place.path == current:
                        link.props("aria-current=page")
                    ui.icon(place.icon)
                    plain(place.title)


def _link(target: str, text: str = "") -> Element:
    link = ui.element("a").props(f'href="{target}"')
    if text:
        with link:
            plain(text)
    return link
