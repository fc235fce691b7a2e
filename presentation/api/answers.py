"""Answers in OpenAI's shape, whole and in pieces."""

import json
from typing import Any, Literal, Protocol

from pydantic import BaseModel, SerializerFunctionWrapHandler, model_serializer

from domain.entities.llm import GenerationResult, Tool, ToolCall, Usage
from domain.usecases.thinking import ThinkingFold
from domain.usecases.tool_calls import ToolCallFold

Json = dict[str, Any]
Finish = Literal["stop", "length", "tool_calls"]


class CachedTokens(BaseModel):
    cached_tokens: int


class UsageOut(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class CalledOut(BaseModel):
    name: str
    arguments: str
    """A JSON object, written as text."""


class ToolCallOut(BaseModel):
    id: str
    type: Literal["function"] = "function"
    function: CalledOut


class MessageOut(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str | None
    reasoning_content: str | None = None
    """What the model thought before it answered, where it thinks."""
    tool_calls: list[ToolCallOut] | None = None

    @model_serializer(mode="wrap")
    def _without_absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """`content` may be null; the others are only there when they say something."""
        return {name: value for name, value in dump(self).items() if value is not None or name == "content"}


class ChatChoice(BaseModel):
    index: int = 0
    message: MessageOut
    logprobs: None = None
    finish_reason: Finish


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: UsageOut


class TextChoice(BaseModel):
    index: int = 0
    text: str
    logprobs: None = None
    finish_reason: Finish


class TextCompletion(BaseModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    usage: UsageOut


class Answer(Protocol):
    """How one answer is written."""

    def feed(self, text: str) -> list[Json]:
        """Chunks for new text."""
        ...

    def end(self, result: GenerationResult) -> list[Json]:
        """The last chunks."""
        ...

    def whole(self, result: GenerationResult) -> BaseModel:
        """Everything at once."""
        ...


class ChatAnswer:
    """Thinking and tool calls are told apart from what is said."""

    def __init__(
        self, answer_id: str, created: int, model: str, tools: tuple[Tool, ...], *, usage: bool
    ) -> None:
        self._head = {"id": answer_id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._id, self._created, self._model = answer_id, created, model
        self._tools = tools
        self._usage = usage
        self._thinking = ThinkingFold()
        self._calls = ToolCallFold(tools, f"call-{answer_id}")
        self._begun = False

    def feed(self, text: str) -> list[Json]:
        said, thought = self._thinking.feed(text)
        calls: list[ToolCall] = []
        if self._tools:
            said, calls = self._calls.feed(said)
        return self._deltas(said, thought, calls)

    def end(self, result: GenerationResult) -> list[Json]:
        said, thought = self._thinking.end()
        calls: list[ToolCall] = []
        if self._tools:
            said, calls = self._calls.feed(said)
            rest, last = self._calls.end()
            said, calls = said + rest, calls + last
        chunks = self._deltas(said, thought, calls, always=True)
        reason = "tool_calls" if self._calls.calls else result.finish_reason
        chunks.append(self._chunk({}, reason))
        if self._usage:
            chunks.append({**self._head, "choices": [], "usage": usage_out(result.usage).model_dump()})
        return chunks

    def whole(self, result: GenerationResult) -> ChatCompletion:
        fold = ThinkingFold()
        fold.feed(result.text)
        fold.end()
        said, calls = fold.answer, []
        if self._tools:
            split = ToolCallFold(self._tools, f"call-{self._id}")
            said = split.feed(said)[0] + split.end()[0]
            calls = split.calls
        message = MessageOut(
            content=said if said or not calls else None,
            reasoning_content=fold.thinking or None,
            tool_calls=[tool_call_out(call) for call in calls] or None,
        )
        choice = ChatChoice(message=message, finish_reason="tool_calls" if calls else result.finish_reason)
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[choice],
            usage=usage_out(result.usage),
        )

    def _deltas(self, said: str, thought: str, calls: list[ToolCall], *, always: bool = False) -> list[Json]:
        deltas: list[Json] = []
        if thought:
            deltas.append({"reasoning_content": thought})
        if said:
            deltas.append({"content": said})
        first = len(self._calls.calls) - len(calls)
        for at, call in enumerate(calls):
            out = tool_call_out(call).model_dump()
            deltas.append({"tool_calls": [{"index": first + at, **out}]})
        if not self._begun and (deltas or always):
            self._begun = True
            deltas.insert(0, {"role": "assistant", "content": ""})
        return [self._chunk(delta, None) for delta in deltas]

    def _chunk(self, delta: Json, reason: str | None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        chunk: Json = {**self._head, "choices": [choice]}
        return {**chunk, "usage": None} if self._usage else chunk


class TextAnswer:
    """A raw prompt's continuation, as the model writes it."""

    def __init__(self, answer_id: str, created: int, model: str, *, usage: bool) -> None:
        self._head = {"id": answer_id, "object": "text_completion", "created": created, "model": model}
        self._usage = usage

    def feed(self, text: str) -> list[Json]:
        return [self._chunk(text, None)]

    def end(self, result: GenerationResult) -> list[Json]:
        chunks = [self._chunk("", result.finish_reason)]
        if self._usage:
            chunks.append({**self._head, "choices": [], "usage": usage_out(result.usage).model_dump()})
        return chunks

    def whole(self, result: GenerationResult) -> TextCompletion:
        choice = TextChoice(text=result.text, finish_reason=result.finish_reason)
        return TextCompletion.model_validate(
            {**self._head, "choices": [choice], "usage": usage_out(result.usage)}
        )

    def _chunk(self, text: str, reason: str | None) -> Json:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
        chunk: Json = {**self._head, "choices": [choice]}
        return {**chunk, "usage": None} if self._usage else chunk


def usage_out(usage: Usage) -> UsageOut:
    return UsageOut(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        prompt_tokens_details=CachedTokens(cached_tokens=usage.cached_tokens),
    )


def tool_call_out(call: ToolCall) -> ToolCallOut:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return ToolCallOut(id=call.id, function=CalledOut(name=call.name, arguments=arguments))
