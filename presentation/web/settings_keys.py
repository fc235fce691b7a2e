"""Keys for other programs: made, shown once, revoked."""

from functools import partial

from nicegui import ui
from nicegui.element import Element

from domain.entities.api import ApiKey
from domain.errors import UniunError
from presentation.counting import counted
from presentation.web.notices import sentence, tell, tell_error
from presentation.web.parts import button, confirm, section
from presentation.web.rows import Rows
from presentation.web.shell import plain
from presentation.web.site import Site


async def draw_keys(site: Site) -> None:
    """A card of its own."""
    with section("Keys for other programs"):
        with ui.element("p").classes("u-muted"):
            plain(
                "Programs on this machine need none. Where UNIUN serves other machines too, each program there sends a key "
                "of its own; it names the program on the page of the queue, and can be revoked by itself."
            )
        keys = ApiKeys(site)
        await keys.look()


class ApiKeys:
    """What there is; a row stays as long as its key does."""

    def __init__(self, site: Site) -> None:
        self._keys = site.faces.api_keys
        self._client = ui.context.client
        self._rows = Rows(ui.element("ul").classes("u-list"))
        with ui.element("div").classes("u-row u-wrap"):
            self._name = ui.input("Name of the program").props(
                "outlined dense stack-label autocomplete=off maxlength=100"
            )
            self._name.on("keydown.enter", self._create)
            button("Create a key", icon="key", on_click=self._create)
        self._shown = ui.element("div").props("role=status")

    async def look(self) -> None:
        """Reads them from the database: a terminal may have changed them."""
        try:
            keys = await self._keys.list()
        except UniunError as error:
            tell_error(error)
            return
        self._rows.show((key, partial(self._row, key)) for key in keys)

    def _row(self, key: ApiKey) -> Element:
        with ui.element("li").classes("u-row u-spread u-wrap") as row:
            with ui.element("div").classes("u-grow"):
                plain(key.name)
                with ui.element("p").classes("u-muted u-small u-number"):
                    rate = (
                        f", at most {counted(key.per_minute, 'request')} a minute" if key.per_minute else ""
                    )
                    plain(f"Made on {key.created_at.astimezone():%Y-%m-%d}{rate}")
            revoke = button("Revoke", on_click=lambda: self._revoke(key)).props("flat")
            revoke.props["aria-label"] = f"Revoke the key of {key.name}"
        return row

    async def _create(self) -> None:
        name = str(self._name.value or "").strip()
        if not name:
            self._name.error = "Write what the program is called."
            return
        try:
            key, text = await self._keys.create(name)
        except UniunError as error:
            self._name.error = sentence(error)
            return
        self._name.error = None
        self._name.value = ""
        self._shown.clear()
        with self._shown:
            with ui.element("p").classes("u-banner u-path"):
                plain(f"The key of {key.name}. Copy it now, it is not shown again: ")
                with ui.element("code").classes("u-mono"):
                    plain(text)
            button("Copy the key", icon="content_copy", on_click=lambda: _copy(text))
        await self.look()

    async def _revoke(self, key: ApiKey) -> None:
        asked = "The program that has it is refused from now on. Another key can be made for it."
        if not await confirm(f"Revoke the key of {key.name}?", asked, "Revoke"):
            return
        with self._client:
            try:
                await self._keys.revoke(key.id)
            except UniunError as error:
                tell_error(error)
            self._shown.clear()
            await self.look()


def _copy(text: str) -> None:
    ui.clipboard.write(text)
    tell("Copied.")
