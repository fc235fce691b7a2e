"""The OpenAI-compatible protocol: a job as a request, and an answer's stream as pieces of text."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from data.inference.remote.errors import ServerFailed
from data.inference.remote.server import CONTINUED
from domain.entities.llm import FinishReason, Message
from domain.entities.models import RemoteModel
from domain.repositories.inference_runner import RunnerJob
from domain.usecases.tool_calls import CLOSE, OPEN

THINK, THOUGHT = "<think>", "</think>"
_SEEDS = 2**31
"""Servers differ in how large a seed may be; all take this."""
_TEMPLATE_KINDS = ("llama.cpp", "vllm")
"""They hand words on to the chat template; others may refuse a request that has any."""


def request(
    remote: RemoteModel, job: RunnerJob, begun: str, tokens_done: int, kind: str, *, whole: bool
) -> tuple[str, dict[str, Any]]:
    """Path and body. `begun` is the answer's text so far, which the server is to continue.

    Stop strings are looked for here. The server gets them only if the answer comes as a `whole`: to keep back what may
    begin one, a server tears tokens apart, and a text that ends inside a token is continued differently.
    """
    sampling = job.sampling
    body: dict[str, Any] = {
        "model": remote.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": job.max_tokens - tokens_done,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        # Drawn anew after a cut, else the same numbers would choose the next words again.
        "seed": ((sampling.seed or 0) + tokens_done) % _SEEDS,
    }
    if sampling.top_k:
        body["top_k"] = sampling.top_k
    if sampling.min_p:
        body["min_p"] = sampling.min_p
    if job.stop and whole:
        body["stop"] = list(job.stop)
    if remote.priority:
        body["priority"] = max(0, job.tier)
    if kind == "llama.cpp":
        body["return_progress"] = True
        body["cache_prompt"] = True
    if kind == "vllm":
        body["stream_options"]["continuous_usage_stats"] = True
    if not job.thinking and kind in _TEMPLATE_KINDS:
        body["chat_template_kwargs"] = {"enable_thinking": False}
    if job.json_schema is not None:
        schema = {"name": "answer", "schema": job.json_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if job.prompt is not None:
        return "completions", {**body, "prompt": job.prompt + begun}
    messages = [_message(message) for message in job.messages]
    if begun:
        messages.append({"role": "assistant", "content": begun})
        body.update(CONTINUED)
    if job.tooling is not None:
        body["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in job.tooling.tools]
        if job.tooling.only is not None:
            body["tool_choice"] = {"type": "function", "function": {"name": job.tooling.only}}
        elif job.tooling.must_call:
            body["tool_choice"] = "required"
    return "chat/completions", {**body, "messages": messages}


def _message(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        told["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        told["tool_call_id"] = message.tool_call_id
    return told


@dataclass(frozen=True, slots=True)
class Piece:
    """What one part of the stream says; counts are of this request."""

    text: str = ""
    tokens: int | None = None
    """Produced so far, if it says."""
    prompt_tokens: int | None = None
    prefilled_tokens: int | None = None
    cached_tokens: int | None = None
    finish: FinishReason | None = None


@dataclass(slots=True)
class _Calls:
    """Tool calls that come in parts."""

    names: dict[int, str] = field(default_factory=dict)
    arguments: dict[int, str] = field(default_factory=dict)

    def take(self, delta: Mapping[str, Any]) -> None:
        for call in delta.get("tool_calls") or ():
            at, function = int(call.get("index", 0)), call.get("function") or {}
            self.names[at] = self.names.get(at, "") + str(function.get("name") or "")
            self.arguments[at] = self.arguments.get(at, "") + str(function.get("arguments") or "")

    def text(self) -> str:
        """In the form that `domain.usecases.tool_calls` reads."""
        written = []
        for at, name in sorted(self.names.items()):
            try:
                arguments = json.loads(self.arguments[at] or "{}")
            except (ValueError, RecursionError):
                arguments = {}
            written.append(f"{OPEN}{json.dumps({'name': name, 'arguments': arguments})}{CLOSE}")
        self.names.clear()
        return "\n".join(written)


async def pieces(lines: AsyncIterator[str], name: str, begun: str = "") -> AsyncGenerator[Piece]:
    """Reads server-sent events to their end. Raises `ServerFailed` when the stream ends before the answer does.

    Where the answer was `begun` with half a thought, some servers go on in `reasoning_content` and others in the text, with
    the closing tag in it.
    """
    finished = False
    thinks = False
    half = begun.rfind(THINK) > begun.rfind(THOUGHT)
    calls = _Calls()
    async for line in lines:
        if not line.startswith("data:"):
            continue  # comments keep the connection alive; blank lines end events
        data = line[5:].strip()
        if data == "[DONE]":
            break
        try:
            event = json.loads(data)
            if "error" in event:
                raise ServerFailed(f"{name} gave up: {json.dumps(event['error'])[:300]}")
            choice = (event.get("choices") or [{}])[0]
            delta = choice.get("delta") or {}
            calls.take(delta)
            thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
            text = delta.get("content") or choice.get("text") or ""
            if not isinstance(thought, str) or not isinstance(text, str):
                raise ValueError("the text is no text")
            shown = ""
            if thought:
                shown, thinks = ("" if thinks or half else THINK) + thought, True
            if text:
                shown, thinks = shown + (THOUGHT if thinks else "") + text, False
            half = half and not shown
            finish = _finish(choice.get("finish_reason"))
            if finish is not None and calls.names:
                shown += calls.text()
            finished = finished or finish is not None
            piece = Piece(shown, *_counts(event), finish)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise ServerFailed(f"{name} sent what cannot be read: {error}.") from None
        yield piece
    if not finished:
        raise ServerFailed(f"{name} broke off in the middle of the answer.")


def _finish(told: Any) -> FinishReason | None:
    if told is None:
        return None
    return "length" if told == "length" else "stop"


def _counts(event: Mapping[str, Any]) -> tuple[int | None, int | None, int | None, int | None]:
    """Tokens produced, of the prompt, prefilled, cached."""
    if isinstance(progress := event.get("prompt_progress"), dict):
        total, done = int(progress["total"]), int(progress["processed"])
        return None, total, done, int(progress.get("cache") or 0)
    usage = event.get("usage")
    if not isinstance(usage, dict):
        return None, None, None, None
    prompt = int(usage.get("prompt_tokens") or 0)
    details = usage.get("prompt_tokens_details") or {}
    return int(usage.get("completion_tokens") or 0), prompt, prompt, int(details.get("cached_tokens") or 0)
