"""The models on this machine, and those that can be fetched."""

from nicegui import ui

from domain.entities.models import CatalogueEntry, InstalledModel, Memory
from domain.entities.scheduler import SchedulerSnapshot
from domain.errors import UniunError
from domain.usecases.models import ModelShelf
from presentation.web.model_adding import draw_adding
from presentation.web.model_words import fit_words, speed_words, switch_words
from presentation.web.notices import sentence, tell, tell_error
from presentation.web.parts import button, chip, confirm
from presentation.web.pulls import fraction, pull_words, size
from presentation.web.shell import empty, heading, plain
from presentation.web.site import Site

_LOOK_S = 2.0
_PROGRESS_S = 0.4
_WITHOUT_CATALOGUE = 1.2
"""Memory that a model of unknown needs is said to take, per byte of its files."""
_SWITCH = "switch/"


async def page_models(site: Site) -> None:
    """`/models`."""
    with heading("Models"):
        pass
    shelf = ModelsShelf(site)
    site.changes.on("models", shelf.look)
    ui.timer(_LOOK_S, shelf.look)
    ui.timer(_PROGRESS_S, shelf.show_progress)
    draw_adding(site)


class ModelsShelf:
    """Both lists, drawn again when something in them has changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._models = site.faces.models
        self._client = ui.context.client
        self._drawn: object = None
        self._speeds: dict[str, str] = {}
        """How slow a model would be, in words; empty where it would not."""
        self._lines: dict[str, ui.label] = {}
        self._bars: dict[str, ui.linear_progress] = {}
        self._place = ui.element("div").classes("u-section")
        self.look()

    def look(self) -> None:
        """Progress is shown as it comes; everything else when it is another than before."""
        shelf, snapshot = self._models.shelf(), self._site.faces.scheduler.snapshot()
        memory = self._models.memory()
        names = [model.name for model in shelf.installed] + [entry.name for entry in shelf.available]
        states = tuple(self._pull_state(name) for name in names)
        free = round(memory.free_bytes / 1e8)
        runs = self._site.faces.scheduler.history().runs
        speeds = {name: speed_words(name, shelf, memory, runs) for name in names}
        drawn = shelf, snapshot.resident, snapshot.loading, states, free, speeds
        if drawn != self._drawn:
            self._drawn = drawn
            self._speeds = speeds
            self._draw(shelf, snapshot, memory)
        self.show_progress()

    def _pull_state(self, name: str) -> tuple[bool, bool, str] | None:
        errand = self._site.pulls.get(name)
        return (errand.running, errand.cancelled, str(errand.error or "")) if errand is not None else None

    def show_progress(self) -> None:
        """Of what is being fetched or loaded."""
        snapshot = self._site.faces.scheduler.snapshot()
        for name, line in self._lines.items():
            errand = self._site.pulls.get(name)
            if errand is not None and errand.running:
                line.text = pull_words(errand.step)
                done = fraction(errand.step)
                self._bars[name].props(
                    add="indeterminate" if done is None else "",
                    remove="" if done is None else "indeterminate",
                )
                self._bars[name].value = done or 0
            else:
                asked = self._site.errands.get(_SWITCH + name)
                line.text = switch_words(name, snapshot, asked=asked is not None and asked.running)

    def _draw(self, shelf: ModelShelf, snapshot: SchedulerSnapshot, memory: Memory) -> None:
        self._place.clear()
        self._lines, self._bars = {}, {}
        with self._place:
            with ui.element("h2"):
                plain("Installed")
            if not shelf.installed:
                with empty(
                    "memory",
                    "No model is installed",
                    "Fetch one below; the first is small and comes within a minute.",
                ):
                    pass
            with ui.element("ul").classes("u-cards"):
                for model in shelf.installed:
                    self._draw_installed(model, shelf, snapshot, memory)
            with ui.element("h2"):
                plain("To fetch")
            with ui.element("ul").classes("u-cards"):
                for entry in shelf.available:
                    self._draw_available(entry, memory)
                if not shelf.available:
                    with ui.element("li").classes("u-muted"):
                        plain("Every model of the catalogue is installed.")

    def _draw_installed(
        self, model: InstalledModel, shelf: ModelShelf, snapshot: SchedulerSnapshot, memory: Memory
    ) -> None:
        resident = snapshot.resident == model.name
        default = model.name == shelf.default
        with ui.element("li").classes("u-card u-model"):
            with ui.element("div").classes("u-gana-head"):
                with ui.element("h3"):
                    plain(model.name)
                if resident:
                    chip("loaded now", kind="good")
                if default:
                    chip("in use")
            known = shelf.memory.get(model.name)
            needed = known or int(model.size_bytes * _WITHOUT_CATALOGUE)
            words, fits = fit_words(needed, memory, about=known is None)
            self._facts(
                "" if resident else words,
                f"{size(model.size_bytes)} on disk",
                f"holds {model.context_tokens:,} tokens" if model.context_tokens else "",
                f"licence {model.licence}",
                model.source,
            )
            if not fits and not resident:
                _too_large()
            self._speed(model.name)
            self._line(model.name)
            with ui.element("div").classes("u-row u-wrap"):
                if not (resident and default):
                    button("Use", on_click=lambda: self._use(model.name)).props(
                        f'aria-label="Use {model.name}"'
                    )
                button("Remove", on_click=lambda: self._remove(model)).props(
                    f'flat aria-label="Remove {model.name}"'
                )

    def _draw_available(self, entry: CatalogueEntry, memory: Memory) -> None:
        errand = self._site.pulls.get(entry.name)
        running = errand is not None and errand.running
        with ui.element("li").classes("u-card u-model"):
            with ui.element("div").classes("u-gana-head"), ui.element("h3"):
                plain(entry.title)
            with ui.element("p"):
                plain(entry.good_for)
            words, fits = fit_words(entry.memory_bytes, memory)
            self._facts(
                words, f"{size(entry.download_bytes)} to fetch", f"licence {entry.licence}", entry.source
            )
            if not fits:
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

    def _speed(self, name: str) -> None:
        if words := self._speeds.get(name):
            with ui.element("p").classes("u-muted u-small"):
                plain(words)

    def _facts(self, *facts: str) -> None:
        with ui.element("div").classes("u-model-facts u-number"):
            for fact in facts:
                if fact:
                    plain(fact)

    def _line(self, name: str) -> None:
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
            f"{size(model.size_bytes)} become free. It can be fetched again; a model of your own is only forgotten, "
            "its files stay."
        )
        if not await confirm(f"Remove {model.name}?", asked, "Remove"):
            return
        with self._client:
            try:
                freed = self._models.remove(model.name)
            except UniunError as error:
                tell_error(error)
                return
            tell(f"{model.name} is removed; {size(freed)} are free again.")
            self._site.changes.tell("models")


def _too_large() -> None:
    with ui.element("p").classes("u-banner u-warn u-small"):
        plain(
            "It does not fit into the memory that is free now: close other programs first, or everything becomes slow."
        )
