"""Settings: what can be tuned, how it looks, where the data lie, and how the installation is."""

from nicegui import ui

from domain.entities.preferences import PreferencesView
from domain.errors import InvalidField, UniunError
from presentation.web.notices import sentence, tell, tell_error
from presentation.web.parts import button, section
from presentation.web.reading_progress import draw_reading
from presentation.web.settings_care import draw_archive, draw_background, draw_health
from presentation.web.settings_keys import draw_keys
from presentation.web.settings_rows import SETTINGS, Setting, value_of
from presentation.web.shell import heading, plain
from presentation.web.site import Site
from presentation.web.theme import THEMES, ThemeSwitch

_THEMES = {"auto": "As the system has it", "light": "Light", "dark": "Dark"}


async def page_settings(site: Site) -> None:
    """`/settings`."""
    with heading("Settings"):
        pass
    _draw_look()
    try:
        view = site.faces.settings.view()
    except UniunError as error:
        with ui.element("p").classes("u-banner u-bad").props("role=alert"):
            plain(sentence(error))
    else:
        draw_reading(site, view)
        Tuning(site, view)
        _draw_data(site, view)
    draw_archive(site)
    await draw_keys(site)
    draw_background(site)
    draw_health(site)


def _draw_look() -> None:
    with section("Look"):
        switch = ThemeSwitch()

        def use(chosen: str) -> None:
            for theme in THEMES:
                if theme == chosen:
                    switch.use(theme)

        with ui.element("div").props('role=group aria-label="Colours"'):
            ui.radio(_THEMES, value=switch.theme, on_change=lambda event: use(str(event.value))).props(
                "inline"
            )


def _draw_data(site: Site, view: PreferencesView) -> None:
    with section("Your data"):
        with ui.element("p"):
            plain("Notes, conversations, models and these settings lie in one folder on this machine:")
        with ui.element("p").classes("u-mono u-path"):
            plain(str(view.data_dir))

        async def open_folder() -> None:
            try:
                await site.faces.settings.open_data_folder()
            except UniunError as error:
                tell_error(error)

        with ui.element("div").classes("u-row u-wrap"):
            button("Open the folder", icon="folder_open", on_click=open_folder)
            button("Copy the path", icon="content_copy", on_click=lambda: _copy(str(view.data_dir))).props(
                "flat"
            )
        with ui.element("p").classes("u-field-help"):
            plain(
                "To keep them elsewhere, set UNIUN_DATA_DIR to another folder before UNIUN is started. Logs: "
            )
            plain(str(view.log_dir))


def _copy(text: str) -> None:
    ui.clipboard.write(text)
    tell("Copied.")


class Tuning:
    """Each row is kept by itself, so that a wrong one holds nothing else up."""

    def __init__(self, site: Site, view: PreferencesView) -> None:
        self._settings = site.faces.settings
        self._view = view
        with section("Tuning"):
            with ui.element("p").classes("u-muted"):
                plain(
                    "The defaults suit most machines. An empty field means the default. What you choose holds at once."
                )
            with ui.element("div"):
                for setting in SETTINGS:
                    self._draw(setting)

    def _draw(self, setting: Setting) -> None:
        view = self._view
        with ui.element("div").classes("u-setting"):
            with ui.element("div"):
                with ui.element("h3"):
                    plain(setting.title)
                with ui.element("p").classes("u-muted u-small"):
                    plain(setting.effect if setting.live else f"{setting.effect} {setting.when}")
            with ui.element("div"):
                chosen = value_of(view.chosen, setting.field)
                default = value_of(view.defaults, setting.field) or 0
                entry = ui.input(
                    value="" if chosen is None else setting.shown(chosen), placeholder=setting.shown(default)
                ).props("outlined dense inputmode=decimal autocomplete=off")
                entry.props["suffix"] = setting.unit
                entry.props["aria-label"] = f"{setting.title}, {setting.unit}"
                with ui.element("p").classes("u-field-help u-number"):
                    plain(f"Default: {setting.shown(default)} {setting.unit}")
                fixed = view.fixed.get(setting.field)
                if fixed is not None:
                    entry.disable()
                    with ui.element("p").classes("u-field-help"):
                        now = setting.shown(value_of(view.in_force, setting.field) or 0)
                        plain(f"{fixed} sets it to {now} {setting.unit}, which goes before what is chosen.")
                else:
                    entry.on("blur", lambda: self._keep(setting, entry))
                    entry.on("keydown.enter", lambda: self._keep(setting, entry))

    def _keep(self, setting: Setting, entry: ui.input) -> None:
        try:
            value = setting.stored(str(entry.value or ""))
        except ValueError:
            entry.error = "Write a number, or leave it empty."
            return
        if value == value_of(self._view.chosen, setting.field):
            entry.error = None
            return
        try:
            self._view = self._settings.change({setting.field: value})
        except InvalidField:
            entry.error = f"Not kept. It can be {setting.limits(self._view.cores)}."
            return
        except UniunError as error:
            tell_error(error)
            return
        entry.error = None
        tell(f"Kept. {setting.when}")
