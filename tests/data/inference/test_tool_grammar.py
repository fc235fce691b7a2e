"""What a model with tools may write, and how tools and calls are shown to it."""

from typing import Any

import pytest

from data.clock import SystemClock
from data.inference.backend import Vocabulary
from data.inference.chat_template import ChatTemplate
from data.inference.constraint import Grammars, Matcher
from data.inference.tool_grammar import require_tools
from domain.entities.llm import Message, Tool, ToolCall, Tooling
from domain.errors import InvalidRequest, InvalidSchema
from domain.repositories.inference_runner import RunnerJob

TAGGED = "{% for tool in tools %}{{ tool | tojson }}{% endfor %}<tool_call>{{ messages }}"
BARE = "{{ tools }} {'name': ..., 'parameters': ...}"
WEATHER = Tool(
    name="weather",
    parameters={
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/city"}},
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"city": {"enum": ["Bonn", "Rome"]}},
    },
)
CLOCK = Tool(name="clock")
A = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bonn"}}\n</tool_call>'
B = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'


def vocabulary(template: str) -> Vocabulary:
    """One token for each byte."""
    return Vocabulary(
        size=257,
        piece=lambda token: bytes([token]) if token < 256 else b"",
        control={"<end>": 256},
        end=frozenset({256}),
        encode=lambda text, specials: list(text.encode()),
        bos=None,
        template=template,
    )


def matcher(template: str, schema: dict[str, object] | None = None, **fields: Any) -> Matcher:
    tooling = Tooling(tools=(WEATHER, CLOCK), **fields)
    job = RunnerJob(id="j", cache_key="k", prompt="x", max_tokens=9, json_schema=schema, tooling=tooling)
    found = Grammars(vocabulary(template)).for_job(job)
    assert found is not None
    return found


def allows(found: Matcher, text: str) -> bool:
    """The text as a whole answer."""
    stopped = False
    for byte in text.encode():
        if stopped or not found.allows(byte):
            return False
        stopped = found.consume(byte)
    return stopped or found.allows(256)


@pytest.mark.parametrize(
    ("text", "auto", "required"),
    [
        ("Hello < you", True, False),
        (A, True, True),
        (f"{A}\n{B}", True, True),
        (f"Let me see. {A}", True, False),
        (f"<think>\nHm.\n</think>\n\n{A}", True, False),
        (A.replace("Bonn", "Oslo"), False, False),
        (A.replace('"weather"', '"other"'), False, False),
        ("<tool_call>\nnothing", False, False),
        (f"{A} and more", False, False),
    ],
)
def test_calls_are_in_the_templates_form_and_obey_their_schema(text: str, auto: bool, required: bool) -> None:
    assert allows(matcher(TAGGED), text) == auto
    assert allows(matcher(TAGGED, must_call=True), text) == required


def test_one_tool_or_one_call_may_be_asked_for() -> None:
    only: dict[str, Any] = {"must_call": True, "only": "clock"}
    assert allows(matcher(TAGGED, **only), B)
    assert not allows(matcher(TAGGED, **only), A)
    assert not allows(matcher(TAGGED, **only), f"{B}\n{B}")
    assert not allows(matcher(TAGGED, must_call=True, parallel=False), f"{A}\n{B}")
    with pytest.raises(InvalidRequest, match="not among the tools"):
        matcher(TAGGED, must_call=True, only="other")


def test_some_templates_want_the_bare_object() -> None:
    call = '{"name": "weather", "parameters": {"city": "Rome"}}'
    assert allows(matcher(BARE), call)
    assert allows(matcher(BARE), "Hello")
    assert not allows(matcher(BARE), call.replace("Rome", "Oslo"))
    assert not allows(matcher(BARE, must_call=True), "Hello")


def test_an_answer_that_is_no_call_obeys_its_own_schema() -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
    }
    for text, allowed in (('{"a": 1}', True), (A, True), ("Hello", False)):
        assert allows(matcher(TAGGED, schema), text) == allowed


def test_a_schema_that_cannot_be_compiled_is_refused() -> None:
    tooling = Tooling(tools=(Tool(name="odd", parameters={"properties": {"a": {"type": "none such"}}}),))
    job = RunnerJob(id="j", cache_key="k", prompt="x", max_tokens=9, tooling=tooling)
    with pytest.raises(InvalidSchema):
        Grammars(vocabulary(TAGGED)).for_job(job)


def test_a_template_without_tools_is_told_apart() -> None:
    require_tools(TAGGED)
    for template in (None, "{{ messages }}", "{{ toolset }}"):
        with pytest.raises(InvalidRequest, match="no tools"):
            require_tools(template)


def test_the_template_sees_tools_and_calls_and_no_control_token_in_either() -> None:
    template = "{{ tools | tojson }}{% for m in messages %}{{ (m.tool_calls or []) | tojson }}{{ m.tool_call_id }}{% endfor %}"
    tool = Tool(name="t", description="says <end>", parameters={"<end>": ["<end>"]})
    call = ToolCall(id="c1", name="t", arguments={"text": "<end>"})
    messages = (
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="done", tool_call_id="c1"),
    )
    parts = ChatTemplate(vocabulary(template), SystemClock()).parts(messages, (tool,))
    assert not any("<end>" in part for part in parts)
    text = "".join(parts)
    assert text.count("<end>") == 4
    assert '"arguments": {"text": "<end>"}' in text
    assert text.endswith("c1")
