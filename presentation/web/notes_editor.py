"""One note: written, looked at, talked about."""

import asyncio
from collections.abc import Callable
from functools import partial

from nicegui import ui
from nicegui.element import Element

from domain.entities.llm import LlmTaskKind
from domain.entities.note import Note
from domain.errors import NoteNotFound
from domain.usecases.notes import UNTITLED
from presentation.web.live_markdown import LiveMarkdown
from presentation.web.notes_about import NoteAbout
from presentation.web.notes_composer import ComposerPanel
from presentation.web.notes_conflict import ConflictBanner
from presentation.web.notes_drafts import NEW_ID, LostDrafts
from presentation.web.notes_field import Edit, NoteField, is_blank, is_too_long
from presentation.web.notes_markdown import note_html
from presentation.web.notes_rows import ask_to_delete
from presentation.web.notes_saver import GONE, NoteSaver
from presentation.web.notes_too_long import ReplacedBanner, TooLong
from presentation.web.notices import tell
from presentation.web.parts import confirm, link
from presentation.web.shell import plain
from presentation.web.site import Site

_SLOW_TEXT = 20_000
"""Characters; longer ones are rendered in a thread."""
_MODES = {"write": "Write", "both": "Side by side", "preview": "Preview"}


async def page_note(site: Site, note_id: str, chat: str = "", begin: str = "") -> None:
    """`chat` is the conversation that is open beside it. `begin`: it need not be there; it is kept when something is typed,
    so that what is begun and left leaves nothing behind."""
    kept = True
    try:
        note = (await site.faces.notes.show(note_id)).note
    except NoteNotFound:
        if not begin or not NEW_ID.fullmatch(note_id):
            LostDrafts(site, note_id).classes("u-too-long")
            raise
        note, kept = site.faces.notes.blank(note_id), False
    if note.id != note_id:
        ui.navigate.to(f"/notes/{note.id}")
        return
    page = NotePage(site, note, kept=kept, begins=bool(begin))
    await page.draw(chat)


class NotePage:
    """Wires field, saver, preview and the panel beside them."""

    def __init__(self, site: Site, note: Note, *, kept: bool, begins: bool) -> None:
        """`begins`: so its address says."""
        self._site = site
        self._note = note
        self._kept = kept
        self._mode = "write"
        self._rendering = 0
        """Of the text that came last; an earlier one that takes longer is thrown away."""
        self._new = self._begins = begins
        self._looked_for = ""
        """The title."""
        self._deleted = False

    async def draw(self, chat: str) -> None:
        note, site = self._note, self._site
        ui.page_title(f"{note.title} · UNIUN")
        with ui.element("div").classes("u-note-page"):
            with ui.element("section").classes("u-note-main").props('aria-label="Note"'):
                self._head()
                self._field = NoteField(
                    note,
                    kept=self._kept,
                    on_edit=self._edited,
                    on_draft=self._draft_found,
                    on_look=self._looked,
                    on_leave=self._left,
                    complete=site.faces.notes.complete_title,
                )
                self._saver = NoteSaver(site.faces.notes, note, self._field, kept=self._kept)
                self._conflict = ConflictBanner(self._saver, self._field, self._settled)
                self._conflict.box.move(target_index=1)
                if (before := site.replaced.of(note)) is not None:
                    ReplacedBanner(site, note, before)
                if is_too_long(note):
                    TooLong(site, note)
                self._same = ui.element("p").classes("u-same-title u-small").props("role=status")
                await self._look_for_same_title()
                with ui.element("p").classes("u-same-title u-small").props("role=status") as self._emptied:
                    plain("Nothing stands in this note any more. It stays among your notes as “Untitled”. ")
                    with ui.element("button").props("type=button").classes("u-link") as delete:
                        plain("Delete it")
                    delete.on("click", self._delete, args=[])
                with ui.element("div").classes("u-note-body") as self._body:
                    self._field.move(self._body)
                    with (
                        ui.element("div")
                        .classes("u-note-preview")
                        .props('tabindex=0 role=region aria-label="Preview"')
                    ):
                        self._preview = LiveMarkdown()
            with ui.element("aside").classes("u-note-side").props('aria-label="About this note"'):
                await self._side(chat)
        self._use_mode("write")
        if self._kept:
            self._about.reading.follow()
        self._put_address_right()
        site.changes.on("notes", self._changed)
        site.changes.on("manases", self._about.refresh)

    def _head(self) -> None:
        with ui.element("header").classes("u-note-head"):
            with ui.element("h1").classes("u-hidden"):
                plain("Note")
            link("All notes", "/notes").classes("u-grow")
            self._modes = {
                mode: _toggle(text, partial(self._use_mode, mode)) for mode, text in _MODES.items()
            }
            with (
                ui.element("button")
                .classes("u-icon-button")
                .props('type=button aria-label="Delete this note" title="Delete this note"')
                .on("click", self._delete, args=[])
            ):
                ui.icon("delete_outline")

    async def _side(self, chat: str) -> None:
        with ui.element("div").classes("u-note-tabs"):
            self._tabs = {
                "about": _toggle("About", lambda: self._turn_to("about")),
                "chat": _toggle("Chat", lambda: self._turn_to("chat")),
            }
        with ui.element("div").classes("u-note-about") as about:
            self._about = NoteAbout(self._site, self._saver, self._field)
            await self._about.refresh()
        with ui.element("div").classes("u-note-chat") as panel:
            self._panel = ComposerPanel(
                self._site,
                self._note.id,
                self._field,
                is_kept=lambda: self._saver.kept,
                on_found=lambda: self._turn_to("chat"),
            )
            await self._panel.draw(chat)
        self._sides = {"about": about, "chat": panel}
        self._turn_to("chat" if chat else "about")

    # -- what is looked at

    def _turn_to(self, side: str) -> None:
        for name, element in self._sides.items():
            element.set_visibility(name == side)
            _press(self._tabs[name], name == side)
        if side == "chat":
            self._panel.look_at()
        else:
            self._site.enter_surface(LlmTaskKind.EXTRACT, self._note.id)

    def _use_mode(self, mode: str) -> None:
        self._mode = mode
        for name, toggle in self._modes.items():
            _press(toggle, name == mode)
        self._body.classes(replace=f"u-note-body u-mode-{mode}")
        if mode != "write":
            self._field.check()
            return self._render_soon()
        return None

    def _render_soon(self) -> None:
        ui.timer(0, self._render_current, once=True)

    async def _render_current(self) -> None:
        try:
            now = await self._field.current()
            title, text = now.title, now.text
        except TimeoutError:
            title, text = self._saver.note.title, self._saver.note.text
        await self._render(title, text)

    async def _render(self, title: str, text: str) -> None:
        if self._mode == "write":
            return
        self._rendering += 1
        this_rendering = self._rendering
        slow = len(text) >= _SLOW_TEXT
        html = await asyncio.to_thread(note_html, text, title) if slow else note_html(text, title)
        if this_rendering != self._rendering:
            return
        self._preview.patch(0, [html or "<p>Nothing is written yet.</p>"])

    # -- what is typed

    async def _edited(self, edit: Edit) -> None:
        self._about.reading.typed()
        saved = await self._saver.take(edit)
        await self._render(edit.title, edit.text)
        self._conflict.show()
        self._put_address_right()
        if saved:
            ui.page_title(f"{self._saver.note.title} · UNIUN")
            self._site.changes.tell("notes")
            await self._look_for_same_title()

    async def _look_for_same_title(self) -> None:
        """Links to the title lead to the older one."""
        note = self._saver.note
        if note.title == self._looked_for:
            return
        self._looked_for = note.title
        other = None if note.title == UNTITLED else await self._site.faces.notes.namesake(note)
        if note.title != self._looked_for:
            return
        self._same.clear()
        self._same.set_visibility(other is not None)
        if other is not None:
            with self._same:
                link("Another note", f"/notes/{other}")
                plain(" has this title. Links to it lead there.")

    async def _draft_found(self, unchanged: bool) -> None:
        if unchanged:
            tell("What had not been saved was still in this browser. It is back.")
        else:
            await self._saver.found_draft()
            self._conflict.show(draft=True)

    async def _looked(self, saved: int | None) -> None:
        if self._deleted:
            return
        try:
            if await self._saver.look(saved):
                await self._about.refresh()
                await self._render(self._saver.note.title, self._saver.note.text)
        except NoteNotFound:
            self._gone()

    async def _changed(self) -> None:
        """Here or on another page."""
        self._field.check()
        try:
            await self._about.refresh()
        except NoteNotFound:
            self._gone()

    async def _settled(self) -> None:
        """A conflict ended."""
        self._site.changes.tell("notes")
        await self._about.refresh()

    def _put_address_right(self) -> None:
        """A note in which nothing stands may be gone when the page is loaded again."""
        self._emptied.set_visibility(self._saver.kept and not self._new and is_blank(self._saver.note))
        if not self._saver.kept:
            return
        if not self._kept:
            self._kept = True
            self._about.reading.follow()
        blank = self._new and is_blank(self._saver.note)
        if blank != self._begins:
            self._begins = blank
            put = "set('begin', '1')" if blank else "delete('begin')"
            ui.run_javascript(
                f"const here = new URL(location); here.searchParams.{put}; history.replaceState(null, '', here)"
            )

    async def _left(self) -> None:
        """The page, which may be loaded again. A note that was written before is not deleted for being empty."""
        if self._new and await self._saver.leave():
            self._site.changes.tell("notes")

    # -- its end

    async def _delete(self) -> None:
        if not await self._may_go():
            return
        self._deleted = True
        await self._saver.delete()
        self._field.forget()
        self._site.changes.tell("notes")
        ui.navigate.to("/notes")

    async def _may_go(self) -> bool:
        """Nobody is asked about a note in which nothing stands."""
        if not is_blank(self._saver.note):
            return await ask_to_delete(self._saver.note.title)
        now = await self._field.current()
        if not now.title.strip() and not now.text.strip():
            return True
        return await confirm("Discard this text?", "It has not been saved yet, and goes for good.", "Discard")

    def _gone(self) -> None:
        if is_blank(self._saver.note):
            return  # it was left in another tab; what is typed here begins it again
        if not self._deleted:
            self._deleted = True
            self._field.failed_for_good(GONE)


def _toggle(text: str, on_click: Callable[[], object]) -> Element:
    with ui.element("button").classes("u-toggle").props("type=button").on("click", on_click, args=[]) as made:
        plain(text)
    return made


def _press(toggle: Element, pressed: bool) -> None:
    toggle.props["aria-pressed"] = "true" if pressed else "false"
