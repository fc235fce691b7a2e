"""The pages, and how they come into the server."""

import asyncio
import functools
import hashlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nicegui
from fastapi import FastAPI, Request
from nicegui import Client, ui
from nicegui.page import page

from domain.errors import DatabaseError
from presentation.faces import Controllers
from presentation.web import theme
from presentation.web.changes import Changes
from presentation.web.chat_page import page_chat
from presentation.web.deck import page_deck
from presentation.web.errands import Errands
from presentation.web.gana_page import page_gana, page_new_gana
from presentation.web.ganas import page_ganas
from presentation.web.live_answers import LiveAnswers
from presentation.web.models import page_models
from presentation.web.notes_editor import page_note
from presentation.web.notes_graph import page_graph
from presentation.web.notes_import import page_import
from presentation.web.notes_manases import page_manases
from presentation.web.notes_page import page_find_note, page_notes
from presentation.web.notices import sentence
from presentation.web.parts import button, link_button
from presentation.web.pulls import Pulls
from presentation.web.scheduler import page_scheduler
from presentation.web.settings import page_settings
from presentation.web.shell import empty, shell
from presentation.web.site import Site
from presentation.web.surfaces import Surfaces
from presentation.web.welcome import page_welcome

RECONNECT_S = 15.0
"""A page whose connection was lost is kept so long; after that it is drawn anew when it comes back."""
_BACK = {"/": "A new chat", "/notes": "All notes", "/ganas": "All Ganas"}
"""Where a page that cannot be shown leads instead."""
RELOAD_S = 5.0
"""A page whose database cannot be used is asked for again after so long."""
_STATIC = Path(__file__).parent / "static"

Builder = Callable[..., Awaitable[None] | None]
"""Takes the site and what its path and query say, and draws the page."""


def _pages(site: Site) -> None:
    """Every page, one a line."""
    _page(site, "/", "Chat", page_chat, wide=True)
    _page(site, "/c/{conversation_id}", "Chat", page_chat, place="/", wide=True)
    _page(site, "/welcome", "Welcome", page_welcome, place="/")
    _page(site, "/notes", "Notes", page_notes)
    _page(site, "/notes/find", "Notes", page_find_note, place="/notes")
    _page(site, "/notes/manases", "Manases", page_manases, place="/notes")
    _page(site, "/notes/import", "Import notes", page_import, place="/notes")
    _page(site, "/notes/graph", "Concepts", page_graph, place="/notes")
    _page(site, "/notes/{note_id}", "Note", page_note, place="/notes", wide=True)
    _page(site, "/deck", "Deck", page_deck)
    _page(site, "/scheduler", "Scheduler", page_scheduler)
    _page(site, "/ganas", "Ganas", page_ganas)
    _page(site, "/ganas/new", "New Gana", page_new_gana, place="/ganas")
    _page(site, "/ganas/{gana_id}", "Gana", page_gana, place="/ganas")
    _page(site, "/models", "Models", page_models)
    _page(site, "/settings", "Settings", page_settings)


def mount_pages(app: FastAPI, faces: Controllers) -> Site:
    """Puts the pages at `/` of the server. Once a process: NiceGUI has one application."""
    loop = asyncio.get_running_loop()
    changes, errands = Changes(), Errands()
    site = Site(
        faces=faces,
        surfaces=Surfaces(faces.scheduler.look_at, loop.time),
        changes=changes,
        answers=LiveAnswers(changes, loop.time),
        now=loop.time,
        errands=errands,
        pulls=Pulls(faces.models, errands, changes),
    )
    nicegui.app.add_static_files("/assets", _STATIC)
    nicegui.app.config.quasar_config["loadingBar"] = {"skipHijack": True}  # it has no name and says nothing
    nicegui.app.colors(
        primary="var(--accent)", dark="var(--surface)", dark_page="var(--bg)", negative="#b3261e"
    )
    ui.add_head_html(
        theme.HEAD
        + _asset("uniun.css")
        + _asset("chat.css")
        + _asset("notes.css")
        + _asset("producers.css")
        + _asset("scheduler.css")
        + _asset("shell.js")
        + _asset("deck.js")
        + _asset("graph.js")
        + _asset("focus.js"),
        shared=True,
    )
    _pages(site)
    _nothing_there(site)
    ui.run_with(
        app,
        title="UNIUN",
        favicon=_STATIC / "icon.svg",
        dark=None,
        language="en-US",
        tailwind=False,
        reconnect_timeout=RECONNECT_S,
        binding_refresh_interval=None,
        show_welcome_message=False,
    )
    _run_beside(app, site.surfaces.watch)
    _run_beside(app, site.answers.keep)
    _run_beside(app, site.errands.watch)
    return site


def _page(
    site: Site, path: str, title: str, builder: Builder, *, place: str | None = None, wide: bool = False
) -> None:
    """Registers a page. The builder's parameters after the site come from the path and the query."""
    signature = inspect.signature(builder)

    @functools.wraps(builder)
    async def draw(**given: object) -> None:
        with shell(site, title, place=place or path, wide=wide):
            try:
                drawing = builder(site, **given)
                if drawing is not None:
                    await drawing
            except Exception as error:  # noqa: BLE001 - a page that cannot be drawn still says why
                with (
                    empty("error_outline", "This page cannot be shown", sentence(error)),
                    ui.element("div").classes("u-row"),
                ):
                    _try_again(by_itself=isinstance(error, DatabaseError))
                    if place is not None:
                        link_button(_BACK[place], place).props("flat")

    draw.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    ui.page(path, response_timeout=15.0)(draw)


def _try_again(*, by_itself: bool) -> None:
    """A database server that was away comes back, and nobody has typed anything here yet."""
    button("Try again", on_click=ui.navigate.reload)
    if by_itself:
        ui.run_javascript(f"setTimeout(() => location.reload(), {1000 * RELOAD_S:.0f})")


def _nothing_there(site: Site) -> None:
    """A page for addresses that have none, with the way back; other answers stay as they are."""
    otherwise = nicegui.app.exception_handlers[404]

    async def answer(request: Request, error: Exception) -> Any:
        if request.scope.get("endpoint") not in (None, nicegui.app):
            return await otherwise(request, error)  # type: ignore[misc]
        with Client(page(""), request=request) as client, shell(site, "Not found", place=None, wide=False):
            empty(
                "search_off", "There is no such page", "What you look for may have been renamed or deleted."
            )
        return client.build_response(request, 404)

    nicegui.app.exception_handlers[404] = answer


def _asset(name: str) -> str:
    digest = hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:12]
    url = f"/assets/{name}?v={digest}"
    return (
        f'<link rel="stylesheet" href="{url}">'
        if name.endswith(".css")
        else f'<script defer src="{url}"></script>'
    )


def _run_beside(app: FastAPI, run: Callable[[], Awaitable[None]]) -> None:
    """For as long as the server runs."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(asgi: FastAPI) -> AsyncIterator[Any]:
        task = asyncio.ensure_future(run())
        try:
            async with inner(asgi) as state:
                yield state
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    app.router.lifespan_context = lifespan
