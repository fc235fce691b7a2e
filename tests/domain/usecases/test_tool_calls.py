"""Calls are found in the text, wherever it is cut."""

import pytest

from domain.entities.llm import Tool
from domain.usecases.tool_calls import ToolCallFold

TOOLS = (Tool(name="look_up"), Tool(name="add"))
A = '<tool_call>\n{"name": "look_up", "arguments": {"a": "x < y"}}\n</tool_call>'
B = '<tool_call>{"name": "add", "arguments": {"n": [1, 2]}}</tool_call>'
BARE = '{"name": "add", "parameters": {"n": 1}}'


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "shown", "calls"),
    [
        ("Just words, a < b and <tool.", "Just words, a < b and <tool.", []),
        (A, "", [("look_up", {"a": "x < y"})]),
        (f"{A}\n{B}", "", [("look_up", {"a": "x < y"}), ("add", {"n": [1, 2]})]),
        (f"Wait. {A}", "Wait. ", [("look_up", {"a": "x < y"})]),
        (f"\n\n{A}", "", [("look_up", {"a": "x < y"})]),
        (BARE, "", [("add", {"n": 1})]),
        ('{"an": "answer in JSON"}', '{"an": "answer in JSON"}', []),
        (A.replace("look_up", "unknown"), A.replace("look_up", "unknown"), []),
        ('<tool_call>\n{"name": "add", "argum', '<tool_call>\n{"name": "add", "argum', []),
        (f"It says {BARE}", f"It says {BARE}", []),
        ("", "", []),
    ],
)
def test_text_and_calls_are_told_apart(
    text: str, shown: str, calls: list[tuple[str, object]], size: int
) -> None:
    fold = ToolCallFold(TOOLS, "c")
    said = ""
    found = []
    for at in range(0, len(text), size):
        new, complete = fold.feed(text[at : at + size])
        said += new
        found += complete
    rest, last = fold.end()
    assert said + rest == shown
    assert [(call.name, call.arguments) for call in found + last] == calls
    assert len({call.id for call in found + last}) == len(calls)
