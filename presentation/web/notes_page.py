"""All notes: found as one types, narrowed by tag and Manas, a page at a time."""

import uuid
from weakref import WeakSet

from nicegui import Client, ui

from domain.entities.note import names_file
from domain.errors import UniunError
from presentation.web.notes_drafts import LostDrafts
from presentation.web.notes_import import begin_import
from presentation.web.notes_list import NoteFilter, NotesList
from presentation.web.parts import button, link_button, main_button
from presentation.web.reading_progress import ReadingLine
from presentation.web.shell import empty, heading
from presentation.web.site import Site

_leaving: WeakSet[Client] = WeakSet()
"""Pages that are on their way to a note that was begun there."""


async def page_notes(site: Site, q: str = "", tag: str = "", manas: str = "", start: int = 0) -> None:
    """What is asked for stands in the address, so that Back and a bookmark bring it again."""
    with heading("Notes"):
        link_button("Import", "/notes/import", icon="upload_file").props("flat")
        link_button("Manases", "/notes/manases", icon="folder_open").props("flat")
        link_button("Concepts", "/notes/graph", icon="hub").props("flat")
        main_button("New note", icon="add", on_click=lambda: begin_note(site))
    LostDrafts(site)
    line = ReadingLine(site)
    await NotesList(site, NoteFilter(q[:500], tag[:100], manas[:200], max(0, start)), NoNotes(site)).draw()
    await line.follow()


async def begin_note(site: Site, title: str = "") -> None:
    """A note that is not written yet, opened. A second click, before the page has gone there, begins no other one."""
    page = ui.context.client
    if page in _leaving:
        return
    _leaving.add(page)
    if not title:  # it is kept from its first letter on
        ui.navigate.to(f"/notes/{uuid.uuid4().hex}?begin=1")
        return
    try:
        note = await site.faces.notes.add("", title=title)
    except UniunError:
        _leaving.discard(page)
        raise
    site.changes.tell("notes")
    ui.navigate.to(f"/notes/{note.id}")


async def page_find_note(site: Site, name: str = "") -> None:
    """Where a link to a note leads: to the note, or to the offer to write it."""
    if (found := await site.faces.notes.follow_link(name)) is not None:
        ui.navigate.to(f"/notes/{found}")
        return
    with heading("Notes"):
        link_button("All notes", "/notes").props("flat")
    if names_file(name):
        empty("link_off", f"“{name[:80]}” is an attachment", "UNIUN takes no attachments yet, only notes.")
        return
    with empty(
        "link_off", f"There is no note “{name[:80]}” yet", "A link says so, and nothing is called that."
    ):
        main_button("Write it", icon="add", on_click=lambda: begin_note(site, name[:200]))


class NoNotes:
    """The three ways to get notes, where there are none."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def draw(self) -> None:
        with (
            empty(
                "description",
                "No notes yet",
                "Write one, import a folder of Markdown files, or try the samples.",
            ),
            ui.element("div").classes("u-row u-wrap"),
        ):
            main_button("Write a note", on_click=lambda: begin_note(self._site))
            link_button("Import a folder", "/notes/import")
            button("Load the sample notes", on_click=self._load_samples)

    def _load_samples(self) -> None:
        begin_import(self._site, self._site.faces.notes.import_samples)
        ui.navigate.to("/notes/import")
