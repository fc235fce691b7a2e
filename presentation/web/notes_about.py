"""What is known about a note: tags, concepts, links, sets; beside the editor."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from domain.entities.knowledge import Concept
from domain.entities.note import Link, Manas, NoteDetails, NoteLine
from domain.errors import NoteChanged, UniunError
from presentation.counting import counted
from presentation.web.notes_field import NoteField
from presentation.web.notes_list import NoteFilter
from presentation.web.notes_markdown import FIND
from presentation.web.notes_reading import ReadingState
from presentation.web.notes_rows import day
from presentation.web.notes_saver import NoteSaver
from presentation.web.notices import tell, tell_error
from presentation.web.parts import chip, link
from presentation.web.shell import plain
from presentation.web.site import Site

_SOURCES = {
    "typed": "Written here",
    "imported": "Imported",
    "gana": "Written by a Gana",
    "nataraj": "A kept card",
}
_MOST = 40
"""Of each list; the rest is counted."""


class NoteAbout:
    """Drawn once; `refresh` puts it right."""

    def __init__(self, site: Site, saver: NoteSaver, field: NoteField) -> None:
        self._site = site
        self._saver = saver
        self._field = field
        self._turn = asyncio.Lock()
        """An older reading must not end after a newer."""
        note = saver.note
        self._seen: dict[str, object] = {}
        self._sections: list[Element] = []
        with self._section("Tags"):
            self._tags = ui.element("ul").classes("u-chips")
            self._add = (
                ui.element("input")
                .classes("u-input")
                .props(
                    'type=text placeholder="Add a tag" aria-label="Add a tag" maxlength=100 autocomplete=off'
                )
            )
            self._add.on(
                "keydown.enter",
                self._add_tag,
                js_handler="(e) => { emit(e.target.value); e.target.value = '' }",
            )
        with self._section("Concepts"):
            self.reading = ReadingState(
                site, note.id, self.refresh, lambda: not self._saver.note.text.strip()
            )
            self._summary = ui.element("p").classes("u-small")
            self._concepts = ui.element("ul").classes("u-chips")
        with self._section("Links to"):
            self._links = ui.element("ul").classes("u-plain-list")
        with self._section("Linked from"):
            self._backlinks = ui.element("ul").classes("u-plain-list")
        with self._section("Manases"):
            self._manases = ui.element("ul").classes("u-plain-list")
        with ui.element("p").classes("u-muted u-small"):
            self._dates = plain("")

    @contextmanager
    def _section(self, title: str) -> Iterator[None]:
        with ui.element("section").classes("u-about-section") as section:
            with ui.element("h2"):
                plain(title)
            yield
        self._sections.append(section)

    async def refresh(self) -> None:
        """Reads everything, and draws what is another than before."""
        async with self._turn:
            await self._refresh()

    async def _refresh(self) -> None:
        for section in self._sections:
            section.set_visibility(self._saver.kept)
        if not self._saver.kept:
            self._dates.text = "Tags, links and what is read in the note stand here once something is typed."
            return
        note_id = self._saver.note.id
        details = await self._site.faces.notes.show(note_id)
        manases = self._site.faces.manases
        self._draw_tags()
        self._draw_concepts(details)
        self._draw_links(details)
        self._draw_manases(await manases.list(), {manas.id for manas in await manases.of_note(note_id)})
        note = details.note
        origin = f": {note.origin}" if note.source == "imported" and note.origin else ""
        self._dates.text = (
            f"{_SOURCES[note.source]}{origin}. Begun {day(note.created_at)}, changed {day(note.changed_at)}."
        )

    def _is_new(self, part: str, seen: object) -> bool:
        """What is drawn as it is stays: the pointer may be on it, or a key about to be pressed."""
        if part in self._seen and self._seen[part] == seen:
            return False
        self._seen[part] = seen
        return True

    # -- tags

    def _draw_tags(self) -> None:
        if not self._is_new("text", self._saver.note.content_hash):
            return  # to read all of a long one takes long
        own = self._site.faces.notes.own_tags(self._saver.note)
        if not self._is_new("tags", [(tag, tag in own) for tag in self._saver.note.tags]):
            return
        self._tags.clear()
        with self._tags:
            for tag in self._saver.note.tags[:_MOST]:
                with ui.element("li").classes("u-chip"):
                    link(f"#{tag}", NoteFilter(tag=tag).path)
                    if tag in own:
                        self._remove_button(tag)
                    else:
                        plain("in the text").classes("u-small")

    def _remove_button(self, tag: str) -> None:
        async def remove() -> None:
            await self._retag([], [tag])

        with (
            ui.element("button").classes("u-chip-x").props("type=button").on("click", remove, args=[]) as made
        ):
            ui.icon("close")
        made.props["aria-label"] = f"Remove the tag {tag}"

    async def _add_tag(self, event: GenericEventArguments) -> None:
        if tag := str(event.args or "").strip()[:200]:
            await self._retag([tag], [])

    async def _retag(self, add: list[str], remove: list[str]) -> None:
        try:
            await self._saver.retag(add, remove)
        except NoteChanged:
            self._field.check()
            raise
        self._draw_tags()
        self.reading.typed()
        self._site.changes.tell("notes")

    # -- the graph

    def _draw_concepts(self, details: NoteDetails) -> None:
        if not self._is_new("concepts", (details.summary, details.concepts)):
            return
        self._summary.clear()
        self._summary.set_visibility(bool(details.summary))
        with self._summary:
            plain(details.summary or "")
        self._concepts.clear()
        with self._concepts:
            for concept in details.concepts[:_MOST]:
                self._concept(concept)
            _more(len(details.concepts))

    def _concept(self, concept: Concept) -> None:
        with ui.element("li"), link(concept.name, f"/notes/graph?{concept_query(concept.name)}") as made:
            made.classes("u-chip")
        made.props["title"] = f"{concept.type}; {counted(concept.note_count, 'note names', 'notes name')} it"

    def _draw_links(self, details: NoteDetails) -> None:
        if self._is_new("links", (details.links, details.attachments)):
            self._draw_links_to(details.links, details.attachments)
        if self._is_new("backlinks", details.backlinks):
            self._draw_linked_from(details.backlinks)

    def _draw_links_to(self, links: tuple[Link, ...], attachments: tuple[str, ...]) -> None:
        self._links.clear()
        with self._links:
            for one in links[:_MOST]:
                with ui.element("li"):
                    if one.target_id is not None:
                        link(one.target, f"/notes/{one.target_id}")
                    else:
                        link(one.target, f"{FIND}{_quoted(one.target)}").classes("u-muted")
                        chip("not written yet")
            for name in attachments[:_MOST]:
                with ui.element("li").classes("u-muted"):
                    plain(name)
                    chip("attachment, not kept")
            _more(len(links), "" if attachments else "none; write [[Title]] in the text")
            _more(len(attachments))

    def _draw_linked_from(self, backlinks: tuple[NoteLine, ...]) -> None:
        self._backlinks.clear()
        with self._backlinks:
            for line in backlinks[:_MOST]:
                with ui.element("li"):
                    link(line.title, f"/notes/{line.id}")
            _more(len(backlinks), "none")

    # -- sets

    def _draw_manases(self, manases: tuple[Manas, ...], of_note: set[str]) -> None:
        if not self._is_new("manases", [(manas.id, manas.name, manas.id in of_note) for manas in manases]):
            return
        self._manases.clear()
        with self._manases:
            for manas in manases:
                with ui.element("li"):
                    self._membership(manas, manas.id in of_note)
            if not manases:
                with ui.element("li").classes("u-muted u-small"):
                    link("Make a Manas", "/notes/manases")
                    plain(", a named set of notes.")

    def _membership(self, manas: Manas, inside: bool) -> None:
        client = ui.context.client

        async def change(event: GenericEventArguments) -> None:
            put_in = event.args is True
            deed = self._site.faces.manases.add if put_in else self._site.faces.manases.remove
            said = f"{'Put into' if put_in else 'Taken out of'} {manas.name[:80]}."
            try:
                await deed(manas.id, [self._saver.note.id])
            except UniunError as error:
                self._seen.pop("manases", None)  # the box shows what did not happen
                with client:
                    tell_error(error)
            else:
                with client:
                    tell(said)
            # Draws the boxes as they are now, this one too.
            self._site.changes.tell("manases")

        with ui.element("label").classes("u-check"):
            box = ui.element("input").props("type=checkbox")
            box.props["aria-label"] = manas.name  # by which the focus finds it when it is drawn again
            if inside:
                box.props("checked")
            box.on("change", change, js_handler="(e) => emit(e.target.checked)")
            plain(manas.name)


def concept_query(name: str) -> str:
    return f"name={_quoted(name)}"


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _more(count: int, none: str = "") -> None:
    said = f"and {count - _MOST} more" if count > _MOST else (none if not count else "")
    if said:
        with ui.element("li").classes("u-muted u-small"):
            plain(said)
