"""Small parts that several pages are made of."""

from collections.abc import Callable
from typing import Any

from nicegui import ui
from nicegui.element import Element

from presentation.web.shell import plain


def button(text: str, *, icon: str | None = None, on_click: Callable[..., Any] | None = None) -> ui.button:
    """A quiet one; `.props("flat")` takes its frame."""
    made = ui.button(text, icon=icon, on_click=on_click, color=None).props("no-caps outline")
    return made.classes("u-button")


def main_button(
    text: str, *, icon: str | None = None, on_click: Callable[..., Any] | None = None
) -> ui.button:
    """What the user most likely wants to do."""
    made = ui.button(text, icon=icon, on_click=on_click, color=None).props("no-caps unelevated")
    return made.classes("u-main-button")


def link(text: str, path: str) -> Element:
    """To a page of this site."""
    with ui.element("a") as element:
        element.props["href"] = path
        plain(text)
    return element


def link_button(text: str, path: str, *, icon: str | None = None) -> ui.button:
    """Looks like a button and is a link."""
    made = button(text, icon=icon)
    made.props["href"] = path
    return made


def chip(text: str, *, kind: str = "") -> Element:
    """A short mark; `kind` is `good`, `warn` or `bad`."""
    with ui.element("span").classes(f"u-chip u-chip-{kind}" if kind else "u-chip") as element:
        plain(text)
    return element


def section(title: str) -> Element:
    """A card with a heading; draw into it."""
    with ui.element("section").classes("u-card u-section") as card:
        card.props["aria-label"] = title
        with ui.element("h2"):
            plain(title)
    return card


def fold(title: str) -> Element:
    """Folded away until it is asked for; draw into it."""
    with ui.element("details").classes("u-fold"):
        with ui.element("summary"):
            plain(title)
        return ui.element("div").classes("u-stack")


def dialog(title: str) -> ui.dialog:
    """Over the whole page, under a name; draw a card into it. It goes when it is closed."""
    made = ui.dialog(value=True)
    made.props["aria-label"] = title
    made.on("hide", made.delete)
    return made


async def confirm(title: str, text: str, yes: str) -> bool:
    """Asks before something that cannot be undone.

    The question belongs to the page and not to the row with the button: that may be drawn anew meanwhile. So what the
    caller does afterwards must say on which page (`with client:`).
    """
    with ui.context.client, dialog(title) as asked, ui.card().classes("u-stack u-dialog"):
        with ui.element("h2"):
            plain(title)
        with ui.element("p"):
            plain(text)
        with ui.element("div").classes("u-row u-ends"):
            button("Cancel", on_click=lambda: asked.submit(False)).props("flat autofocus")
            ui.button(yes, on_click=lambda: asked.submit(True), color="negative").props("no-caps unelevated")
    return bool(await asked)
