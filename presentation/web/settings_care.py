"""Backup, export, the background process, and what doctor finds."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicegui import ui

from domain.entities.archive import ExportReport
from domain.entities.background import BackgroundStatus, ServiceChange
from domain.entities.health import Finding
from domain.errors import UniunError
from presentation.counting import counted
from presentation.web.errands import Errand, Errands, Tell
from presentation.web.gana_words import run_words
from presentation.web.notices import sentence, tell_error
from presentation.web.page_words import page_words
from presentation.web.parts import button, section
from presentation.web.pulls import size
from presentation.web.shell import plain
from presentation.web.site import Site

_LOOK_S = 0.4
_BACKUP, _EXPORT = "backup", "export"
_ICONS = {
    "ok": ("check_circle", "in order"),
    "warn": ("warning", "to be looked at"),
    "fail": ("error", "broken"),
}


def draw_archive(site: Site) -> None:
    """Copies of everything, made while UNIUN is used."""
    with section("Backup and export"):
        archive = site.faces.archive
        with ui.element("p").classes("u-muted"):
            plain(
                "A backup is one file with all notes, conversations, cards and Ganas, made while you go on working. Not in "
                "it are models, which can be fetched again, and the choices on this page (preferences.json)."
            )
        with ui.element("p").classes("u-muted u-path"):
            plain(
                f"It is written into {archive.backup_folder}, on the same disk as the original: download it too, and keep "
                "that copy somewhere else. To go back to one, close UNIUN and run in a terminal: uniun restore FILE"
            )
        backup = button("Back up now", icon="save", on_click=lambda: start_backup())
        backup_line = _ErrandLine(site.errands, _BACKUP, _draw_backup)

        async def back_up(_: Tell) -> tuple[Path, int]:
            return await archive.back_up_now()

        def start_backup() -> None:
            site.errands.begin(_BACKUP, back_up)
            backup_line.look()

        with ui.element("p").classes("u-muted"):
            plain(
                "An export writes every note, conversation, card and Gana as Markdown and JSON, for other programs."
            )
        folder = (
            ui.input("Folder to export to", placeholder="~/uniun-export")
            .props("outlined dense stack-label")
            .classes("u-bar")
        )
        export = button("Export", icon="output", on_click=lambda: start_export())
        export_line = _ErrandLine(site.errands, _EXPORT, lambda done: _banner(_export_words(done)))

        def start_export() -> None:
            told = str(folder.value or "").strip()
            if not told:
                folder.error = "Write where the export is to go."
                return
            folder.error = None

            async def work(tell: Tell) -> ExportReport:
                return await archive.export(
                    Path(told), force=False, progress=lambda done, total: tell((done, total))
                )

            site.errands.begin(_EXPORT, work)
            export_line.look()

        def look() -> None:
            backup.set_enabled(not backup_line.look())
            export.set_enabled(not export_line.look())

        ui.timer(_LOOK_S, look)


class _ErrandLine:
    """What a piece of work does, or how it ended."""

    def __init__(self, errands: Errands, key: str, draw_result: Callable[[Any], None]) -> None:
        self._errands = errands
        self._key = key
        self._draw_result = draw_result
        self._drawn: object = None
        self._place = ui.element("div").classes("u-stack").props("role=status")

    def look(self) -> bool:
        """Whether it runs."""
        errand = self._errands.get(self._key)
        if errand is None:
            return False
        seen = errand.version, errand.running
        if seen != self._drawn:
            self._drawn = seen
            self._place.clear()
            with self._place:
                self._draw(errand)
        return errand.running

    def _draw(self, errand: Errand) -> None:
        if errand.running:
            done, total = errand.step or (0, 0)
            bar = ui.linear_progress(value=done / total if total else 0, show_value=False).props("rounded")
            bar.props["aria-label"] = "Progress"
            if not total:
                bar.props("indeterminate")
        elif errand.error is not None:
            with ui.element("p").classes("u-banner u-bad"):
                plain(sentence(errand.error))
        elif errand.result is not None:
            self._draw_result(errand.result)


def _banner(words: str) -> None:
    with ui.element("p").classes("u-banner u-path"):
        plain(words)


def _draw_backup(result: tuple[Path, int]) -> None:
    path, count = result
    _banner(f"The backup is there: {path} ({size(count)}).")
    button("Download it", icon="download", on_click=lambda: ui.download.file(path))


def _export_words(report: ExportReport) -> str:
    return (
        f"Exported: {counted(report.notes, 'note')}, {counted(report.conversations, 'conversation')}, "
        f"{counted(report.cards, 'card')}, {counted(report.ganas, 'Gana')}."
    )


def draw_background(site: Site) -> None:
    """The process that runs Ganas while the app is closed."""
    with section("While the app is closed"):
        with ui.element("p").classes("u-muted"):
            plain(
                "A small process can run your Ganas on time when UNIUN is closed. It starts when you log in."
            )
        place = ui.element("div").classes("u-stack").props("role=status")

        async def look() -> None:
            try:
                status = await site.faces.background().status()
            except UniunError as error:
                place.clear()
                with place:
                    with ui.element("p").classes("u-banner u-bad"):
                        plain(sentence(error))
                    button("Look again", on_click=look)
                return
            place.clear()
            with place:
                _draw_background(site, status, change)

        async def change(*, install: bool) -> None:
            for pressed in place.descendants():
                if isinstance(pressed, ui.button):
                    pressed.disable()
            try:
                background = site.faces.background()
                done = await asyncio.to_thread(background.install if install else background.uninstall)
            except UniunError as error:
                tell_error(error)
                await look()
                return
            await look()
            with place, ui.element("p").classes("u-banner u-path" if done.told else "u-banner u-bad u-path"):
                plain(_change_words(done, install=install))

        ui.timer(0.1, look, once=True)


def _draw_background(site: Site, status: BackgroundStatus, change: Any) -> None:
    with ui.element("p"):
        installed = "It is installed" if status.trouble else "It starts when you log in"
        runs = f", and runs now (process {status.pid})" if status.pid is not None else ""
        plain(f"{installed if status.installed else 'It is not installed'}{runs}.")
    if status.trouble:
        with ui.element("p").classes("u-banner u-bad"):
            plain(page_words(status.trouble))
    if status.installed:
        with ui.element("p").classes("u-field-help u-mono u-path"):
            plain(status.installed)
        with ui.element("p").classes("u-field-help"):
            plain("What it said, in a terminal: ")
            with ui.element("span").classes("u-mono u-path"):
                plain(status.log)
    for run in status.runs:
        with ui.element("p").classes("u-muted u-small"):
            name = status.names.get(run.gana_id, "A Gana that is gone")
            plain(f"{site.faces.ganas.local(run.started_at)}: {name} {run_words(run)}.")
    with ui.element("div").classes("u-row u-wrap"):
        if status.trouble or not status.installed:
            button("Install again" if status.installed else "Install", on_click=lambda: change(install=True))
        if status.installed:
            button("Uninstall", on_click=lambda: change(install=False))


def _change_words(done: ServiceChange, *, install: bool) -> str:
    if not done.done:
        what = "Nothing had to be done."
    else:
        what = f"{'Installed' if install else 'Removed'}: {done.path}."
    return f"{what} {done.hint}".strip()


def draw_health(site: Site) -> None:
    """Version, and what doctor says, asked for by the user because it takes seconds."""
    with section("Version and health"):
        with ui.element("p"):
            plain(f"UNIUN {site.faces.version()}")
        begin = button("Look for problems", icon="troubleshoot", on_click=lambda: examine())
        busy = ui.linear_progress(show_value=False).props('indeterminate rounded aria-label="Looking"')
        busy.set_visibility(False)
        found = ui.element("ul").classes("u-findings").props("aria-live=polite")

        async def examine() -> None:
            begin.disable()
            busy.set_visibility(True)
            found.clear()
            try:
                async for finding in site.faces.diagnose()():
                    with found:
                        _draw_finding(finding)
            except UniunError as error:
                tell_error(error)
            finally:
                busy.set_visibility(False)
                begin.enable()


def _draw_finding(finding: Finding) -> None:
    icon, word = _ICONS[finding.state]
    with ui.element("li"):
        with ui.element("span").classes(f"u-state-{finding.state}"):
            ui.icon(icon).props["aria-hidden"] = "true"
            with ui.element("span").classes("u-hidden"):
                plain(word)
        with ui.element("div"):
            plain(page_words(f"{finding.area}: {finding.text}"))
            if finding.mend:
                with ui.element("p").classes("u-muted u-small"):
                    plain(page_words(finding.mend))
