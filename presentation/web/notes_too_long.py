"""A note that is too long for a browser's field: why, and the way to change it all the same."""

import asyncio
import re

from nicegui import ui
from nicegui.events import UploadEventArguments

from domain.entities.note import Note
from domain.errors import InvalidRequest, UniunError
from presentation.counting import counted
from presentation.web.notes_field import LONGEST_TEXT
from presentation.web.notes_replaced import Before
from presentation.web.notices import tell, tell_error
from presentation.web.parts import button, confirm
from presentation.web.shell import plain
from presentation.web.site import Site

_LARGEST = 45_000_000
"""Bytes: the longest note that is kept, in UTF-8, with what stands above it."""


class TooLong:
    """Out as one Markdown file, and the edited file back in the note's place: its id, links and history stay."""

    def __init__(self, site: Site, note: Note) -> None:
        self._notes = site.faces.notes
        self._changes = site.changes
        self._replaced = site.replaced
        self._note = note
        self._seen: str | None = None
        """The content that the downloaded file has."""
        with ui.element("section").classes("u-banner u-warn u-stack u-too-long") as box:
            box.props["aria-label"] = "This note is too long to be edited here"
            with ui.element("p"):
                plain(
                    f"This note has {len(note.text):,} characters. A browser stays quick up to {LONGEST_TEXT:,}, so the note "
                    "can only be read here, and only its beginning is shown. Nothing of it is lost."
                )
            with ui.element("p"):
                plain(
                    "To change it, download it, edit the file in any editor, and put the edited file in its place."
                )
            with ui.element("div").classes("u-row u-wrap"):
                button("Download the Markdown", icon="download", on_click=self._download)
                pick = button("Put the edited file in its place", icon="upload").props("flat")
                with ui.element("span").classes("u-row u-small").props("role=status") as self._busy:
                    ui.spinner(size="18px")
                    self._doing = plain("")
        self._busy.set_visibility(False)
        self._upload = ui.upload(
            auto_upload=True,
            max_file_size=_LARGEST,
            on_upload=self._take,
            on_rejected=lambda: tell_error(
                InvalidRequest(
                    f"Only one .md file of at most {_LARGEST // 1_000_000} MB can take the note's place."
                )
            ),
        ).props('accept=".md,.markdown"')
        self._upload.classes("u-upload-unseen")
        # In the browser: it opens the dialog for files only on a click that is fresh.
        pick.on("click", js_handler=f"() => runMethod({self._upload.id}, 'pickFiles', [])")
        self._upload.on("uploading", lambda: self._do("Sending the file…"), args=[])
        self._upload.on("failed", self._not_sent, args=[])
        self._upload.on("finish", js_handler=f"() => runMethod({self._upload.id}, 'reset', [])")

    async def _download(self) -> None:
        _, document, self._seen = await self._notes.begin_edit(self._note.id)
        name = re.sub(r"[^\w -]+", "", self._note.title).strip()[:80] or "note"
        ui.download.content(document, f"{name}.md", "text/markdown")

    def _do(self, what: str) -> None:
        self._doing.text = what
        self._busy.set_visibility(True)

    def _not_sent(self) -> None:
        self._busy.set_visibility(False)
        tell_error(InvalidRequest("The file could not be sent. Try again."))

    async def _take(self, event: UploadEventArguments) -> None:
        try:
            await self._replace(await event.file.read())
        except UniunError as error:
            tell_error(error)
        finally:
            self._busy.set_visibility(False)

    async def _replace(self, content: bytes) -> None:
        try:
            document = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidRequest("The file was not taken: it is no text in UTF-8.") from None
        title, characters = await asyncio.to_thread(self._notes.preview_edit, document)
        _, old, now = await self._notes.begin_edit(self._note.id)
        self._busy.set_visibility(False)
        if not await confirm(
            "Put the file in this note's place?",
            f"The note “{self._note.title[:100]}” with {counted(len(self._note.text), 'character')} becomes “{title[:100]}” with "
            f"{counted(characters, 'character')}. You can undo it afterwards.",
            "Replace the note",
        ):
            return
        self._do("Putting it in the note's place…")
        note = await self._notes.finish_edit(self._note.id, document, self._seen or self._note.content_hash)
        before = Before(self._note.title, len(self._note.text), old, note.content_hash)
        if note.content_hash != now:
            self._replaced.keep(note.id, before)
            self._changes.tell("notes")
            ui.navigate.reload()
        else:
            tell("The file says what the note says already.")


class ReplacedBanner:
    """Says that it worked, and offers the way back."""

    def __init__(self, site: Site, note: Note, before: Before) -> None:
        self._notes = site.faces.notes
        self._replaced = site.replaced
        self._changes = site.changes
        self._note = note
        self._before = before
        with ui.element("div").classes("u-banner u-row u-wrap u-too-long").props("role=status") as self._box:
            with ui.element("p").classes("u-grow"):
                plain(
                    f"The file has taken the note's place. Before, it was “{before.title[:100]}” with "
                    f"{counted(before.characters, 'character')}."
                )
            with ui.element("div").classes("u-row"):
                button("Undo", icon="undo", on_click=self._undo)
                button("Close", on_click=self._close).props("flat")

    async def _undo(self) -> None:
        try:
            await self._notes.finish_edit(self._note.id, self._before.document, self._before.now)
        except UniunError as error:
            tell_error(error)
            return
        self._replaced.forget(self._note.id)
        self._changes.tell("notes")
        tell("The note is what it was before.")
        ui.navigate.reload()

    def _close(self) -> None:
        self._replaced.forget(self._note.id)
        self._box.delete()
