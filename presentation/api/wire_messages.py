"""Messages, tools and answer formats as they come over the wire."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from domain.entities.llm import Message, Tool, ToolCall

Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=8_000_000)]
Schema = dict[str, Any]


class Wire(BaseModel):
    """Numbers that are no numbers are refused everywhere."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class TextPart(Wire):
    type: Literal["text"]
    text: Text


class CalledFunction(Wire):
    name: Name
    arguments: Text = "{}"


class CallIn(Wire):
    id: Name
    type: Literal["function"] = "function"
    function: CalledFunction

    def entity(self) -> ToolCall:
        try:
            arguments = json.loads(self.function.arguments or "{}")
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            raise ValueError("the arguments of a tool call are a JSON object, written as text")
        return ToolCall(id=self.id, name=self.function.name, arguments=arguments)


class MessageIn(Wire):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | Annotated[list[TextPart], Field(max_length=1_000)] | None = None
    tool_calls: Annotated[list[CallIn], Field(max_length=128)] | None = None
    tool_call_id: Name | None = None

    @model_validator(mode="after")
    def _calls(self) -> "MessageIn":
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise ValueError("content is missing")
        for call in self.tool_calls or ():
            call.entity()
        return self

    def entity(self) -> Message:
        content = self.content or ""
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        calls = tuple(call.entity() for call in self.tool_calls or ())
        role = "system" if self.role == "developer" else self.role
        return Message(
            role=role,
            content=text,
            tool_calls=calls if role == "assistant" else (),
            tool_call_id=self.tool_call_id if role == "tool" else None,
        )


class FunctionIn(Wire):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    description: Annotated[str, Field(max_length=20_000)] | None = None
    parameters: Schema | None = None


class ToolIn(Wire):
    type: Literal["function"]
    function: FunctionIn

    def entity(self) -> Tool:
        function = self.function
        fields = {"parameters": function.parameters} if function.parameters else {}
        return Tool(name=function.name, description=function.description or "", **fields)


class ChosenFunction(Wire):
    name: Name


class ToolChoiceIn(Wire):
    type: Literal["function"]
    function: ChosenFunction


class JsonSchemaIn(Wire):
    name: Name = "answer"
    schema_: Annotated[Schema, Field(alias="schema")]


class ResponseFormat(Wire):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaIn | None = None

    def schema_of_answer(self) -> Schema | None:
        if self.type == "json_schema":
            return self.json_schema.schema_ if self.json_schema else None
        return {"type": "object"} if self.type == "json_object" else None

    @model_validator(mode="after")
    def _has_schema(self) -> "ResponseFormat":
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("json_schema is missing")
        return self
