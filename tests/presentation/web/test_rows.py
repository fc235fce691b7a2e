"""Lists that are drawn again, without a browser."""

import asyncio

import pytest
from nicegui import Client, core, ui
from nicegui.element import Element
from nicegui.page import page

from presentation.web.rows import Row, Rows


def test_only_what_has_changed_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def row(name: str) -> Row:
        def draw() -> Element:
            drawn.append(name)
            return ui.label(name)

        return name, draw

    async def scenario() -> None:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        client = Client(page(""))
        try:
            with client:
                box = ui.element("ul")
            rows = Rows(box)

            def show(names: str) -> list[Element]:
                rows.show(row(name) for name in names)
                assert [child.text for child in box if isinstance(child, ui.label)] == list(names)
                return list(box)

            before = show("abc")
            assert show("abc") == before
            assert show("cxab")[2:] == before[:2]
            assert show("ca") == [before[2], before[0]]
            assert drawn == ["a", "b", "c", "x"]
            show("")
            show("a")
            assert drawn[-1] == "a"
        finally:
            client.delete()

    asyncio.run(scenario())
