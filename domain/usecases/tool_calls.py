"""Telling an answer from the tool calls in it.

Two written forms are common. Most models write `<tool_call>{"name": …, "arguments": …}</tool_call>` (Hermes, Qwen, SmolLM3);
others the bare object, with `arguments` or `parameters`, as the whole answer (Llama 3). The engine lets a model write
calls in no other form than the one that its chat template shows.
"""

import json
from collections.abc import Sequence
from typing import Any

from domain.entities.llm import Tool, ToolCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class ToolCallFold:
    """Takes an answer piece by piece and gives the text apart from the calls. A call comes when it is complete."""

    def __init__(self, tools: Sequence[Tool], first_id: str) -> None:
        self.calls: list[ToolCall] = []
        self._names = {tool.name for tool in tools}
        self._first_id = first_id
        self._held = ""
        self._any_text = False

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        """New text to show, and new calls."""
        self._held += text
        before = len(self.calls)
        shown = ""
        while self._held:
            if not self._any_text and not self.calls and self._held.lstrip().startswith("{"):
                break  # a bare call, or an answer in JSON: the end tells
            at = self._held.find(OPEN)
            if at < 0:
                keep = _beginning_of_tag(self._held)
                shown += self._take(len(self._held) - keep)
                break
            shown += self._take(at)
            end = self._held.find(CLOSE)
            if end < 0:
                break
            call = self._call(self._held[len(OPEN) : end])
            if call is None:
                shown += self._take(end + len(CLOSE))
            else:
                self._held = self._held[end + len(CLOSE) :].lstrip("\n")
        return shown, self.calls[before:]

    def end(self) -> tuple[str, list[ToolCall]]:
        """Nothing more comes: what was held back is a call or text."""
        rest, self._held = self._held, ""
        call = self._call(rest.removeprefix(OPEN)) if rest.strip() else None
        return ("" if call else rest), ([call] if call else [])

    def _take(self, size: int) -> str:
        text, self._held = self._held[:size], self._held[size:]
        if not self._any_text and not text.strip():
            return ""  # blanks before a call are no answer
        self._any_text = True
        return text

    def _call(self, written: str) -> ToolCall | None:
        try:
            found: Any = json.loads(written)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.get("name") not in self._names:
            return None
        arguments = found.get("arguments", found.get("parameters"))
        if not isinstance(arguments, dict):
            return None
        call = ToolCall(id=f"{self._first_id}-{len(self.calls)}", name=found["name"], arguments=arguments)
        self.calls.append(call)
        return call


def _beginning_of_tag(text: str) -> int:
    """Length of the longest end of the text with which the tag begins."""
    return next((n for n in range(min(len(OPEN) - 1, len(text)), 0, -1) if OPEN.startswith(text[-n:])), 0)
