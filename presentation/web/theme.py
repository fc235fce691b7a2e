"""Colours and their choice. The choice is kept in a cookie of the browser, so that a page is right at first paint."""

from typing import Literal, get_args

from nicegui import ui

Theme = Literal["auto", "light", "dark"]
THEMES: tuple[Theme, ...] = get_args(Theme)
_COOKIE = "uniun_theme"
_DARK: dict[Theme, bool | None] = {"auto": None, "light": False, "dark": True}

HEAD = (
    # Before anything is drawn: no flash of the wrong colour.
    "<script>document.documentElement.dataset.theme = "
    f"(document.cookie.match(/(?:^|; ){_COOKIE}=(light|dark)/) || [])[1] || 'auto'</script>"
)


def chosen_theme() -> Theme:
    """What this browser chose; `auto` follows the system."""
    request = ui.context.client.request
    kept = request.cookies.get(_COOKIE, "auto")
    return next((theme for theme in THEMES if theme == kept), "auto")


class ThemeSwitch:
    """Applies the choice to the page that is being drawn."""

    def __init__(self) -> None:
        self.theme = chosen_theme()
        self._dark = ui.dark_mode(_DARK[self.theme])

    def use(self, theme: Theme) -> None:
        """From now on, here and on every page that is opened later."""
        self.theme = theme
        self._dark.set_value(_DARK[theme])
        ui.run_javascript(
            f"document.cookie = '{_COOKIE}={theme}; path=/; max-age=31536000; samesite=strict';"
            f"document.documentElement.dataset.theme = '{theme}'"
        )
