"""The first minutes: what this is, the model that is being fetched, and three ways to begin."""

from pathlib import Path

from nicegui import ui

from domain.entities.models import CatalogueEntry
from domain.entities.note import ImportProgress, ImportReport
from domain.errors import UniunError
from presentation.counting import counted
from presentation.web.errands import Errand, Tell
from presentation.web.notes_import import draw_problems
from presentation.web.notices import sentence
from presentation.web.parts import button, link, link_button, main_button
from presentation.web.pulls import fraction, pull_words, size
from presentation.web.shell import heading, plain
from presentation.web.site import Site

WHAT_IT_IS = (
    "UNIUN is a private assistant over your own notes: it reads them, answers from them and thinks along, "
    "and everything stays on this machine."
)
_LOOK_S = 0.4
_IMPORT = "first import"


async def is_new(site: Site) -> bool:
    """No notes and no conversations yet."""
    if await site.faces.notes.count():
        return False
    return not await site.faces.chat(None, None).conversations(limit=1)


async def page_welcome(site: Site) -> None:
    """`/welcome`."""
    with heading("Welcome"):
        pass
    draw_welcome(site)


async def greet(site: Site, place: ui.element) -> None:
    """In the empty chat of somebody who has just begun; nothing for everybody else."""
    if await is_new(site):
        place.clear()  # what stands there for everybody else says much the same
        with place:
            draw_welcome(site, title="Welcome")


def draw_welcome(site: Site, title: str = "") -> None:
    """For a page of its own, and for the chat while there is nothing yet."""
    with ui.element("div").classes("u-welcome"):
        if title:
            with ui.element("h2"):
                plain(title)
        with ui.element("p").classes("u-welcome-lead"):
            plain(WHAT_IT_IS)
        _ModelCard(site)
        _Ways(site)
        _Proposals(site)


class _ModelCard:
    """The model that is fetched without being asked; nothing once it is there."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._entry = site.pulls.want_default()
        self._drawn: object = None
        self._line: ui.label | None = None
        self._bar: ui.linear_progress | None = None
        if self._entry is not None:
            self._place = ui.element("section").classes("u-card u-stack").props('aria-label="The model"')
            self._look(self._entry)
            ui.timer(_LOOK_S, lambda: self._look(self._entry))

    def _look(self, entry: CatalogueEntry | None) -> None:
        errand = self._site.pulls.get(entry.name) if entry is not None else None
        if entry is None or errand is None:
            return
        seen = errand.running, errand.error, errand.cancelled
        if seen != self._drawn:
            self._drawn = seen
            self._place.clear()
            with self._place:
                self._draw(entry, errand)
        if self._line is not None and self._bar is not None:
            self._line.text = pull_words(errand.step)
            done = fraction(errand.step)
            self._bar.props(
                add="" if done is not None else "indeterminate",
                remove="indeterminate" if done is not None else "",
            )
            self._bar.value = done or 0

    def _draw(self, entry: CatalogueEntry, errand: Errand) -> None:
        self._line = self._bar = None
        with ui.element("h2"):
            plain("A first language model")
        if errand.error is not None or errand.cancelled:
            why = sentence(errand.error) if errand.error is not None else "Fetching it was stopped."
            with ui.element("p").classes("u-banner u-bad u-preline").props("role=alert"):
                plain(f"{entry.title} is not here yet. {why}")
            with ui.element("div").classes("u-row u-wrap"):
                main_button("Try again", icon="refresh", on_click=lambda: self._again(entry))
                link_button("Other models", "/models")
            return
        if not errand.running:
            with ui.element("p").props("role=status"):
                plain(f"{entry.title} is here. Ask it something.")
            return
        with ui.element("p").classes("u-muted"):
            plain(f"{entry.title} is being fetched ({size(entry.download_bytes)}). {entry.good_for}")
        with ui.element("p").classes("u-muted u-small"):
            plain(f"From: {entry.source}. Licence: {entry.licence}.")
        self._bar = ui.linear_progress(value=0, show_value=False).props(
            'rounded aria-label="Fetching the model"'
        )
        self._line = ui.label("").classes("u-muted u-small u-number")

    def _again(self, entry: CatalogueEntry) -> None:
        self._site.pulls.begin(entry.name)
        self._look(entry)


class _Ways:
    """Import a folder, load the sample notes, or just chat."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._drawn: object = None
        self._own = False
        """Whether it was begun on this page."""
        with ui.element("section").classes("u-stack").props('aria-label="Three ways to begin"'):
            with ui.element("div").classes("u-ways"):
                with _way(
                    "folder_open",
                    "Import a folder",
                    "Notes that are kept as text files (Markdown, .md), as Obsidian keeps them, with their links and tags. "
                    "The files are only read.",
                ):
                    self._folder = ui.input("Folder on this machine", placeholder="~/Notes").props(
                        "outlined dense stack-label"
                    )
                    self._folder.on("keydown.enter", self._import_folder)
                    with ui.element("div").classes("u-row u-wrap"):
                        self._begin = main_button("Import", on_click=self._import_folder)
                        link("or choose files", "/notes/import")
                with _way(
                    "auto_stories",
                    "Load the sample notes",
                    "Forty short notes about clocks, bread, gardens and networks, to try everything out.",
                ):
                    self._samples = button("Load them", on_click=self._import_samples)
                with _way("chat_bubble_outline", "Just chat", "Ask anything. Notes can come later."):
                    button("Ask something", on_click=_to_composer)
            self._state = ui.element("div").classes("u-stack").props("role=status")
        self._look()
        ui.timer(_LOOK_S, self._look)

    def _import_folder(self) -> None:
        told = str(self._folder.value or "").strip()
        if not told:
            self._folder.error = "Write where the folder is."
            # What went wrong before is about another folder.
            self._site.errands.dismiss(_IMPORT)
            self._look()
            return
        self._folder.error = None
        notes = self._site.faces.notes

        async def work(tell: Tell) -> ImportReport:
            return await notes.import_folder(Path(told), tell)

        self._start(work)

    def _import_samples(self) -> None:
        notes = self._site.faces.notes
        self._start(lambda tell: notes.import_samples(tell))

    def _start(self, work: object) -> None:
        self._own = True
        errand = self._site.errands.begin(_IMPORT, work)  # type: ignore[arg-type]
        assert errand.task is not None
        errand.task.add_done_callback(lambda _: self._site.changes.tell("notes"))
        self._look()

    def _look(self) -> None:
        errand = self._site.errands.get(_IMPORT)
        seen = (errand.running, errand.version) if errand is not None else None
        if seen == self._drawn:
            return
        self._drawn = seen
        if errand is None:
            self._state.clear()
            return
        self._begin.set_enabled(not errand.running)
        self._samples.set_enabled(not errand.running)
        self._state.clear()
        with self._state:
            self._draw_state(errand)
        if self._own:
            # It stands below the ways to begin, on most screens out of sight.
            ui.run_javascript(
                f"requestAnimationFrame(() => getHtmlElement({self._state.id})?.scrollIntoView({{ block: 'nearest' }}))"
            )

    def _draw_state(self, errand: Errand) -> None:
        if errand.running:
            step = errand.step if isinstance(errand.step, ImportProgress) else None
            done = step.done / step.total if step is not None and step.total else None
            bar = ui.linear_progress(value=done or 0, show_value=False).props(
                'rounded aria-label="Importing"'
            )
            if done is None:
                bar.props("indeterminate")
            with ui.element("p").classes("u-muted u-small u-number"):
                plain(
                    f"Importing: {step.done:,} of {counted(step.total, 'file')}{', behind an answer' if step.rests else ''}"
                    if step is not None
                    else "Importing…"
                )
        elif errand.error is not None:
            with ui.element("p").classes("u-banner u-bad"):
                plain(sentence(errand.error))
        elif isinstance(errand.result, ImportReport):
            report = errand.result
            count = report.created + report.updated + report.unchanged
            with ui.element("p").classes("u-banner"):
                plain(f"{counted(count, 'note is', 'notes are')} here now. ")
                plain("UNIUN reads them in the background, and you can ask already.")
            draw_problems(report.problems)
            with ui.element("div").classes("u-row u-wrap u-after"):
                button("Ask about them", on_click=_to_composer)
                link_button("See the notes", "/notes")
                link_button("Open the deck", "/deck")


class _Proposals:
    """Larger models that this machine can hold; nothing where their source does not answer."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._place = ui.element("div")
        ui.timer(0.1, self._ask, once=True)

    async def _ask(self) -> None:
        try:
            entries = await self._site.faces.models.proposals()
        except UniunError:
            return  # nothing to propose, and nothing that the user asked for
        if not entries:
            return
        free = self._site.faces.models.memory().total_bytes
        with self._place, ui.element("section").classes("u-card u-stack").props('aria-label="Larger models"'):
            with ui.element("h2"):
                plain("Larger models answer better")
            with ui.element("p").classes("u-muted"):
                plain(f"This machine has {size(free)} of memory. These fit:")
            with ui.element("ul").classes("u-list"):
                for entry in entries:
                    self._draw(entry)

    def _draw(self, entry: CatalogueEntry) -> None:
        with ui.element("li").classes("u-row u-spread u-wrap u-proposal"):
            with ui.element("div").classes("u-grow"):
                with ui.element("h3"):
                    plain(entry.title)
                with ui.element("p").classes("u-muted u-small u-number"):
                    plain(
                        f"{entry.good_for} Needs {size(entry.memory_bytes)} of memory, {size(entry.download_bytes)} to fetch."
                    )
            fetch = button("Fetch", icon="download", on_click=lambda: self._fetch(entry))
            fetch.props["aria-label"] = f"Fetch {entry.title}"

    def _fetch(self, entry: CatalogueEntry) -> None:
        self._site.pulls.begin(entry.name)
        ui.navigate.to("/models")


def _to_composer() -> None:
    ui.run_javascript(
        "const box = document.querySelector('.u-composer textarea'); box ? box.focus() : location.assign('/')"
    )


def _way(icon: str, title: str, text: str) -> ui.element:
    with ui.element("section").classes("u-card u-way") as card:
        ui.icon(icon)
        with ui.element("h2"):
            plain(title)
        with ui.element("p").classes("u-muted"):
            plain(text)
    return card
