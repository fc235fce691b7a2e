"""Files become notes: from a folder of this machine, or through the browser."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

from nicegui import ui
from nicegui.events import GenericEventArguments, MultiUploadEventArguments

from domain.entities.note import ImportCopy, ImportProblem, ImportProgress, ImportReport, UndoneImport
from domain.errors import InvalidRequest
from presentation.counting import counted
from presentation.web.errands import Errand, Tell
from presentation.web.notices import sentence, tell_error
from presentation.web.parts import button, chip, confirm, link, link_button, main_button
from presentation.web.shell import heading, plain
from presentation.web.site import Site

KEY = "import"
UPLOAD_BYTES = 100_000_000
UPLOAD_FILES = 1_000
LOOK_S = 0.3
_MOST_PROBLEMS, _MOST_COPIES, _MOST_NAMES = 300, 30, 3
_DROP = """
<div class="u-drop">
  <template v-if="props.isUploading"><q-spinner size="20px"></q-spinner><span role="status">Sending… {{ props.uploadProgressLabel }}</span></template>
  <template v-else><span>Drop files here, or</span>
  <q-btn no-caps outline label="Choose files" type="button" @click="props.pickFiles"></q-btn></template>
  <span style="display: none"><q-uploader-add-trigger></q-uploader-add-trigger></span>
</div>"""
RESTS = "An answer goes first. The import goes on behind it, and in half a minute at the latest."
Import = Callable[[Callable[[ImportProgress], None]], Awaitable[ImportReport | UndoneImport]]


_NOT_TAKEN: Mapping[str, Callable[[str], str]] = {
    "accept": lambda files: f"{files} not taken: only .md, .markdown and .zip are.",
    "max-files": lambda files: (
        f"{files} not taken: {UPLOAD_FILES:,} are the most at once. Send the rest afterwards, or all in one .zip."
    ),
    "size": lambda files: (
        f"{files} not taken: {UPLOAD_BYTES // 1_000_000} MB are the most at once. Send the rest afterwards, or import the folder."
    ),
}
"""By the upload's name of what a file does not keep to; each limit of size is one of these."""


def _kinds(told: object) -> dict[str, list[str]]:
    """Names of files by what they do not keep to; a browser may tell anything."""
    kinds: dict[str, list[str]] = {}
    for one in told if isinstance(told, list) else ():
        match one:
            case [str() as reason, str() as name]:
                kinds.setdefault(reason if reason in _NOT_TAKEN else "size", []).append(name)
    return kinds


def _named(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    first = [f"“{_printable(name[:80])}”" for name in names[:_MOST_NAMES]]
    more = len(names) - len(first)
    if more:
        return f"{', '.join(first)} and {counted(more, 'more file', 'more files')}"
    return f"{', '.join(first[:-1])} and {first[-1]}" if len(first) > 1 else first[0]


async def page_import(site: Site) -> None:
    """One import at a time, whichever page began it; it goes on when the page is closed."""
    with heading("Import notes"):
        link_button("All notes", "/notes").props("flat")
    ImportPage(site).draw()


def begin_import(site: Site, work: Import) -> None:
    """Raises `InvalidRequest` while another import runs."""
    running = site.errands.get(KEY)
    if running is not None and running.running:
        raise InvalidRequest("An import is running. Wait for it, or cancel it.")

    async def run(say: Tell) -> ImportReport | UndoneImport:
        added: dict[str, str] = {}

        def tell(step: ImportProgress) -> None:
            added.update(step.added)
            say(step.model_copy(update={"added": added}))  # whoever looks sees the last step only

        try:
            return await work(tell)
        finally:
            site.changes.tell("notes")

    site.errands.begin(KEY, run)


class ImportPage:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._notes = site.faces.notes
        self._seen: tuple[Errand | None, int] | None = None
        self._drawn: Errand | None = None
        self._refused_now = False
        self._advance: Callable[[object], None] = lambda step: None
        """Shows one more step of the import that is drawn."""

    def draw(self) -> None:
        with ui.element("div").classes("u-stack").props("role=status aria-live=polite") as self._state:
            pass
        with ui.element("div").classes("u-stack") as self._ways:
            with ui.element("p").classes("u-muted"):
                plain(
                    "Markdown files (.md) become notes, with their front matter, tags and [[links]]; an Obsidian vault works. "
                    "The files are only read. Importing again brings changed notes up to date."
                )
            if _is_this_machine():
                self._draw_folder()
            self._draw_upload()
            self._draw_samples()
        self._look()
        ui.timer(LOOK_S, self._look)

    def _draw_folder(self) -> None:
        with ui.element("section").classes("u-card u-stack"):
            with ui.element("h2"):
                plain("A folder on this computer")
            with ui.element("div").classes("u-row u-wrap"):
                self._folder = ui.input(placeholder="~/Notes").props(
                    "outlined dense maxlength=4000 autocomplete=off"
                )
                self._folder.props["aria-label"] = "Path of the folder"
                self._folder.classes("u-grow").on("keydown.enter", self._import_folder)
                main_button("Import folder", on_click=self._import_folder)
            self._deleted_too = ui.checkbox("Bring back notes that I deleted")

    def _draw_upload(self) -> None:
        with ui.element("section").classes("u-card u-stack"):
            with ui.element("h2"):
                plain("Files, or a .zip of a folder")
            with ui.element("p").classes("u-muted u-small"):
                plain(
                    f"At most {UPLOAD_BYTES // 1_000_000} MB and {UPLOAD_FILES:,} files at once. They are not kept, only their notes."
                )
            self._not_taken = ui.element("div").classes("u-banner u-bad").props("role=alert")
            self._not_taken.set_visibility(False)
            self._upload = ui.upload(
                multiple=True,
                auto_upload=True,
                max_total_size=UPLOAD_BYTES,
                max_files=UPLOAD_FILES,
                on_multi_upload=self._import_upload,
            )
            self._upload.props('accept=".md,.markdown,.zip" flat').classes("u-upload")
            self._upload.add_slot("header", _DROP)
            self._upload.on(
                "rejected",
                self._say_not_taken,
                js_handler="(files) => emit(files.map((one) => [one.failedPropValidation, one.file.name]))",
            )
            self._upload.on("added", self._taken, args=[])
            self._upload.on(
                "failed",
                lambda: tell_error(InvalidRequest("The files could not be sent. Try again.")),
                args=[],
            )
            # In the browser: asked for from here while the answer is on its way, it would abort what has been sent.
            self._upload.on("finish", js_handler=f"() => runMethod({self._upload.id}, 'reset', [])")

    def _say_not_taken(self, event: GenericEventArguments) -> None:
        """Some of what was dropped stays behind, while the rest is imported."""
        self._refused_now = True
        kinds = _kinds(event.args)
        self._not_taken.clear()
        with self._not_taken:
            plain(" ".join(_NOT_TAKEN[kind](_named(names)) for kind, names in kinds.items()))
        self._not_taken.set_visibility(bool(kinds))

    def _taken(self) -> None:
        """What was left behind of the same drop was told just before."""
        if not self._refused_now:
            self._not_taken.set_visibility(False)
        self._refused_now = False

    def _draw_samples(self) -> None:
        with ui.element("section").classes("u-card u-stack"):
            with ui.element("h2"):
                plain("The sample notes")
            with ui.element("div").classes("u-row u-wrap u-between"):
                with ui.element("p").classes("u-muted u-small u-grow"):
                    plain("Forty short notes on clocks, gardens, music and networks, to try everything on.")
                button("Load the samples", on_click=lambda: self.begin(self._notes.import_samples))

    # -- begin

    async def _import_folder(self) -> None:
        typed = (self._folder.value or "").strip()
        if not typed:
            raise InvalidRequest("Type the path of a folder first, for example ~/Notes")
        if "\0" in typed:
            raise InvalidRequest("This is no path of a folder.")
        folder, deleted_too = Path(typed), self._deleted_too.value is True
        self.begin(lambda progress: self._notes.import_folder(folder, progress, deleted_too=deleted_too))

    async def _import_upload(self, event: MultiUploadEventArguments) -> None:
        files = list(event.files)
        self.begin(lambda progress: self._notes.import_upload(files, progress))

    def begin(self, work: Import) -> None:
        begin_import(self._site, work)
        self._look()

    # -- what is shown

    def _look(self) -> None:
        errand = self._site.errands.get(KEY)
        seen = (errand, errand.version if errand is not None else 0)
        if seen == self._seen:
            return
        self._seen = seen
        running = errand is not None and errand.running
        if errand is not None and running and errand is self._drawn:
            # What is drawn stays, or a click on Cancel would meet a button that is gone.
            self._advance(errand.step)
            return
        self._drawn = errand if running else None
        self._ways.set_visibility(not running)
        self._state.clear()
        with self._state:
            if errand is None:
                return
            if running:
                self._draw_progress(errand)
            else:
                with ui.element("section").classes("u-card u-stack"):
                    self._draw_end(errand)
                    report = errand.result if isinstance(errand.result, ImportReport) else None
                    with ui.element("div").classes("u-row u-wrap"):
                        if errand.cancelled or (report is not None and (report.created or report.updated)):
                            link_button("See the notes", "/notes")
                        button("Close", on_click=self._dismiss)
                        if added := _added(errand):
                            self._draw_undo(added)

    def _draw_progress(self, errand: Errand) -> None:
        with ui.element("section").classes("u-card u-stack"):
            with ui.element("h2"):
                title = plain("")
            bar = ui.linear_progress(show_value=False).props('aria-label="Import"')
            count, path = plain("").classes("u-number"), plain("").classes("u-muted u-small u-ellipsis")
            button("Cancel", on_click=lambda: self._site.errands.cancel(KEY)).classes("u-start")

        def advance(step: object) -> None:
            title.text = "Deleting what was imported…" if isinstance(step, Undoing) else "Importing…"
            if isinstance(step, ImportProgress):
                bar.props(remove="indeterminate")
                bar.value = step.done / max(1, step.total)
                count.text = f"{step.done:,} of {step.total:,}"
                path.text = RESTS if step.rests else step.path
            else:
                bar.props("indeterminate")
                count.text = "Looking at the files…"

        advance(errand.step)
        self._advance = advance

    def _draw_end(self, errand: Errand) -> None:
        if errand.cancelled:
            with ui.element("h2"):
                plain("Cancelled")
            self._draw_cancelled(errand.step)
        elif errand.error is not None:
            with ui.element("h2"):
                plain("Nothing more was imported")
            plain(sentence(errand.error)).classes("u-error")
        else:
            draw_report(errand.result)

    def _draw_cancelled(self, step: object) -> None:
        if isinstance(step, Undoing):
            plain(f"{counted(step.done, 'note')} of {step.total:,} had been deleted; the others stay.")
        else:
            taken = step.taken if isinstance(step, ImportProgress) else 0
            told = (
                f"{counted(taken, 'note was', 'notes were')} imported before that"
                if taken
                else "Nothing was imported"
            )
            plain(f"{told}. Importing again goes on from there.")

    def _draw_undo(self, added: Mapping[str, str]) -> None:
        async def undo() -> None:
            count = counted(len(added), "note")
            if await confirm(
                "Undo this import?",
                f"The {count} that it added will be deleted, except what you have changed since. The files stay.",
                "Delete them",
            ):
                self.begin(lambda tell: self._undo(added, tell))

        button("Undo this import", icon="undo", on_click=undo).props("flat")

    async def _undo(self, added: Mapping[str, str], tell: Tell) -> UndoneImport:
        return await self._notes.undo_import(
            added, lambda done, total: tell(Undoing(done=done, total=total, path=""))
        )

    def _dismiss(self) -> None:
        self._site.errands.dismiss(KEY)
        self._look()


class Undoing(ImportProgress):
    """One step of taking an import back."""


def _added(errand: Errand) -> Mapping[str, str]:
    """The new notes of an import that has ended, however it did."""
    if isinstance(errand.result, ImportReport):
        return errand.result.added
    step = errand.step
    return step.added if isinstance(step, ImportProgress) and not isinstance(step, Undoing) else {}


def draw_report(report: ImportReport | UndoneImport) -> None:
    """Counts, then every odd file by name."""
    if isinstance(report, UndoneImport):
        with ui.element("h2"):
            plain("The import is undone")
        kept = (
            f" {counted(report.kept, 'was changed since, and stays', 'were changed since, and stay')}."
            if report.kept
            else ""
        )
        plain(f"{counted(report.deleted, 'note is', 'notes are')} deleted.{kept}")
        return
    with ui.element("h2"):
        plain("Imported" if report.created or report.updated else "Nothing new")
    with ui.element("div").classes("u-row u-wrap"):
        chip(f"{report.created:,} new", kind="good" if report.created else "")
        chip(f"{report.updated:,} changed")
        chip(f"{report.unchanged:,} as before")
        if report.gone:
            chip(
                counted(report.gone, "file gone, whose note stays", "files gone, whose notes stay"),
                kind="warn",
            )
        if report.deleted:
            chip(f"{report.deleted:,} left out, because you deleted their notes")
        if report.attachments:
            chip(f"{counted(report.attachments, 'attachment')} not taken: UNIUN keeps text only")
    if report.copies:
        _draw_copies(report.copies)
    if not (report.created or report.updated or report.unchanged or report.deleted or report.problems):
        plain("There was no Markdown file.")
    draw_problems(report.problems)


def draw_problems(problems: Sequence[ImportProblem]) -> None:
    """Which files, and why; nothing where there are none."""
    if not problems:
        return
    with ui.element("h3"):
        plain(counted(len(problems), "odd file"))
    with ui.element("ul").classes("u-plain-list u-problems").props('tabindex=0 aria-label="Odd files"'):
        for problem in problems[:_MOST_PROBLEMS]:
            _draw_problem(problem)
        if len(problems) > _MOST_PROBLEMS:
            with ui.element("li").classes("u-muted"):
                plain(f"and {len(problems) - _MOST_PROBLEMS:,} more")


def _draw_copies(copies: Sequence[ImportCopy]) -> None:
    one = len(copies) == 1
    with ui.element("p").classes("u-banner u-warn"):
        plain(
            f"{len(copies):,} of the new notes {'is' if one else 'are'} word for word like {'one' if one else 'notes'} that you "
            "have. The same folder from another place makes its notes twice, and so do files of notes that were written here."
        )
    with (
        ui.element("ul")
        .classes("u-plain-list u-problems")
        .props('tabindex=0 aria-label="Notes that are there twice"')
    ):
        for copy in copies[:_MOST_COPIES]:
            with ui.element("li"):
                plain(_printable(copy.path)).classes("u-mono")
                plain(" says the same as ").classes("u-small")
                link(copy.title or "Untitled", f"/notes/{copy.note_id}")
        if len(copies) > _MOST_COPIES:
            with ui.element("li").classes("u-muted"):
                plain(f"and {len(copies) - _MOST_COPIES:,} more")


def _draw_problem(problem: ImportProblem) -> None:
    with ui.element("li"):
        plain(_printable(problem.path)).classes("u-mono")
        plain(f" {problem.reason}{'' if problem.imported else ' Not imported.'}").classes("u-small")


def _printable(path: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in path)


def _is_this_machine() -> bool:
    """Whether the browser runs where the server runs: only there a path means the same to both."""
    peer = ui.context.client.request.client
    try:
        return peer is not None and ip_address(peer.host).is_loopback
    except ValueError:
        return False
