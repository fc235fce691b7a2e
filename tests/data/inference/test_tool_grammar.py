"""What a model with tools may write, and how tools and calls are shown to it."""

import re
from collections.abc import Sequence as Seq
from typing import Any

import pytest

from data.clock import SystemClock
from data.inference.backend import Vocabulary
from data.inference.chat_template import ChatTemplate
from data.inference.constraint import Grammars, Matcher
from data.inference.sequence import Sequence
from data.inference.tool_grammar import require_tools
from domain.entities.llm import Message, Tool, ToolCall, Tooling
from domain.errors import InvalidRequest, InvalidSchema
from domain.repositories.inference_runner import RunnerJob
from domain.usecases.tool_calls import ToolCallFold
from tests.data.inference.engines import chat

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


LISTED = "{{ tools }}[TOOL_CALLS] {{ messages }}"
NAMED = "{{ tools }}[TOOL_CALLS]{{ messages }}[ARGS]"


def vocabulary(template: str, *control: str) -> Vocabulary:
    """One token for each byte, and one for each of the control tokens."""
    names = ("<end>", *control)
    return Vocabulary(
        size=256 + len(names),
        piece=lambda token: bytes([token]) if token < 256 else b"",
        control={name: 256 + at for at, name in enumerate(names)},
        end=frozenset({256}),
        encode=lambda text, specials: list(text.encode()),
        bos=None,
        template=template,
    )


def matcher(
    template: str, schema: dict[str, object] | None = None, control: Seq[str] = (), **fields: Any
) -> Matcher:
    tooling = Tooling(tools=(WEATHER, CLOCK), **fields)
    job = RunnerJob(id="j", cache_key="k", prompt="x", max_tokens=9, json_schema=schema, tooling=tooling)
    found = Grammars(vocabulary(template, *control)).for_job(job)
    assert found is not None
    return found


def allows(found: Matcher, text: str, control: Seq[str] = ()) -> bool:
    """The text as a whole answer, with these control tokens in it."""
    stopped = False
    parts = re.split(f"({'|'.join(map(re.escape, control))})", text) if control else [text]
    for part in parts:
        tokens = [257 + control.index(part)] if part in control else part.encode()
        for token in tokens:
            if stopped or not found.allows(token):
                return False
            stopped = found.consume(token)
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


@pytest.mark.parametrize("control", [(), ("[TOOL_CALLS]", "[ARGS]")])
@pytest.mark.parametrize(
    ("template", "one", "two"),
    [
        (
            LISTED,
            '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Bonn"}}]',
            '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Bonn"}}, {"name": "clock", "arguments": {}}]',
        ),
        (
            NAMED,
            '[TOOL_CALLS]weather[ARGS]{"city": "Bonn"}',
            '[TOOL_CALLS]weather[ARGS]{"city": "Bonn"}[TOOL_CALLS]clock[ARGS]{}',
        ),
    ],
)
def test_calls_in_mistrals_forms(template: str, one: str, two: str, control: tuple[str, ...]) -> None:
    for text, auto, required in (
        ("Hello [TOOL", True, False),
        (one, True, True),
        (two, True, True),
        (f"Let me see. {one}", True, False),
        (one.replace("Bonn", "Oslo"), False, False),
        (one.replace("weather", "other"), False, False),
        (f"{one} and more", False, False),
    ):
        assert allows(matcher(template, control=control), text, control) == auto
        assert allows(matcher(template, control=control, must_call=True), text, control) == required
    assert not allows(matcher(template, control=control, must_call=True, parallel=False), two, control)
    assert not allows(matcher(template, control=control, must_call=True, only="clock"), one, control)
    folding = ToolCallFold((WEATHER, CLOCK), "c")
    assert folding.feed(two)[0] + folding.end()[0] == ""
    assert [call.name for call in folding.calls] == ["weather", "clock"]


def test_control_tokens_of_calls_are_told_where_there_are_tools() -> None:
    words = vocabulary(NAMED, "[TOOL_CALLS]", "[ARGS]")
    for tooling, told in ((Tooling(tools=(CLOCK,)), "[TOOL_CALLS]c[ARGS]{}"), (None, "c{}")):
        job = RunnerJob(id="j", cache_key="k", messages=chat("x"), max_tokens=9, tooling=tooling)
        sequence = Sequence(job, [1], words, 100, None)
        for token in (257, ord("c"), 258, ord("{"), ord("}"), 256):
            sequence.accept(token)
        assert sequence.text == told


def test_the_tags_may_be_control_tokens() -> None:
    control = ("<tool_call>", "</tool_call>")
    for text, allowed in (("Hello", True), (A, True), (f"So. {A}\n{B}", True), (f"{A} and more", False)):
        assert allows(matcher(TAGGED, control=control), text, control) == allowed


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


def test_ids_of_calls_have_the_form_that_mistrals_templates_ask_for() -> None:
    template = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.id }}{% endfor %}{{ m.tool_call_id }} {% endfor %}"
    call = ToolCall(id="call-chatcmpl-1-0", name="t", arguments={})
    messages = (
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="done", tool_call_id="call-chatcmpl-1-0"),
        Message(role="tool", content="done", tool_call_id="a1B2c3D4e"),
    )

    def ids(source: str) -> list[str]:
        return "".join(ChatTemplate(vocabulary(source), SystemClock()).parts(messages)).split()

    assert ids(template) == ["call-chatcmpl-1-0", "call-chatcmpl-1-0", "a1B2c3D4e"]
    one, same, theirs = ids(f"{template}{{# [TOOL_CALLS] #}}")
    assert one == same
    assert re.fullmatch("[0-9a-f]{9}", one)
    assert theirs == "a1B2c3D4e"
