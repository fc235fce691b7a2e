"""What a model with tools may write: free text, or calls in the form that its chat template shows, with valid arguments."""

import json
import re
from typing import Any

from domain.entities.llm import Tooling
from domain.errors import InvalidRequest

_TAG = "<tool_call>"


def require_tools(template: str | None) -> None:
    """Raises `InvalidRequest` when the template does not know tools."""
    if template is None or not re.search(r"\btools\b", template):
        raise InvalidRequest(
            "This model's chat template has no tools. Use a model that was trained for tool calls, or leave `tools` out."
        )


def tool_grammar(
    tooling: Tooling, template: str, content: dict[str, Any] | None, layout: dict[str, Any]
) -> str:
    """In Lark as llguidance reads it. `content` is the schema of an answer that is no call, `layout` how JSON is laid out.

    The schema of each tool is a grammar of its own, so that a `$ref` in it still finds what it names.
    """
    tagged = _TAG in template
    key = "arguments" if tagged or '"parameters"' not in template.replace("'", '"') else "parameters"
    tools = [tool for tool in tooling.tools if tooling.only in (None, tool.name)]
    if not tools:
        raise InvalidRequest(f"tool_choice names {tooling.only}, which is not among the tools.")
    rules = [f"call: {' | '.join(f'call_{at}' for at in range(len(tools)))}"]
    for at, tool in enumerate(tools):
        opening = json.dumps(f'{{"name": {json.dumps(tool.name)}, "{key}": ')
        rules.append(f'call_{at}: {opening} arguments_{at} "}}"')
        rules.append(
            f"arguments_{at}: %json {json.dumps({**_as_object(tool.parameters), 'x-guidance': layout})}"
        )
    text = "TEXT" if content is None else "content"
    if content is not None:
        rules.append(f"content: %json {json.dumps({**content, 'x-guidance': layout})}")
    if tagged:
        rules += [
            "TEXT: /(?s:.*)/ & ~/(?s:.*)<tool_call>(?s:.*)/",
            "open[lazy]: /(?s:.*)<tool_call>/",
            'body: "\\n" call "\\n</tool_call>"',
            'more: ("\\n<tool_call>" body)*',
        ]
        first = '"<tool_call>"' if tooling.must_call or content is not None else "open"
        calls = f"{first} body" + (" more" if tooling.parallel and not tooling.only else "")
    else:
        rules.append("TEXT: /[^{](?s:.*)/")
        calls = "call"
    return "\n".join([f"start: {calls if tooling.must_call else f'{text} | {calls}'}", *rules])


def _as_object(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", **parameters}
