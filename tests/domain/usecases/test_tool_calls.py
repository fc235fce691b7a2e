"""Calls are found in the text, wherever it is cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.entities.llm import Tool
from domain.usecases.tool_calls import MAX_CALLS, ToolCallFold

TOOLS = (Tool(name="look_up"), Tool(name="add"))
A = '<tool_call>\n{"name": "look_up", "arguments": {"a": "x < y"}}\n</tool_call>'
B = '<tool_call>{"name": "add", "arguments": {"n": [1, 2]}}</tool_call>'
BARE = '{"name": "add", "parameters": {"n": 1}}'
BRACKETS = '{"name": "look_up", "arguments": {"a": "[TOOL_CALLS]"}}'
LOOKED = ("look_up", {"a": "x < y"})
ADDED = ("add", {"n": 1})


def fold(*pieces: str) -> tuple[str, list[tuple[str, object]]]:
    """Shown text and calls."""
    folding = ToolCallFold(TOOLS, "c")
    told = [folding.feed(piece) for piece in pieces] + [folding.end()]
    found = [call for _, calls in told for call in calls]
    assert found == folding.calls
    assert len({call.id for call in found}) == len(found)
    return "".join(text for text, _ in told), [(call.name, call.arguments) for call in found]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "shown", "calls"),
    [
        ("Just words, a < b and <tool.", "Just words, a < b and <tool.", []),
        (A, "", [LOOKED]),
        (f"{A}\n{B}", "", [LOOKED, ("add", {"n": [1, 2]})]),
        (f"Wait. {A}", "Wait. ", [LOOKED]),
        (f"Wait. {A}\n{B}\n", "Wait. ", [LOOKED, ("add", {"n": [1, 2]})]),
        (f"{A}\n\nDone.", "\n\nDone.", [LOOKED]),
        (f"\n\n{A}", "", [LOOKED]),
        ("\n\nHello", "\n\nHello", []),
        (BARE, "", [ADDED]),
        (f"{BARE}; {BARE}\n", "", [ADDED, ADDED]),
        (f" [{BARE}, {BARE}]", "", [ADDED, ADDED]),
        ('{"an": "answer in JSON"}', '{"an": "answer in JSON"}', []),
        ('[{"an": "answer in JSON"}]', '[{"an": "answer in JSON"}]', []),
        ("[1] says so", "[1] says so", []),
        ('{"name": ["add"], "arguments": {}}', '{"name": ["add"], "arguments": {}}', []),
        (A.replace("look_up", "unknown"), A.replace("look_up", "unknown"), []),
        ('<tool_call>\n{"name": "add", "argum', '<tool_call>\n{"name": "add", "argum', []),
        (f"<tool_call>{BARE}", "", [ADDED]),
        (f'{A}\n<tool_call>\n{{"name', "", [LOOKED]),
        (f"{A}\n<tool", "", [LOOKED]),
        (f"It says {BARE}", f"It says {BARE}", []),
        ("", "", []),
        # Mistral, before and since its tokenizer 11.
        (f"[TOOL_CALLS] [{BARE}, {BARE}]", "", [ADDED, ADDED]),
        (f"[TOOL_CALLS][{BRACKETS}]", "", [("look_up", {"a": "[TOOL_CALLS]"})]),
        (f"I will. [TOOL_CALLS] [{BARE}]", "I will. ", [ADDED]),
        ('[TOOL_CALLS]add[ARGS]{"n": 1}', "", [ADDED]),
        ('[TOOL_CALLS]add[CALL_ID]a1B2c3D4e[ARGS]{"n": 1}', "", [ADDED]),
        ('[TOOL_CALLS]add[ARGS]{"n": 1}[TOOL_CALLS]add[ARGS]{"n": 1}', "", [ADDED, ADDED]),
        ('[TOOL_CALLS]other[ARGS]{"n": 1}', '[TOOL_CALLS]other[ARGS]{"n": 1}', []),
        ("[TOOL_CALLS] nothing", "[TOOL_CALLS] nothing", []),
        ("[TOOL_", "[TOOL_", []),
        # Llama 3.
        (f"<|python_tag|>{BARE}", "", [ADDED]),
        ("<|python_tag|>print(1)", "<|python_tag|>print(1)", []),
        ('{"name": "add", "arguments": "{\\"n\\": 1}"}', "", [ADDED]),
    ],
)
def test_text_and_calls_are_told_apart(
    text: str, shown: str, calls: list[tuple[str, object]], size: int
) -> None:
    assert fold(*(text[at : at + size] for at in range(0, len(text), size))) == (shown, calls)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"n": NaN}',
        '{"n": 1e999}',
        '{"n": "\\ud800"}',
        '"{\\"n\\": NaN}"',
        "[1]",
        "null",
        f'{{"n": {"9" * 5000}}}',
        f'{{"n": {"[" * 100_000}',
    ],
)
def test_what_no_program_could_read_is_no_call(arguments: str) -> None:
    for written in (
        f'<tool_call>{{"name": "add", "arguments": {arguments}}}</tool_call>',
        f"[TOOL_CALLS]add[ARGS]{arguments}",
        f'{{"name": "add", "arguments": {arguments}}}',
    ):
        assert fold(written) == (written, [])


def test_calls_without_end_are_text_from_a_number_on() -> None:
    shown, calls = fold(B * (MAX_CALLS + 2))
    assert len(calls) == MAX_CALLS
    assert shown == B * 2
    assert fold(f"[TOOL_CALLS][{', '.join([BARE] * (MAX_CALLS + 1))}]")[1] == []


@pytest.mark.parametrize(
    "begun", ["<tool_call>", "<tool_call>no call</tool_call>", "[TOOL_CALLS]", "<|python_tag|>"]
)
def test_blanks_before_what_is_no_call_are_text(begun: str) -> None:
    for written in (f" {begun}", f"\n\n{begun} and more"):
        assert fold(written) == (written, [])


def test_blanks_between_a_call_and_what_is_none_are_text() -> None:
    for begun in ("<tool_call>no call</tool_call>", "[TOOL_CALLS] no call", "<|python_tag|>"):
        assert fold(f"{A} \n{begun}") == (f" \n{begun}", [LOOKED])


PARTS = st.sampled_from(
    [
        *(A, B, BARE, BRACKETS, f"[{BARE}]", "<tool_call>", "</tool_call>", "<|python_tag|>"),
        *("[TOOL_CALLS]", "add", "[CALL_ID]", "[ARGS]", "{}", "[", "{", "}", "]", "<", " ", "\n"),
        *(";", ",", "text", '"', "\\"),
    ]
)
TEXTS = st.lists(st.one_of(PARTS, st.text(max_size=3)), max_size=12).map("".join)


@given(TEXTS, st.data())
def test_it_does_not_matter_where_the_answer_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    shown, calls = fold(text)
    assert fold(*pieces) == fold(*text) == (shown, calls)
    if not calls:
        assert shown == text
    json.dumps(calls, allow_nan=False)
