"""A picture of a conversation's branches; each point of it is a button that leads there."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from nicegui import ui

from domain.entities.conversation import ChatMessage
from presentation.web.shell import plain

LANE, ROW = 190, 46
"""Pixels between branches, and between a message and the next."""
MOST = 400
"""Messages in the picture; the newest ones."""
TO_THE_END = (
    """() => [...document.querySelectorAll(".u-node.u-on")].at(-1)?.scrollIntoView({block: "nearest"})"""
)
"""What is shown now has its end in sight."""
_WORDS = 48
_MARKS = re.compile(r"[*_#`>|~]+")


def place(messages: Sequence[ChatMessage]) -> dict[str, tuple[int, int]]:
    """Lane and row of each message: a first answer goes on in its lane, each other one begins a lane of its own."""
    places: dict[str, tuple[int, int]] = {}
    taken: set[str] = set()
    lanes = 0
    for message in messages:
        parent = message.parent_id
        if parent in places and parent not in taken:
            taken.add(parent)
            places[message.id] = (places[parent][0], places[parent][1] + 1)
        else:
            row = places[parent][1] + 1 if parent in places else 0
            places[message.id] = (lanes, row)
            lanes += 1
    return places


def draw_tree(messages: Sequence[ChatMessage], path: Collection[str], go: Callable[[str], Any]) -> None:
    """`path`: what is shown now. `go` is given the message that was chosen."""
    messages = messages[-MOST:]
    places = place(messages)
    width = (1 + max((lane for lane, _ in places.values()), default=0)) * LANE
    height = (1 + max((row for _, row in places.values()), default=0)) * ROW
    with (
        ui.element("div")
        .classes("u-tree-scroll")
        .props('tabindex=0 role=group aria-label="Branches of the conversation"'),
        ui.element("div").classes("u-tree").style(f"width:{width}px;height:{height}px"),
    ):
        lines = ui.element("svg").props(f"width={width} height={height} aria-hidden=true")
        with lines:
            for message in messages:
                if message.parent_id in places:
                    (x1, y1), (x2, y2) = _point(places[message.parent_id]), _point(places[message.id])
                    bend = f"M{x1} {y1} C{x1} {y1 + ROW * 0.6:g} {x2} {y2 - ROW * 0.6:g} {x2} {y2}"
                    on = message.id in path and message.parent_id in path
                    ui.element("path").props(f'd="{bend}"').classes("u-edge u-on" if on else "u-edge")
        for message in messages:
            _node(message, places[message.id], message.id in path, go)


def _node(message: ChatMessage, at: tuple[int, int], on_path: bool, go: Callable[[str], Any]) -> None:
    x, y = _point(at)
    who = "You" if message.role == "user" else "Shiv"
    words = " ".join(_MARKS.sub(" ", message.content).split())[:_WORDS] or "(nothing)"
    button = ui.element("button").props("type=button").classes(f"u-node u-node-{message.role}")
    button.style(f"left:{x - 9}px;top:{y - 15}px;max-width:{LANE - 8}px")
    if on_path:
        button.classes("u-on").props("aria-current=true")
    with button:
        ui.element("span").classes("u-dot")
        plain(f"{who}: ").classes("u-hidden")
        plain(words).classes("u-ellipsis")
    button.on("click", lambda: go(message.id), args=[])


def _point(at: tuple[int, int]) -> tuple[int, int]:
    return at[0] * LANE + 14, at[1] * ROW + 20
