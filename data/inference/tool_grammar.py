"""What a model with tools may write: free text, or calls in the form that its chat template shows, with valid arguments."""

import json
import re
from collections.abc import Mapping
from typing import Any

from domain.entities.llm import Tooling
from domain.errors import InvalidRequest
from domain.usecases.tool_calls import ARGUMENTS, CLOSE, MISTRAL, OPEN


def require_tools(template: str | None) -> None:
    """Raises `InvalidRequest` when the template does not know tools."""
    if template is None or not re.search(r"\btools\b", template):
        raise InvalidRequest(
            "This model's chat template has no tools. Use a model that was trained for tool calls, or leave `tools` out."
        )


def tool_grammar(
    tooling: Tooling,
    template: str,
    content: dict[str, Any] | None,
    layout: dict[str, Any],
    control: Mapping[str, int],
) -> str:
    """In Lark as llguidance reads it. `content` is the schema of an answer that is no call, `layout` how JSON is laid out,
    `control` the control tokens by their text.

    The schema of each tool is a grammar of its own, so that a `$ref` in it still finds what it names.
    """
    mark = next((tag for tag in (OPEN, MISTRAL) if tag in template), None)
    named = mark == MISTRAL and ARGUMENTS in template
    key = "parameters" if mark is None and '"parameters"' in template.replace("'", '"') else "arguments"
    tools = [tool for tool in tooling.tools if tooling.only in (None, tool.name)]
    if not tools:
        raise InvalidRequest(f"tool_choice names {tooling.only}, which is not among the tools.")
    rules = [f"call: {' | '.join(f'call_{at}' for at in range(len(tools)))}"]
    for at, tool in enumerate(tools):
        if named:
            rules.append(f"call_{at}: {json.dumps(tool.name)} {_mark(ARGUMENTS, control)} arguments_{at}")
        else:
            opening = json.dumps(f'{{"name": {json.dumps(tool.name)}, "{key}": ')
            rules.append(f'call_{at}: {opening} arguments_{at} "}}"')
        rules.append(
            f"arguments_{at}: %json {json.dumps({**_as_object(tool.parameters), 'x-guidance': layout})}"
        )
    several = tooling.parallel and not tooling.only
    text = "TEXT" if content is None else "content"
    if content is not None:
        rules.append(f"content: %json {json.dumps({**content, 'x-guidance': layout})}")
    if mark is None:
        rules.append("TEXT: /[^{](?s:.*)/")
        calls = "call"
    else:
        written = _mark(mark, control)
        if mark == OPEN:
            end = _mark(CLOSE, control)
            rules.append(f'body: "\\n" call "\\n" {end}')
            rules.append(f'more: ("\\n" {written} body)*')
        elif named:
            rules += ["body: call", f"more: ({written} call)*"]
        else:
            listed = '(", " call)*' if several else ""
            rules.append(f'body: " "? "[" call {listed} "]"')
        if mark in control:  # no text has one in it
            rules += ["TEXT: /(?s:.*)/", f"open: SOME? {written}", "SOME: /(?s:.+)/"]
        else:
            pattern = re.escape(mark)
            rules += [
                f"TEXT: /(?s:.*)/ & ~/(?s:.*){pattern}(?s:.*)/",
                f"open[lazy]: /(?s:.*){pattern}/",
            ]
        first = written if tooling.must_call or content is not None else "open"
        calls = f"{first} body" + (" more" if several and (mark == OPEN or named) else "")
    return "\n".join([f"start: {calls if tooling.must_call else f'{text} | {calls}'}", *rules])


def _mark(text: str, control: Mapping[str, int]) -> str:
    return f"<[{control[text]}]>" if text in control else json.dumps(text)


def _as_object(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", **parameters}
