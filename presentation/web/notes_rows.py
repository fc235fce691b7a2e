"""One note a row: what it is called, where it stands, and what can be done with it."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from nicegui import ui
from nicegui.element import Element

from domain.entities.note import Manas, NoteLine, SearchHit
from domain.errors import NotFound
from presentation.web.notices import tell
from presentation.web.parts import confirm
from presentation.web.rows import Row
from presentation.web.shell import plain
from presentation.web.site import Site


class NoteRows:
    """The rows of a list. `manas` is the one that the list is narrowed to; `path_of_tag` where a tag leads."""

    def __init__(self, site: Site, path_of_tag: Callable[[str], str]) -> None:
        self._site = site
        self._path_of_tag = path_of_tag
        self.manas: Manas | None = None

    def line(self, line: NoteLine) -> Row:
        return (line, self.manas), partial(self._draw_line, line)

    def hit(self, hit: SearchHit) -> Row:
        return (hit.note_id, hit.title, hit.snippet, self.manas), partial(self._draw_hit, hit)

    def _draw_line(self, line: NoteLine) -> Element:
        with ui.element("li").classes("u-note-row") as row:
            with _note_link(line.id), ui.element("span").classes("u-note-name"):
                plain(line.title)
            with ui.element("span").classes("u-note-tags"):
                for tag in line.tags[:3]:
                    self._tag(tag)
                if len(line.tags) > 3:
                    plain(f"+{len(line.tags) - 3}").classes("u-muted u-small")
            plain(day(line.changed_at)).classes("u-muted u-small u-number")
            self._buttons(line.id, line.title)
        return row

    def _draw_hit(self, hit: SearchHit) -> Element:
        with ui.element("li").classes("u-note-row") as row:
            with _note_link(hit.note_id):
                with ui.element("span").classes("u-note-name"):
                    plain(hit.title)
                plain(hit.snippet).classes("u-note-snippet u-muted u-small")
            self._buttons(hit.note_id, hit.title)
        return row

    def _tag(self, tag: str) -> None:
        with ui.element("a").classes("u-chip") as chip:
            plain(f"#{tag}")
        chip.props["href"] = self._path_of_tag(tag)

    def _buttons(self, note_id: str, title: str) -> None:
        manas = self.manas
        if manas is not None:
            self._button(
                "playlist_remove", f"Take {title} out of {manas.name}", lambda: self._take_out(manas, note_id)
            )
        self._button("delete_outline", f"Delete {title}", lambda: self._delete(note_id, title))

    def _button(self, icon: str, label: str, on_click: Callable[[], object]) -> None:
        with (
            ui.element("button")
            .classes("u-icon-button")
            .props("type=button")
            .on("click", on_click, args=[]) as made
        ):
            ui.icon(icon)
        made.props["aria-label"] = made.props["title"] = label

    async def _take_out(self, manas: Manas, note_id: str) -> None:
        await self._site.faces.manases.remove(manas.id, [note_id])
        self._site.changes.tell("manases")

    async def _delete(self, note_id: str, title: str) -> None:
        client = ui.context.client
        if await ask_to_delete(title):
            try:
                await self._site.faces.notes.delete(note_id)
            except NotFound:
                with client:
                    tell("It was deleted already.")
            self._site.changes.tell("notes")


async def ask_to_delete(title: str) -> bool:
    """Whether the note may go."""
    return await confirm(
        "Delete this note?",
        f"“{title[:100]}” goes for good, with what was read in it. If it came from a file, the file stays; importing its "
        "folder again brings the note back only if the file has changed, or with “Bring back notes that I deleted”.",
        "Delete",
    )


def day(at: datetime) -> str:
    """In the time zone of this machine."""
    local = at.astimezone()
    return f"{local.day} {local:%b %Y, %H:%M}"


def _note_link(note_id: str) -> Element:
    link = ui.element("a").classes("u-note-link")
    link.props["href"] = f"/notes/{note_id}"
    return link
