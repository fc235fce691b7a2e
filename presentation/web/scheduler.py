"""The window into the scheduler: who has the model, who waits, and why. Live, and silent while nobody looks."""

from collections.abc import Iterator
from contextlib import contextmanager

from nicegui import ui
from nicegui.events import GenericEventArguments

from domain.errors import UniunError
from presentation.flow_names import flows_of, names_of
from presentation.web import scheduler_html as html
from presentation.web import timeline
from presentation.web.glance import glance
from presentation.web.notices import tell_error
from presentation.web.parts import button
from presentation.web.shell import heading, plain
from presentation.web.site import Site

PERIOD_S = 0.3
"""What is shown is at most this and `SHARED_S` old, save for the time on the wire."""
_INTRO = (
    "One language model runs on this machine and does one thing at a time. Your chats, the reading of your notes, the "
    "deck, your Ganas and other programs share it. This page shows who has it now, who waits, and why."
)

_QUEUE = (
    "From the most urgent to the least. When each starts is a guess from how long such jobs took before; whatever comes "
    "in later and is more urgent goes first."
)
_TURNS = (
    "What each is counted to have had of the model: seconds over its weight, halved every five minutes; whoever comes anew begins "
    "where the others are. Of those that wait for a fair turn, the one with the shortest bar goes next."
)
_SHARE = "Its part of the busy time of the last 5 minutes. The line is its limit."


async def page_scheduler(site: Site) -> None:
    """`/scheduler`."""
    view = SchedulerView(site)
    with heading("Scheduler"):
        button("Export the last 10 minutes", icon="download", on_click=view.export)
    with ui.element("details").classes("s-intro"):
        with ui.element("summary"):
            plain("What am I looking at?")
        with ui.element("p"):
            plain(_INTRO)
    view.draw()
    await view.look()
    view.follow()


class SchedulerView:
    """One open page. Each part is sent again only when it says something else than before."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._scheduler = site.faces.scheduler
        self._names = names_of(site.faces.chat, site.faces.notes, site.faces.ganas, site.faces.manases)
        self._drawn_at = -1
        self._open = False
        """Whether the table is shown."""

    def draw(self) -> None:
        """The parts, empty."""
        with ui.element("div").classes("s-grid"):
            with _card("Now", "s-first"):
                self._now = _html()
            with _card("Model", "s-second"):
                self._facts = _html()
        with _card("The last 10 minutes", "", "Each bar is time on the model."):
            self._picture = _html()
            _html(timeline.legend())
            with ui.element("details") as details:
                with ui.element("summary"):
                    plain("Show as a table")
                self._table = _html()
            details.on("toggle", self._toggle, js_handler="(event) => emit({open: event.target.open})")
        with _card("Who waits", "", _QUEUE):
            self._queue = _html()
        with ui.element("div").classes("s-grid"):
            with _card("Fair turns", "s-first", _TURNS):
                self._turns = _html()
            with _card("Reading notes", "s-second", _SHARE):
                self._share = _html()
        with _card("Last decisions"):
            self._decisions = _html()

    def follow(self) -> None:
        """From now on. Last: a timer waits for the connection, and with it the page would be sent as far as it is."""
        self._timer = ui.timer(PERIOD_S, self.look)
        ui.on("uniun_seen", self.on_seen)

    async def look(self) -> None:
        """Shows what is now."""
        snapshot = glance(self._site)
        # The picture moves by a pixel in 0.6 s, and is the largest part.
        if int(snapshot.at) != self._drawn_at:
            self._drawn_at = int(snapshot.at)
            history = self._scheduler.history()
            await self._names.learn(flows_of(snapshot, history))
            history = self._names.history(history)
            self._picture.content = timeline.picture(history)
            self._decisions.content = html.decisions_html(history)
            if self._open:
                self._table.content = timeline.table(history)
        snapshot = self._names.snapshot(snapshot)
        self._now.content = html.now_html(snapshot)
        self._facts.content = html.facts_html(snapshot)
        self._queue.content = html.queue_html(snapshot)
        self._turns.content = html.turns_html(snapshot)
        self._share.content = html.share_html(snapshot)

    async def on_seen(self, event: GenericEventArguments) -> None:
        """The browser tells whether the page can be seen."""
        visible = isinstance(event.args, dict) and event.args.get("visible") is True
        hidden_before = not self._timer.active
        self._timer.active = visible
        if visible and hidden_before:
            await self.look()

    def export(self) -> None:
        """A file for `uniun simulate`, for a report, or for one's own tools."""
        try:
            lines = self._scheduler.export_history()
        except UniunError as error:
            tell_error(error)
            return
        text = "".join(f"{line}\n" for line in lines)
        ui.download.content(text, "uniun-history.jsonl", "application/x-ndjson")

    def _toggle(self, event: GenericEventArguments) -> None:
        self._open = isinstance(event.args, dict) and event.args.get("open") is True
        history = self._names.history(self._scheduler.history())
        self._table.content = timeline.table(history) if self._open else ""


@contextmanager
def _card(title: str, classes: str = "", caption: str = "") -> Iterator[None]:
    with ui.element("section").classes(f"u-card s-part {classes}"):
        with ui.element("h2"):
            plain(title)
        if caption:
            with ui.element("p").classes("u-muted u-small"):
                plain(caption)
        yield


def _html(content: str = "") -> ui.html:
    """Of our own making, with every foreign word escaped (scheduler_html, timeline)."""
    return ui.html(content, sanitize=False)
