"""The models on this machine, and those that can be fetched."""

from collections.abc import Iterator
from functools import partial

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from domain.entities.models import CatalogueEntry, InstalledModel
from domain.entities.scheduler import SchedulerSnapshot
from domain.errors import UniunError
from domain.usecases.models import ModelShelf
from presentation.web.model_adding import draw_adding
from presentation.web.model_words import (
    fit_words,
    holds_words,
    server_words,
    speed_words,
    switch_words,
    without_words,
)
from presentation.web.notices import sentence, tell, tell_error
from presentation.web.parts import button, chip, confirm
from presentation.web.pulls import fraction, pull_words, size
from presentation.web.rows import Row, Rows
from presentation.web.shell import empty, heading, plain
from presentation.web.site import Site

_LOOK_S = 2.0
_PROGRESS_S = 0.4
_WITHOUT_CATALOGUE = 1.2
"""Memory that a model of unknown needs is said to take, per byte of its files."""
_SWITCH = "switch/"
_INTRO = (
    "A model is what writes the answers. The one in use answers your chats and does all other work. A larger one "
    "answers better, needs more memory and takes longer."
)


async def page_models(site: Site) -> None:
    """`/models`."""
    with heading("Models"):
        pass
    with ui.element("p").classes("u-muted"):
        plain(_INTRO)
    shelf = ModelsShelf(site)
    site.changes.on("models", shelf.look)
    ui.timer(_LOOK_S, shelf.look)
    ui.timer(_PROGRESS_S, shelf.show_progress)
    draw_adding(site)


class ModelsShelf:
    """Both lists. A model is drawn again when it has changed; what moves by itself, as memory and progress do, is only
    written anew."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._models = site.faces.models
        self._client = ui.context.client
        self._fits: dict[str, TextElement] = {}
        self._speeds: dict[str, TextElement] = {}
        """How slow a model would be; hidden where it would not."""
        self._lines: dict[str, ui.label] = {}
        self._bars: dict[str, ui.linear_progress] = {}
        with ui.element("div").classes("u-section"):
            with ui.element("h2"):
                plain("Installed")
            self._none = empty(
                "memory",
                "No model is installed",
                "Fetch one below; the first is small and comes within a minute.",
            )
            self._installed = Rows(ui.element("ul").classes("u-cards"))
            with ui.element("h2"):
                plain("To fetch")
            self._available = Rows(ui.element("ul").classes("u-cards"))
        self.look()

    def look(self) -> None:
        """Shows what is now."""
        shelf, snapshot = self._models.shelf(), self._site.faces.scheduler.snapshot()
        memory = self._models.memory()
        fits: dict[str, tuple[str, bool]] = {}
        for model in shelf.installed:
            if model.remote is not None:
                fits[model.name] = server_words(model.remote), True
                continue
            known = shelf.memory.get(model.name)
            needed = known or int(model.size_bytes * _WITHOUT_CATALOGUE)
            fits[model.name] = fit_words(needed, memory, about=known is None)
        for entry in shelf.available:
            fits[entry.name] = fit_words(entry.memory_bytes, memory)
        self._none.set_visibility(not shelf.installed)
        # First the one that rows only leave: a model that has come is in both for a moment.
        self._available.show(self._rows_available(shelf, fits))
        self._installed.show(self._rows_installed(shelf, snapshot, fits))
        runs = self._site.faces.scheduler.history().runs
        for parts in (self._fits, self._speeds, self._lines, self._bars):
            for gone in set(parts) - set(fits):
                del parts[gone]
        remote = {model.name for model in shelf.installed if model.remote is not None}
        for name, (words, _) in fits.items():
            self._fits[name].text = words
            self._fits[name].set_visibility(snapshot.resident != name or name in remote)
            slow = speed_words(name, shelf, memory, runs)
            self._speeds[name].text = slow
            self._speeds[name].set_visibility(bool(slow))
        self.show_progress()

    def _rows_installed(
        self, shelf: ModelShelf, snapshot: SchedulerSnapshot, fits: dict[str, tuple[str, bool]]
    ) -> Iterator[Row]:
        for model in shelf.installed:
            resident, default = snapshot.resident == model.name, model.name == shelf.default
            too_large = not fits[model.name][1] and not resident
            said = (model, resident, default, too_large, self._pull_state(model.name))
            yield said, partial(self._draw_installed, *said[:4])

    def _rows_available(self, shelf: ModelShelf, fits: dict[str, tuple[str, bool]]) -> Iterator[Row]:
        if not shelf.available:
            yield "none", _draw_all_installed
        for entry in shelf.available:
            said = (entry, not fits[entry.name][1], self._pull_state(entry.name))
            yield said, partial(self._draw_available, *said[:2])

    def _pull_state(self, name: str) -> tuple[bool, bool, str] | None:
        errand = self._site.pulls.get(name)
        return (errand.running, errand.cancelled, str(errand.error or "")) if errand is not None else None

    def show_progress(self) -> None:
        """Of what is being fetched or loaded."""
        snapshot = self._site.faces.scheduler.snapshot()
        for name, line in self._lines.items():
            errand = self._site.pulls.get(name)
            bar = self._bars.get(name)
            if errand is not None and errand.running and bar is not None:
                line.text = pull_words(errand.step)
                done = fraction(errand.step)
                bar.props(
                    add="indeterminate" if done is None else "",
                    remove="" if done is None else "indeterminate",
                )
                bar.value = done or 0
            else:
                asked = self._site.errands.get(_SWITCH + name)
                line.text = switch_words(name, snapshot, asked=asked is not None and asked.running)

    def _draw_installed(
        self, model: InstalledModel, resident: bool, default: bool, too_large: bool
    ) -> Element:
        remote = model.remote is not None
        with ui.element("li").classes("u-card u-model") as row:
            with ui.element("div").classes("u-gana-head"):
                with ui.element("h3"):
                    plain(model.name)
                if default:
                    chip("in use", kind="good")
                if resident and not remote:
                    chip("loaded now")
            self._facts(
                model.name,
                "" if remote else f"{size(model.size_bytes)} on disk",
                holds_words(model.context_tokens),
                f"licence {model.licence}" if model.licence != "unknown" else "",
                "" if remote else model.source,
            )
            if too_large:
                _too_large()
            self._speed(model.name)
            self._line(model.name)
            with ui.element("div").classes("u-row u-wrap"):
                if not default:
                    button("Use", on_click=lambda: self._use(model.name)).props(
                        f'aria-label="Use {model.name}"'
                    )
                elif not resident and not remote:  # it would be loaded for the next question anyway
                    button("Load now", on_click=lambda: self._use(model.name)).props(
                        f'aria-label="Load now: {model.name}"'
                    )
                button("Remove", on_click=lambda: self._remove(model)).props(
                    f'flat aria-label="Remove {model.name}"'
                )
        return row

    def _draw_available(self, entry: CatalogueEntry, too_large: bool) -> Element:
        errand = self._site.pulls.get(entry.name)
        running = errand is not None and errand.running
        with ui.element("li").classes("u-card u-model") as row:
            with ui.element("div").classes("u-gana-head"), ui.element("h3"):
                plain(entry.title)
            with ui.element("p"):
                plain(entry.good_for)
            self._facts(
                entry.name, f"{size(entry.download_bytes)} to fetch", f"licence {entry.licence}", entry.source
            )
            if too_large:
                _too_large()
            self._speed(entry.name)
            if errand is not None and not running and errand.error is not None:
                with ui.element("p").classes("u-banner u-bad u-preline").props("role=alert"):
                    plain(sentence(errand.error))
            self._line(entry.name)
            with ui.element("div").classes("u-row"):
                if running:
                    button("Cancel", on_click=lambda: self._site.pulls.cancel(entry.name)).props(
                        f'aria-label="Cancel fetching {entry.title}"'
                    )
                else:
                    begun = errand is not None and errand.step is not None and errand.step.done_bytes > 0
                    failed = errand is not None and errand.error is not None
                    word = "Go on fetching" if begun else "Try again" if failed else "Fetch"
                    button(word, icon="download", on_click=lambda: self._pull(entry.name)).props(
                        f'aria-label="{word} {entry.title}"'
                    )
        return row

    def _speed(self, name: str) -> None:
        self._speeds[name] = TextElement(tag="p", text="").classes("u-muted u-small")

    def _facts(self, name: str, *facts: str) -> None:
        with ui.element("div").classes("u-model-facts u-number"):
            self._fits[name] = plain("")
            for fact in facts:
                if fact:
                    plain(fact)

    def _line(self, name: str) -> None:
        self._bars.pop(name, None)
        errand = self._site.pulls.get(name)
        if errand is not None and errand.running:
            self._bars[name] = (
                ui.linear_progress(value=0, show_value=False)
                .props('rounded aria-label="Fetching"')
                .classes("u-bar")
            )
        self._lines[name] = ui.label("").classes("u-muted u-small u-number").props("aria-live=off")

    def _pull(self, name: str) -> None:
        self._site.pulls.begin(name)
        self.look()

    def _use(self, name: str) -> None:
        try:
            self._models.use(name)
        except UniunError as error:
            tell_error(error)
            return
        scheduler = self._site.faces.scheduler
        for other in self._lines:
            if other != name:
                self._site.errands.cancel(_SWITCH + other)
        errand = self._site.errands.begin(_SWITCH + name, lambda say: scheduler.switch_model(name))
        assert errand.task is not None

        def done(_: object) -> None:
            if errand.error is not None:
                self._client.safe_invoke(lambda: tell_error(errand.error or RuntimeError()))

        errand.task.add_done_callback(done)
        self._site.changes.tell("models")  # last: it draws the button anew that this was called by

    async def _remove(self, model: InstalledModel) -> None:
        asked = (
            "UNIUN forgets the server. Nothing is deleted there."
            if model.remote is not None
            else f"{size(model.size_bytes)} become free. It can be fetched again; a model of your own is only forgotten, "
            "its files stay."
        )
        if without := without_words(model.name, self._models.shelf()):
            asked = f"{without} {asked}"
        if not await confirm(f"Remove {model.name}?", asked, "Remove"):
            return
        with self._client:
            try:
                freed = self._models.remove(model.name)
            except UniunError as error:
                tell_error(error)
                return
            tell(f"{model.name} is removed{f'; {size(freed)} are free again' if freed else ''}.")
            self._site.changes.tell("models")


def _draw_all_installed() -> Element:
    with ui.element("li").classes("u-muted") as row:
        plain("Every model of the catalogue is installed.")
    return row


def _too_large() -> None:
    with ui.element("p").classes("u-banner u-warn u-small"):
        plain(
            "It does not fit into the memory that is free now: close other programs first, or everything becomes slow."
        )
