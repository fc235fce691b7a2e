"""The list of notes, and the fields that narrow it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlencode

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement
from nicegui.events import GenericEventArguments

from domain.entities.note import SearchHit, SearchMode, SearchResult
from domain.errors import UniunError
from presentation.counting import counted
from presentation.web.notes_rows import NoteRows
from presentation.web.notices import sentence
from presentation.web.parts import button
from presentation.web.rows import Rows
from presentation.web.shell import empty, plain
from presentation.web.site import Site

PAGE = 50
MOST_HITS = 50
WAITING_S = 3.0
_MOST_TAGS = 500


@dataclass(frozen=True)
class NoteFilter:
    """What is asked for. `manas` is an id."""

    text: str = ""
    tag: str = ""
    manas: str = ""
    start: int = 0

    @property
    def path(self) -> str:
        said = {"q": self.text, "tag": self.tag, "manas": self.manas, "start": self.start or ""}
        query = urlencode({key: value for key, value in said.items() if value})
        return f"/notes?{query}" if query else "/notes"


class Drawable(Protocol):
    def draw(self) -> None: ...


class NotesList:
    """Draws one page of notes, or the best hits of a search."""

    def __init__(self, site: Site, wanted: NoteFilter, none_at_all: Drawable) -> None:
        self._site = site
        self._notes = site.faces.notes
        self._wanted = wanted
        self._none_at_all = none_at_all
        self._rows = NoteRows(site, lambda tag: NoteFilter(tag=tag).path)
        self._compared: NoteFilter | None = None
        """What was asked for when meanings were compared last; none once something else is shown."""
        self._drawn_below: object = None
        self._round = 0
        """Of the search that was asked for last; what an earlier one finds is thrown away."""

    async def draw(self) -> None:
        tags, manases = await asyncio.gather(self._notes.tags(), self._site.faces.manases.list())
        self._manases = {manas.id: manas for manas in manases}
        if self._wanted.manas and self._wanted.manas not in self._manases:
            self._wanted = replace(self._wanted, manas="")
        with (
            ui.element("div")
            .classes("u-note-filters")
            .props('role=search aria-label="Notes"') as self._filters
        ):
            search = (
                ui.element("input").classes("u-input u-grow").props("type=search maxlength=500 data-search")
            )
            search.props["placeholder"] = search.props["aria-label"] = "Search notes by words and meaning"
            search.props["defaultValue"] = self._wanted.text
            search.on(
                "input",
                self._typed,
                throttle=0.25,
                leading_events=False,
                js_handler="(e) => emit(e.target.value)",
            )
            self._select(
                "Tag", "All tags", _tag_choices(tags, self._wanted.tag), self._wanted.tag, self._use_tag
            )
            choices = [(manas.id, f"{manas.name} ({manas.note_count})") for manas in manases]
            self._select("Manas", "All Manases", choices, self._wanted.manas, self._use_manas)
        with ui.element("p").classes("u-muted u-small").props("role=status aria-live=polite"):
            self._said = plain("")
        self._list = Rows(ui.element("ul").classes("u-list u-note-list").props('aria-label="Notes"'))
        with ui.element("section").classes("u-stack") as self._near_place:
            with ui.element("h2").classes("u-near"):
                plain("Close in meaning")
            self._near = Rows(
                ui.element("ul").classes("u-list u-note-list").props('aria-label="Close in meaning"')
            )
        self._near_place.set_visibility(False)
        self._below = ui.element("div").classes("u-row u-between")
        await self._refresh()
        self._site.changes.on("notes", self._refresh)
        self._site.changes.on("manases", self._refresh)

    def _select(
        self,
        label: str,
        everything: str,
        choices: Sequence[tuple[str, str]],
        chosen: str,
        choose: Callable[[GenericEventArguments], object],
    ) -> None:
        with (
            ui.element("select")
            .classes("u-select")
            .on("change", choose, js_handler="(e) => emit(e.target.value)") as select
        ):
            select.props["aria-label"] = label
            for value, shown in (("", everything), *choices):
                option = TextElement(tag="option", text=shown)
                option.props["value"] = value
                if value == chosen:
                    option.props("selected")

    # -- what the user asks for

    async def _typed(self, event: GenericEventArguments) -> None:
        await self._want(replace(self._wanted, text=str(event.args or "")[:500], start=0))

    async def _use_tag(self, event: GenericEventArguments) -> None:
        await self._want(replace(self._wanted, tag=str(event.args or "")[:100], start=0))

    async def _use_manas(self, event: GenericEventArguments) -> None:
        await self._want(replace(self._wanted, manas=str(event.args or "")[:200], start=0))

    async def _want(self, wanted: NoteFilter) -> None:
        self._wanted = wanted
        ui.navigate.history.replace(wanted.path)
        await self._refresh()

    # -- what is shown

    async def _refresh(self) -> None:
        self._round += 1
        this_round = self._round
        self._rows.manas = self._manases.get(self._wanted.manas)
        try:
            if self._wanted.text.strip():
                await self._search(this_round)
            else:
                await self._show_page(this_round)
        except UniunError as error:
            if this_round == self._round:
                self._failed(sentence(error))

    async def _show_page(self, this_round: int) -> None:
        wanted = self._wanted
        scope = {"tag": wanted.tag or None, "manas": wanted.manas or None}
        lines, total = await asyncio.gather(
            self._notes.list(**scope, limit=PAGE, offset=wanted.start), self._notes.count(**scope)
        )
        if this_round != self._round:
            return
        if not lines and total:
            await self._want(replace(wanted, start=0))
            return
        none_at_all = not lines and not (wanted.tag or wanted.manas)
        self._filters.set_visibility(not none_at_all)
        end = wanted.start + len(lines)
        self._said.text = (
            f"{wanted.start + 1:,}–{end:,} of {total:,}" if total > len(lines) else counted(total, "note")
        )
        self._list.show(self._rows.line(line) for line in lines)
        self._show_near(())
        self._compared = None
        if none_at_all:
            self._said.text = ""
            self._draw_below("none at all", self._none_at_all.draw)
        elif not lines:
            self._draw_nothing()
        elif total > PAGE:
            last = end >= total
            self._draw_below(("pages", wanted, last), lambda: self._draw_pages(wanted.start, last=last))
        else:
            self._draw_below(None, lambda: None)

    async def _search(self, this_round: int) -> None:
        """Words at once; meaning, which may have to load its model first, when it is there."""
        words = (await self._find("words")).hits
        if this_round != self._round:
            return
        self._list.show(self._rows.hit(hit) for hit in words)
        self._said.text = f"{_with_words(words)}; comparing meanings…"
        if self._compared != self._wanted:
            self._compared = self._wanted
            self._show_near(())
            self._draw_below(None, lambda: None)
        await self._compare(words, this_round)

    async def _compare(self, words: Sequence[SearchHit], this_round: int) -> None:
        """Again and again while notes wait for their vectors."""
        found = _with_words(words)
        try:
            meaning = await self._find("meaning")
        except UniunError as error:
            if this_round == self._round:
                self._said.text = f"{found}. Meanings could not be compared: {sentence(error)}"
                if not words:
                    self._draw_nothing()
            return
        if this_round != self._round:
            return
        known = {hit.note_id for hit in words}
        near = [hit for hit in meaning.hits if hit.note_id not in known]
        later = (
            f"; {counted(meaning.waiting, 'note')} cannot be compared by meaning yet"
            if meaning.waiting
            else ""
        )
        self._said.text = f"{found}{_near_words(len(near), len(words))}{later}"
        self._show_near(near)
        if not words and not near:
            self._draw_nothing(waiting=meaning.waiting > 0)
        else:
            self._draw_below(None, lambda: None)
        if meaning.waiting:
            with self._near_place:
                ui.timer(WAITING_S, lambda: self._compare(words, this_round), once=True)

    def _show_near(self, near: Sequence[SearchHit]) -> None:
        self._near_place.set_visibility(bool(near))
        self._near.show(self._rows.hit(hit) for hit in near)

    async def _find(self, mode: SearchMode) -> SearchResult:
        wanted = self._wanted
        return await self._notes.search(
            wanted.text, mode=mode, tag=wanted.tag or None, manas=wanted.manas or None, limit=MOST_HITS
        )

    def _draw_below(self, what: object, draw: Callable[[], None]) -> None:
        """Unless it stands there already."""
        if what != self._drawn_below:
            self._drawn_below = what
            self._below.clear()
            with self._below:
                draw()

    def _draw_nothing(self, *, waiting: bool = False) -> None:
        """`waiting`: some notes have not been compared."""
        narrowed = bool(self._wanted.tag or self._wanted.manas)
        self._draw_below(("nothing", waiting, narrowed), lambda: _nothing(waiting=waiting, narrowed=narrowed))

    def _failed(self, why: str) -> None:
        def draw() -> None:
            with ui.element("div").classes("u-banner u-bad u-row u-grow").props("role=alert"):
                plain(why).classes("u-grow")
                button("Try again", on_click=self._refresh)

        self._list.show(())
        self._show_near(())
        self._said.text = ""
        self._compared = None
        self._draw_below(("failed", why), draw)

    def _draw_pages(self, start: int, *, last: bool) -> None:
        self._turn("Newer", "chevron_left", start - PAGE, start > 0)
        self._turn("Older", "chevron_right", start + PAGE, not last)

    def _turn(self, text: str, icon: str, start: int, possible: bool) -> None:
        turned = button(
            text, icon=icon, on_click=lambda: self._want(replace(self._wanted, start=max(0, start)))
        )
        turned.set_enabled(possible)


def _tag_choices(tags: dict[str, int], chosen: str) -> list[tuple[str, str]]:
    shown = [(tag, f"#{tag} ({count})") for tag, count in list(tags.items())[:_MOST_TAGS]]
    if chosen and chosen not in dict(shown):
        shown.append((chosen, f"#{chosen}"))
    return shown


def _nothing(*, waiting: bool, narrowed: bool) -> None:
    if waiting:
        empty(
            "search",
            "Nothing found yet",
            "What is close in meaning appears here when more notes can be compared.",
        )
    elif narrowed:
        empty("search_off", "Nothing found", "Try other words, or look in all tags and Manases.")
    else:
        empty("search_off", "Nothing found", "Try other words.")


def _with_words(hits: Sequence[SearchHit]) -> str:
    return f"{counted(len(hits), 'note')} with these words" if hits else "No note has these words"


def _near_words(near: int, words: int) -> str:
    if not near:
        return ""
    return f", {near} more close in meaning" if words else f"; {counted(near, 'is', 'are')} close in meaning"
