"""A picture of the concepts, and the same as a list."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement
from nicegui.events import GenericEventArguments

from domain.entities.knowledge import Concept, Neighbourhood, Relation
from presentation.counting import counted
from presentation.web.notes_about import concept_query
from presentation.web.parts import button, link, link_button
from presentation.web.shell import empty, heading, plain
from presentation.web.site import Site

MOST = 150
"""Concepts of one picture: more is a hairball, and slow on a small machine."""
_COLOURS = ("#2a9d8f", "#7b6cd9", "#d0782f", "#3f83d1", "#b8528f", "#7c9a2e", "#c2504f")
_OTHER = "#7d878b"
_MOST_NOTES = 50
_DRAWN_S = 10.0
"""A page that nobody sees draws nothing."""


async def page_graph(site: Site, name: str = "", manas: str = "") -> None:
    """Around one concept, or the most named ones, of all notes or of a Manas."""
    with heading("Concepts"):
        link_button("All notes", "/notes").props("flat")
    await GraphPage(site, name[:200], manas[:200]).draw()


class GraphPage:
    def __init__(self, site: Site, name: str, manas: str) -> None:
        self._site = site
        self._name = name
        self._manas = manas
        self._graph = Neighbourhood(concepts=(), relations=())
        self._round = 0
        """Of the question that was asked last; what an earlier one finds is thrown away."""
        self._at_rest = asyncio.Event()
        """Set while the browser has nothing to draw."""
        self._at_rest.set()
        self._chosen: Concept | None = None
        """The one whose notes were asked for last."""

    async def draw(self) -> None:
        manases = await self._site.faces.manases.list()
        if self._manas not in {each.id for each in manases}:
            self._manas = ""
        with ui.element("div").classes("u-note-filters").props('role=search aria-label="Concepts"'):
            search = ui.element("input").classes("u-input u-grow").props("type=search maxlength=200")
            search.props["placeholder"] = search.props["aria-label"] = "Look around a concept"
            search.props["defaultValue"] = self._name
            search.on(
                "input",
                self._look_around,
                throttle=0.25,
                leading_events=False,
                js_handler="(e) => emit(e.target.value)",
            )
            with (
                ui.element("select")
                .classes("u-select")
                .on("change", self._use_manas, js_handler="(e) => emit(e.target.value)") as select
            ):
                select.props["aria-label"] = "Manas"
                for value, shown in (("", "All notes"), *((each.id, each.name) for each in manases)):
                    option = TextElement(tag="option", text=shown)
                    option.props["value"] = value
                    if value and value == self._manas:
                        option.props("selected")
        self._place = ui.element("div").classes("u-stack u-graph-place")
        await self._refresh()

    async def _refresh(self) -> None:
        self._round += 1
        this_round = self._round
        knowledge = self._site.faces.knowledge
        if self._name:
            graph = await knowledge.graph(self._name, hops=1, limit=MOST)
        else:
            graph = await knowledge.graph(manas_id=self._manas or None, limit=MOST)
        # A picture that is taken away before it has been drawn breaks the script that draws it.
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAWN_S):
                await self._at_rest.wait()
        if this_round != self._round:
            return
        self._graph, self._chosen = graph, None
        self._place.clear()
        with self._place:
            if self._graph.concepts:
                self._draw_graph()
            else:
                self._draw_empty()

    def _draw_empty(self) -> None:
        if self._name:
            with empty(
                "search_off",
                f"Nothing is called “{self._name[:80]}”",
                "Try another name, or see all concepts.",
            ):
                link_button("All concepts", "/notes/graph")
        else:
            with empty(
                "hub", "No concepts yet", "They appear when the model has read notes. That goes on by itself."
            ):
                link_button("To the notes", "/notes")

    def _draw_graph(self) -> None:
        types = _types(self._graph.concepts)
        count = len(self._graph.concepts)
        with ui.element("p").classes("u-muted u-small"):
            plain(
                f"The {MOST} most named concepts; more would not be readable. Choose a Manas, or look around one concept."
                if count >= MOST
                else f"{counted(count, 'concept')}, {counted(len(self._graph.relations), 'relation')}. The larger, the more connected; zoom in or point at one to read its name."
            )
        with ui.element("div").classes("u-row u-wrap u-between"):
            with ui.element("ul").classes("u-chips").props('aria-label="Colours"'):
                for kind, colour in types.items():
                    with ui.element("li").classes("u-chip"):
                        ui.element("span").classes("u-state-dot").style(f"background: {colour}").props(
                            "aria-hidden=true"
                        )
                        plain(kind)
            with ui.element("div").classes("u-row"):
                self._zoom_button("Zoom in", "add", 1.4)
                self._zoom_button("Zoom out", "remove", 1 / 1.4)
                _icon_button("Fit all into the frame", "fit_screen", self._fit)
        with ui.element("div").classes("u-graph-area"):
            # Screen readers and keys have the list below, which says the same.
            self._chart = ui.echart(_options(self._graph, types), renderer="svg")
            self._chart.classes("u-graph").props("aria-hidden=true")
            chart = f"getElement({self._chart.id}).chart"
            self._chart.options["series"][0][":labelLayout"] = f"(one) => uniunGraph.label({chart}, one)"
            self._at_rest.clear()
            self._chart.on(
                "chart:finished",
                self._at_rest.set,
                args=[],
                js_handler=f"() => uniunGraph.finished(getHtmlElement({self._chart.id}), {chart}) && emit()",
            )
            # NiceGUI's own event for a point wants a value, which a node of a graph has not.
            self._chart.on("componentClick", self._clicked, ["data"])
            self._detail = ui.element("aside").classes("u-card u-stack u-graph-detail")
            self._detail.props('aria-label="Concept" role=region aria-live=polite')
            with self._detail:
                plain("Choose a concept in the picture or in the list to see its notes.").classes("u-muted")
        with ui.element("details").classes("u-card"):
            with ui.element("summary"):
                plain("The same as a list")
            self._draw_list()

    def _zoom_button(self, label: str, icon: str, factor: float) -> None:
        def zoom() -> None:
            ui.run_javascript(f"uniunGraph.zoomBy(getElement({self._chart.id}).chart, {factor})")

        _icon_button(label, icon, zoom)

    def _fit(self) -> None:
        ui.run_javascript(f"uniunGraph.fit(getElement({self._chart.id}).chart)")

    def _draw_list(self) -> None:
        with ui.element("table").classes("u-table"):
            with ui.element("thead"), ui.element("tr"):
                for title in ("Concept", "Type", "Notes"):
                    with ui.element("th").props("scope=col"):
                        plain(title)
            with ui.element("tbody"):
                for concept in self._graph.concepts:
                    with ui.element("tr"):
                        with ui.element("td"):
                            self._list_button(concept)
                        with ui.element("td"):
                            plain(concept.type)
                        with ui.element("td").classes("u-number"):
                            plain(str(concept.note_count))

    def _list_button(self, concept: Concept) -> None:
        async def choose() -> None:
            await self._show(concept)

        with ui.element("button").classes("u-link").props("type=button").on("click", choose, args=[]):
            plain(concept.name)

    # -- what the user does

    async def _look_around(self, event: GenericEventArguments) -> None:
        """As one types."""
        self._name = str(event.args or "").strip()[:200]
        query = concept_query(self._name) if self._name else f"manas={self._manas}" if self._manas else ""
        ui.navigate.history.replace(f"/notes/graph?{query}" if query else "/notes/graph")
        await self._refresh()

    def _use_manas(self, event: GenericEventArguments) -> None:
        ui.navigate.to(f"/notes/graph?manas={str(event.args or '')[:200]}" if event.args else "/notes/graph")

    async def _clicked(self, event: GenericEventArguments) -> None:
        data = event.args.get("data") if isinstance(event.args, dict) else None
        chosen = data.get("id") if isinstance(data, dict) else None
        for concept in self._graph.concepts:
            if concept.id == chosen:
                await self._show(concept)

    async def _show(self, concept: Concept) -> None:
        self._chosen = concept
        notes = await self._site.faces.knowledge.notes_naming(concept.id, _MOST_NOTES)
        if concept is not self._chosen:
            return
        relations = [one for one in self._graph.relations if concept.id in (one.source.id, one.target.id)]
        self._detail.clear()
        ui.run_javascript(f"getHtmlElement({self._detail.id}).scrollIntoView({{ block: 'nearest' }})")
        with self._detail:
            with ui.element("h2"):
                plain(concept.name)
            also = f"; also {', '.join(concept.aliases[:5])}" if concept.aliases else ""
            plain(f"{concept.type}{also}").classes("u-muted u-small")
            with ui.element("h3"):
                plain("Notes" if notes else "No note names it any more")
            with ui.element("ul").classes("u-plain-list"):
                for note in notes:
                    with ui.element("li"):
                        link(note.title, f"/notes/{note.id}")
            _draw_relations(relations)
            button(
                "Look around it",
                icon="hub",
                on_click=lambda: ui.navigate.to(f"/notes/graph?{concept_query(concept.name)}"),
            )


def _icon_button(label: str, icon: str, on_click: Callable[[], object]) -> None:
    with (
        ui.element("button").classes("u-icon-button").props("type=button").on("click", on_click, args=[])
    ) as made:
        ui.icon(icon)
    made.props["aria-label"] = made.props["title"] = label


def _draw_relations(relations: Sequence[Relation]) -> None:
    if not relations:
        return
    with ui.element("h3"):
        plain("What notes say of it")
    with ui.element("ul").classes("u-plain-list u-small"):
        for one in relations[:20]:
            with ui.element("li"):
                plain(f"{one.source.name} {one.verb} {one.target.name}")


def _types(concepts: Sequence[Concept]) -> dict[str, str]:
    """Type to colour, most frequent first; the rare ones share one."""
    counts = Counter(concept.type for concept in concepts)
    types = {kind: colour for (kind, _), colour in zip(counts.most_common(), _COLOURS, strict=False)}
    return types if len(counts) <= len(types) else {**types, "other": _OTHER}


def _options(graph: Neighbourhood, types: dict[str, str]) -> dict[str, Any]:
    edges_of = Counter(concept_id for one in graph.relations for concept_id in {one.source.id, one.target.id})
    largest = max(edges_of.values(), default=1)
    kinds = list(types)
    # The largest first: their labels are placed first.
    concepts = sorted(graph.concepts, key=lambda concept: -edges_of[concept.id])
    nodes = [
        {
            "id": concept.id,
            "name": concept.name,
            "symbolSize": 10 + 30 * (edges_of[concept.id] / largest) ** 0.5,
            "category": kinds.index(concept.type) if concept.type in types else len(kinds) - 1,
        }
        for concept in concepts
    ]
    seen: dict[tuple[str, str], str] = {}
    for one in graph.relations:
        seen.setdefault((one.source.id, one.target.id), one.verb)
    edges = [
        {"source": source, "target": target, "label": {"formatter": _plain_label(verb)}}
        for (source, target), verb in seen.items()
    ]
    return {
        "animation": False,
        "series": [
            {
                "type": "graph",
                "layout": "force",
                "force": {
                    "repulsion": 130,
                    "edgeLength": [40, 130],
                    "gravity": 0.12,
                    "layoutAnimation": False,
                },
                "roam": True,
                "scaleLimit": {"min": 0.3, "max": 8},
                "categories": [
                    {"name": kind, "itemStyle": {"color": colour}} for kind, colour in types.items()
                ],
                "data": nodes,
                "edges": edges,
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 6,
                "edgeLabel": {"show": False},
                "label": {
                    "show": True,
                    "position": "right",
                    "fontSize": 12,
                    "overflow": "truncate",
                    "width": 130,
                    "minMargin": 6,
                },
                "lineStyle": {"color": "#8a9499", "opacity": 0.55, "width": 1, "curveness": 0.08},
                "emphasis": {"focus": "adjacency", "label": {"show": True}, "edgeLabel": {"show": True}},
            }
        ],
    }


def _plain_label(text: str) -> str:
    """A formatter's own signs are no text."""
    return text.replace("{", "(").replace("}", ")")
