"""Manases: named sets of notes, made, renamed, filled and emptied."""

import asyncio
import json
from functools import partial

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from domain.entities.note import Manas
from domain.errors import UniunError
from presentation.counting import counted
from presentation.web.notes_list import NoteFilter
from presentation.web.notices import tell, tell_error
from presentation.web.parts import button, confirm, dialog, link, link_button, main_button
from presentation.web.rows import Rows
from presentation.web.shell import empty, heading, plain
from presentation.web.site import Site


async def page_manases(site: Site) -> None:
    """All of them."""
    with heading("Manases"):
        link_button("All notes", "/notes").props("flat")
    await ManasesPage(site).draw()


class ManasesPage:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._manases = site.faces.manases
        self._turn = asyncio.Lock()
        """An older reading must not end after a newer."""

    async def draw(self) -> None:
        with ui.element("p").classes("u-muted"):
            plain("A Manas is a named set of notes: what a Gana knows, what a chat or the deck draws on.")
        with ui.element("form").classes("u-row u-wrap") as form:
            self._name = _input("Name of a new Manas", maxlength=200).classes("u-grow")
            main_button("Create", icon="add").props("type=submit")
        # The name as it stood when it was sent: what is typed after that is another one.
        form.on(
            "submit.prevent", self._create, js_handler="(e) => emit(e.target.querySelector('input').value)"
        )
        self._rows = Rows(ui.element("ul").classes("u-list u-note-list").props('aria-label="Manases"'))
        self._none = empty(
            "folder_open", "No Manas yet", "Name one above, then put notes into it by tag or one by one."
        )
        await self._refresh()
        self._site.changes.on("manases", self._refresh)

    async def _refresh(self) -> None:
        async with self._turn:
            manases = await self._manases.list()
            self._rows.show((manas, partial(self._row, manas)) for manas in manases)
            self._none.set_visibility(not manases)

    def _row(self, manas: Manas) -> Element:
        with ui.element("li").classes("u-manas-row u-row u-wrap") as row:
            with ui.element("div").classes("u-grow"):
                with ui.element("h2"):
                    link(manas.name, NoteFilter(manas=manas.id).path)
                plain(counted(manas.note_count, "note")).classes("u-muted u-small")
            button("Notes by tag", icon="sell", on_click=lambda: self._by_tag(manas)).props("flat")
            button("Rename", icon="edit", on_click=lambda: self._rename(manas)).props("flat")
            deleting = button("Delete", icon="delete_outline", on_click=lambda: self._delete(manas)).props(
                "flat"
            )
            deleting.props["aria-label"] = f"Delete {manas.name}"
        return row

    # -- what the user does

    async def _create(self, event: GenericEventArguments) -> None:
        name = str(event.args or "")
        manas = await self._manases.create(name)
        ui.run_javascript(
            f"const box = getHtmlElement({self._name.id}); if (box.value === {json.dumps(name)}) box.value = ''"
        )
        tell(f"“{manas.name[:80]}” is created. Put notes in by tag, or tick it beside a note.")
        self._site.changes.tell("manases")

    def _rename(self, manas: Manas) -> None:
        async def rename() -> None:
            try:
                await self._manases.rename(manas.id, name.value or "")
            except UniunError as error:
                tell_error(error)
                return
            shown.close()
            self._site.changes.tell("manases")

        # The page's, as every dialog here: the row with the button may be drawn anew meanwhile.
        with (
            ui.context.client,
            dialog(f"Rename {manas.name[:80]}") as shown,
            ui.card().classes("u-stack u-dialog"),
        ):
            with ui.element("h2"):
                plain("Rename the Manas")
            name = ui.input("Name", value=manas.name).props("outlined autofocus maxlength=200")
            name.on("keydown.enter", rename)
            with ui.element("div").classes("u-row u-ends"):
                button("Cancel", on_click=shown.close).props("flat")
                main_button("Rename", on_click=rename)

    async def _by_tag(self, manas: Manas) -> None:
        client = ui.context.client
        tags = list((await self._site.faces.notes.tags()).items())[:500]
        if not tags:
            tell("No note has a tag yet.")
            return

        async def change(*, add: bool) -> None:
            if not chosen.value:
                return
            before = manas.note_count
            deed = self._manases.add if add else self._manases.remove
            after = (await deed(manas.id, [], tag=chosen.value)).note_count
            shown.close()
            tell(
                f"{counted(abs(after - before), 'note')} {'put in' if add else 'taken out'}; {manas.name[:80]} has {after:,}."
            )
            self._site.changes.tell("manases")

        with (
            client,
            dialog(f"Notes by tag for {manas.name[:80]}") as shown,
            ui.card().classes("u-stack u-dialog"),
        ):
            with ui.element("h2"):
                plain(f"Notes by tag: {manas.name[:80]}")
            chosen = ui.select(
                {tag: f"#{tag} ({count})" for tag, count in tags}, label="Tag", with_input=True
            )
            chosen.props("outlined").classes("u-grow")
            with ui.element("div").classes("u-row u-ends u-wrap"):
                button("Cancel", on_click=shown.close).props("flat")
                button("Take them out", on_click=lambda: change(add=False))
                main_button("Put them in", on_click=lambda: change(add=True))

    async def _delete(self, manas: Manas) -> None:
        if await confirm(
            "Delete this Manas?",
            f"“{manas.name[:100]}” goes; its notes stay. Ganas and chats that drew on it draw on nothing of it any more.",
            "Delete",
        ):
            await self._manases.delete(manas.id)
            self._site.changes.tell("manases")


def _input(label: str, *, maxlength: int) -> ui.element:
    made = ui.element("input").classes("u-input").props(f"type=text maxlength={maxlength} autocomplete=off")
    made.props["aria-label"] = made.props["placeholder"] = label
    return made
