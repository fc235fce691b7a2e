"""Telling an answer from the tool calls in it.

These written forms are common:
- `<tool_call>{"name": …, "arguments": …}</tool_call>`, as often as there are calls (Hermes, Qwen, SmolLM3),
- `[TOOL_CALLS][{"name": …, "arguments": …}, …]`, and later `[TOOL_CALLS]name[ARGS]{…}`, at the answer's end (Mistral),
- the bare object, with `arguments` or `parameters`, or a list of them, as the whole answer, perhaps after
  `<|python_tag|>` (Llama 3).

The engine lets a model write calls in no other form than the one that its chat template shows.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from domain.entities.llm import Tool, ToolCall
from domain.usecases.thinking import beginning_of_tag

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MISTRAL, CALL_ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
PYTHON = "<|python_tag|>"
MARKS = (OPEN, CLOSE, MISTRAL, CALL_ID, ARGUMENTS)
"""What a grammar may ask for, and some vocabularies have control tokens for."""
MAX_CALLS = 128
"""In one answer, as many as a message may have. What would be more is text."""

_TAGS = (OPEN, MISTRAL, PYTHON)
_TAG = re.compile("|".join(map(re.escape, _TAGS)))
_BARE = re.compile(r"\s*(\{|\[\s*\{)")
_PERHAPS_BARE = re.compile(r"\s*(\[\s*)?")
_NAMED = re.compile(
    r"\[TOOL_CALLS\]\s*(?P<name>[a-zA-Z0-9_.-]{1,64})\s*(\[CALL_ID\][^\[\]]{0,200})?\[ARGS\]\s*"
)
_BEFORE = re.compile(rf"({_TAG.pattern})?\s*")
_BETWEEN = re.compile(r"[\s,;]*")


class ToolCallFold:
    """Takes an answer piece by piece and gives the text apart from the calls. A call comes when it is complete.

    The sums do not depend on where the answer was cut.
    """

    def __init__(self, tools: Sequence[Tool], first_id: str) -> None:
        self.calls: list[ToolCall] = []
        self._names = {tool.name for tool in tools}
        self._first_id = first_id
        self._blanks = ""
        """Before what is held. They belong to the answer only if that is no call."""
        self._held = ""
        self._searched = 0
        """In a call that has begun: so much of what is held has no end of it."""
        self._rest: list[str] | None = None
        """What only the end of the answer tells to be calls or text."""
        self._fresh = True
        """No text since the beginning or the last call: blanks wait for what follows them."""

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        """New text to show, and new calls."""
        if self._rest is not None:
            self._rest.append(text)
            return "", []
        self._held += text
        before = len(self.calls)
        shown = ""
        while self._held:
            if not self._searched:
                shown += self._up_to_a_call()
                if not self._searched:
                    break
            end = self._held.find(CLOSE, self._searched)
            if end < 0:
                self._searched = max(len(OPEN), len(self._held) - len(CLOSE) + 1)
                break
            self._searched = 0
            if self._called(self._held[len(OPEN) : end]):
                self._held, self._fresh = self._held[end + len(CLOSE) :], True
            else:
                shown += self._blanks + self._take(end + len(CLOSE))
            self._blanks = ""
        return shown, self.calls[before:]

    def end(self) -> tuple[str, list[ToolCall]]:
        """Nothing more comes: what was held back is calls or text. After a call, one that was cut off is neither."""
        rest = self._blanks + "".join(self._rest or (self._held,))
        self._blanks, self._held = "", ""
        before, written = len(self.calls), rest.strip()
        if self._called(rest) or (before and (written.startswith(OPEN) or OPEN.startswith(written))):
            rest = ""
        return rest, self.calls[before:]

    def _up_to_a_call(self) -> str:
        """Text that may be shown. What is held then begins with a call of the first form, or waits."""
        if self._fresh and not self.calls:
            if _BARE.match(self._held):
                self._wait_for_the_end()
                return ""
            if _PERHAPS_BARE.fullmatch(self._held):
                return ""
        tag = _TAG.search(self._held)
        known = tag.start() if tag else len(self._held) - beginning_of_tag(self._held, _TAGS)
        shown = ""
        if self._held[:known].strip() or not self._fresh:
            shown = self._take(known)
        elif tag:
            self._blanks, self._held = self._held[:known], self._held[known:]
        if tag and tag[0] == OPEN:
            self._searched = len(OPEN)
        elif tag:
            self._wait_for_the_end()
        return shown

    def _wait_for_the_end(self) -> None:
        self._rest, self._held = [self._held], ""

    def _take(self, size: int) -> str:
        text, self._held = self._held[:size], self._held[size:]
        self._fresh = self._fresh and not text
        return text

    def _called(self, written: str) -> bool:
        """Whether it is calls and nothing else; they are then among `calls`."""
        try:
            found = [self._checked(value) for value in _values(written.strip())]
        except (ValueError, RecursionError):
            return False
        if not found or len(self.calls) + len(found) > MAX_CALLS:
            return False
        for name, arguments in found:
            call_id = f"{self._first_id}-{len(self.calls)}"
            self.calls.append(ToolCall(id=call_id, name=name, arguments=arguments))
        return True

    def _checked(self, value: Any) -> tuple[str, dict[str, Any]]:
        """Raises `ValueError` for what is no call of one of the tools."""
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in self._names:
            raise ValueError("it names no tool")
        arguments = value.get("arguments", value.get("parameters"))
        if isinstance(arguments, str):
            arguments = _DECODER.decode(arguments)
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are no object")
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()  # what cannot be told is no call
        return name, arguments


def _values(text: str) -> Iterator[Any]:
    """What may be calls, one after another. Raises `ValueError`, `RecursionError`."""
    at = 0
    while at < len(text):
        named = _NAMED.match(text, at)
        before = named or _BEFORE.match(text, at)
        assert before is not None
        value, at = _DECODER.raw_decode(text, before.end())
        if named:
            yield {"name": named["name"], "arguments": value}
        elif isinstance(value, list):
            yield from value
        else:
            yield value
        between = _BETWEEN.match(text, at)
        assert between is not None
        at = between.end()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
