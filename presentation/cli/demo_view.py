"""The demo while it runs: a picture that changes, on a terminal; lines, anywhere else."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from domain.entities.demo import DemoChat, DemoEvent, DemoMachine, DemoMoment, DemoRun, DemoSpan, DemoStarting
from domain.entities.scheduler import SchedulerSnapshot
from presentation.cli.gantt import STYLES
from presentation.cli.terminal import printable
from presentation.counting import counted

STRIP_CELLS = 66
_LABEL = 10
_BUSY = 0.25
"""A processor that others use more than this makes the figures worth a warning."""
_STATUS_PERIOD_S = 5.0
_TIERS = {
    "uniun": {
        0: "T0 chat",
        1: "T1 on screen",
        2: "T2 extract",
        3: "T3 overdue",
        4: "T4 fair pool",
        5: "T5 over share",
    },
    "two-lane": {0: "high lane", 1: "low lane"},
    "fifo": {0: "queue"},
    "idle": {0: "queue"},
}


def seconds(value_s: float, *, more: bool = False) -> str:
    """Three figures at most; `more` when it is only what had been waited so far."""
    digits = 2 if value_s < 9.95 else 1
    return f"{'> ' if more else ''}{value_s:.{digits}f}"


@contextmanager
def open_view(console: Console) -> Iterator[Callable[[DemoEvent], None]]:
    """What the demo's events are told to."""
    marks = "v." if console.options.ascii_only else "▼░"
    console.print(
        Text.assemble(f"{'user':{_LABEL}}{marks[0]} sends a chat, {marks[1]} waits for its first token")
    )
    console.print(Text.assemble(f"{'device':{_LABEL}}", _legend(), "  . nobody"))
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Lines(console, marks)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _Picture(console, live, marks)


def busy_share(machine: DemoMachine) -> str:
    """How much of the processor other programs use; empty if they hardly do."""
    return f"{machine.busy_before:.0%}" if machine.busy_before > _BUSY else ""


def _warn_of_others(machine: DemoMachine, console: Console) -> None:
    """While it can still be stopped: minutes go by before the figures."""
    if share := busy_share(machine):
        words = f"Other programs keep the processor {share} busy. End them first for figures that hold."
        console.print(Text(words, style="yellow"))


def _legend() -> Text:
    parts = [(f"{kind[0]} {kind}", STYLES[kind]) for kind in ("chat", "extract", "nataraj", "gana")]
    return Text("  ").join(Text(words, style=style) for words, style in parts)


class _Lines:
    """For pipes and files: what happens to the chats, and now and then who runs and who waits."""

    def __init__(self, console: Console, marks: str) -> None:
        self._console = console
        self._marks = marks
        self._told: dict[int, str] = {}
        self._next_status_s = 0.0

    def __call__(self, event: DemoEvent) -> None:
        match event:
            case DemoMachine():
                _warn_of_others(event, self._console)
            case DemoStarting():
                self._told, self._next_status_s = {}, _STATUS_PERIOD_S
                self._console.print(f"\n{_heading(event)}: starting a fresh engine", soft_wrap=True)
            case DemoMoment():
                self._tell(event)
            case DemoRun():
                self._tell_chats(event.chats, event.window_s)
                for line in result_lines(event, self._marks, STRIP_CELLS):
                    self._console.print(line, soft_wrap=True)

    def _tell(self, moment: DemoMoment) -> None:
        self._tell_chats(moment.chats, moment.at_s)
        if moment.at_s >= self._next_status_s:
            self._next_status_s += _STATUS_PERIOD_S
            waits = "; ".join(f"{tier}: {who}" for tier, who in _waiting(moment) if who) or "nobody"
            line = f"{moment.at_s:6.1f} s  runs {_running(moment.snapshot)}; waits {waits}"
            self._console.print(f"{line}; {moment.background_tokens} background tokens", soft_wrap=True)

    def _tell_chats(self, chats: Sequence[DemoChat], now_s: float) -> None:
        for number, chat in enumerate(chats, 1):
            news = []
            if number not in self._told:
                news.append((chat.sent_s, "is sent"))
            if chat.first_token and self._told.get(number) != "answered":
                self._told[number] = "answered"
                news.append(
                    (chat.sent_s + chat.waited_s, f"has its first token after {seconds(chat.waited_s)} s")
                )
            self._told.setdefault(number, "sent")
            for at_s, what in news:
                self._console.print(f"{at_s:6.1f} s  chat {number} {what}", soft_wrap=True)


class _Picture:
    """For terminals; what is past stays above it."""

    def __init__(self, console: Console, live: Live, marks: str) -> None:
        self._console = console
        self._live = live
        self._marks = marks
        self._heading = ""

    def __call__(self, event: DemoEvent) -> None:
        cells = max(10, min(STRIP_CELLS, self._console.width - _LABEL - 1))
        match event:
            case DemoMachine():
                _warn_of_others(event, self._console)
            case DemoStarting():
                self._heading = _heading(event)
                self._show(
                    [Text(self._heading, style="bold").append(": starting a fresh engine …", style="dim")]
                )
            case DemoMoment():
                self._show(self._lines(event, cells))
            case DemoRun():
                self._live.update(Text(""), refresh=True)
                for line in result_lines(event, self._marks, cells):
                    self._console.print(line, no_wrap=True, crop=True, overflow="ellipsis")

    def _show(self, lines: Sequence[Text]) -> None:
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        self._live.update(Group(*lines), refresh=True)

    def _lines(self, moment: DemoMoment, cells: int) -> list[Text]:
        head = Text(f"{self._heading}: ", style="bold")
        head.append(f"{moment.at_s:.1f} of {moment.window_s:.0f} s", style="not bold")
        head.append(f", the user looks at {moment.surface}", style="not bold dim")
        return [
            head,
            *_strip(moment.chats, moment.spans, moment.at_s, moment.window_s, self._marks, cells),
            _row("runs", _running(moment.snapshot), _style(moment.snapshot)),
            _row("why", printable(moment.snapshot.last_reason), "dim"),
            *(_row(tier, who or "–", "" if who else "dim") for tier, who in _waiting(moment)),
            _row("background", f"{counted(moment.background_tokens, 'token')} so far"),
            *(_chat_row(number, chat) for number, chat in enumerate(moment.chats, 1)),
        ]


def result_lines(run: DemoRun, marks: str, cells: int) -> list[Text]:
    """What is left of a run in the scrollback: its strip, and the chats' waits."""
    head = Text(f"{run.policy:{_LABEL}}", style="bold")
    if run.policy == "idle":
        head.append("the chats alone", style="not bold")
    else:
        head.append(f"background {counted(round(run.background_tokens_per_s), 'token')}/s", style="not bold")
    waits = ", ".join(seconds(chat.waited_s, more=not chat.first_token) for chat in run.chats)
    return [
        head,
        Text(f"{'waits':{_LABEL}}{waits} s for the first token"),
        *_strip(run.chats, run.spans, run.window_s, run.window_s, marks, cells),
    ]


def _strip(
    chats: Sequence[DemoChat],
    spans: Sequence[DemoSpan],
    now_s: float,
    window_s: float,
    marks: str,
    cells: int,
) -> list[Text]:
    """Two rows: the chats, from sending to the first token, and who had the device."""
    scale = cells / window_s
    past = min(cells, int(now_s * scale) + 1)
    user = [" "] * cells
    for chat in chats:
        first, last = int(chat.sent_s * scale), int((chat.sent_s + chat.waited_s) * scale)
        for at in range(first, min(last, cells - 1) + 1):
            if user[at] == " ":
                user[at] = marks[1]
    for chat in chats:
        user[min(cells - 1, int(chat.sent_s * scale))] = marks[0]
    device = Text(f"{'device':{_LABEL}}")
    for kind in _owners(spans, scale, past):
        device.append(kind[0] if kind else ".", style=f"{STYLES[kind]} reverse" if kind else "dim")
    return [Text(f"{'user':{_LABEL}}").append("".join(user), style=STYLES["chat"]), device]


def _owners(spans: Sequence[DemoSpan], scale: float, cells: int) -> list[str]:
    """Per cell the kind with the most time in it; a chat always shows, however short."""
    times: list[dict[str, float]] = [{} for _ in range(cells)]
    for span in spans:
        for at in range(int(span.start_s * scale), min(cells - 1, int(span.end_s * scale)) + 1):
            overlap = min(span.end_s, (at + 1) / scale) - max(span.start_s, at / scale)
            times[at][span.kind.value] = times[at].get(span.kind.value, 0.0) + max(0.0, overlap)
    return ["chat" if "chat" in cell else max(cell, key=cell.__getitem__, default="") for cell in times]


def _heading(starting: DemoStarting) -> str:
    return f"{starting.policy} ({starting.number} of {starting.count})"


def _row(label: str, words: str, style: str = "") -> Text:
    return Text(f"{label:15}", style="dim").append(
        words, style=f"not dim {style}" if style != "dim" else style
    )


def _running(snapshot: SchedulerSnapshot) -> str:
    job = snapshot.running
    if job is None:
        return "nobody"
    return f"{job.kind.value}, {printable(job.flow)}, {counted(job.tokens_done, 'token')}"


def _style(snapshot: SchedulerSnapshot) -> str:
    return STYLES[snapshot.running.kind.value] if snapshot.running is not None else ""


def _waiting(moment: DemoMoment) -> list[tuple[str, str]]:
    """Per tier, the empty ones too, who waits in it."""
    rows = []
    for tier, label in _TIERS[moment.policy].items():
        kinds = Counter(job.kind.value for job in moment.snapshot.tiers.get(tier, ()))
        rows.append((label, ", ".join(f"{count} {kind}" for kind, count in kinds.items())))
    return rows


def _chat_row(number: int, chat: DemoChat) -> Text:
    row = _row(f"chat {number}", f"at {chat.sent_s:4.1f} s  ")
    if not chat.first_token:
        return row.append(f"waits, {chat.waited_s:.1f} s so far", style="not dim bold red")
    row.append(f"first token after {seconds(chat.waited_s)} s  ", style="not dim green")
    return row.append(" ".join(printable(chat.text).split()), style="dim")
