"""Messages to prompt tokens: the model's own Jinja template, in a sandbox, with user text that cannot inject tokens."""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from data.clock import Clock
from data.inference.backend import Vocabulary
from data.inference.channels import ANSWER, has_channels
from domain.entities.llm import Message, Tool
from domain.errors import InvalidRequest
from domain.usecases.thinking import CLOSE, OPEN
from domain.usecases.tool_calls import MISTRAL

_SEAM = "\ufdd0"
"""A Unicode noncharacter: never in real text, so it can mark where tokens must not form."""
_NO_THINKING = {"enable_thinking": False, "thinking": False}
"""The first is what the templates of Qwen3, SmolLM3, GLM and most others ask for, the second those of Granite and DeepSeek.
Not given where thinking is allowed: there the template's own default holds."""
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")


class ChatTemplate:
    """Renders with the template, cut so that control tokens come from the template alone.

    A control token's text inside a message gets a seam after its first character. The rendered prompt is cut at the
    seams and the parts are to be tokenized apart, so that text becomes ordinary tokens; any other text is tokenized as if
    nothing had been done.
    """

    def __init__(self, vocabulary: Vocabulary, clock: Clock) -> None:
        self._vocabulary = vocabulary
        specials = sorted((text for text in vocabulary.control if len(text) > 1), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, specials))) if specials else None
        self._environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
        )
        self._environment.filters["tojson"] = _tojson
        self._environment.globals.update(raise_exception=_refuse)
        self._clock = clock
        self._compiled: jinja2.Template | None = None

    def parts(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        thinking: bool = True,
        now: datetime | None = None,
    ) -> list[str]:
        """The prompt, to be tokenized part by part; without `thinking` one that asks for the answer at once, if the
        template can. Some templates tell the model what day it is `now`, as the user's clock has it. Raises `InvalidRequest` when there is no template or the template refuses the messages."""
        source = self._vocabulary.template
        if source is None:
            raise InvalidRequest(
                "This model has no chat template. Send a raw prompt, or use an instruction-tuned model."
            )
        try:
            if self._compiled is None:
                self._compiled = self._environment.from_string(source)
            text = self._rendered(self._compiled, messages, tools, thinking, now or self._clock.now())
        except Exception as error:  # a template is a program from a file and can raise anything
            reason = str(error) or type(error).__name__
            raise InvalidRequest(f"The model's chat template refuses these messages: {reason}") from error
        parts = text.split(_SEAM)
        if not thinking and has_channels(self._vocabulary.control):
            return [*parts[:-1], parts[-1] + ANSWER]
        return parts if thinking or not opens_thought(parts) else without_thought(parts)

    def _rendered(
        self,
        template: jinja2.Template,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        thinking: bool,
        now: datetime,
    ) -> str:
        """Some models know no system message (Gemma 2, the first Mistral): there it begins the user's."""

        def render(messages: Sequence[Message]) -> str:
            text = template.render(
                messages=[self._message(message) for message in messages],
                add_generation_prompt=True,
                bos_token=self._vocabulary.bos_text,
                eos_token=self._vocabulary.eos_text,
                tools=[self._tool(tool) for tool in tools] or None,
                documents=None,
                strftime_now=now.astimezone().strftime,
                **({} if thinking else _NO_THINKING),
            )
            text.encode()  # a template can render half a character, which no tokenizer takes
            return text

        try:
            return render(messages)
        except jinja2.TemplateError:
            if (merged := _system_in_user(messages)) is None:
                raise
            return render(merged)

    def _message(self, message: Message) -> dict[str, Any]:
        """As templates expect it: arguments are objects there, not text."""
        shown: dict[str, Any] = {"role": message.role, "content": self._shield(message.content)}
        if message.tool_calls:
            shown["tool_calls"] = [
                {
                    "id": self._call_id(call.id),
                    "type": "function",
                    "function": {
                        "name": self._shield(call.name),
                        "arguments": self._shield_all(call.arguments),
                    },
                }
                for call in message.tool_calls
            ]
        if message.tool_call_id is not None:
            shown["tool_call_id"] = self._call_id(message.tool_call_id)
        return shown

    def _call_id(self, given: str) -> str:
        """Mistral's templates refuse every other form, and any program may have given it."""
        if MISTRAL in (self._vocabulary.template or "") and not _MISTRAL_ID.fullmatch(given):
            return hashlib.sha256(given.encode()).hexdigest()[:9]
        return self._shield(given)

    def _tool(self, tool: Tool) -> dict[str, Any]:
        return {"type": "function", "function": self._shield_all(tool.model_dump())}

    def _shield_all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._shield(value)
        if isinstance(value, dict):
            return {self._shield(key): self._shield_all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._shield_all(item) for item in value]
        return value

    def _shield(self, content: str) -> str:
        content = content.replace(_SEAM, "")
        if self._control is None:
            return content
        return self._control.sub(lambda found: found[0][0] + _SEAM + found[0][1:], content)


class _Generation(Extension):
    """Templates mark with `{% generation %}` what a training should learn from; it is text like any other here."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja's own extensions have it

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _system_in_user(messages: Sequence[Message]) -> list[Message] | None:
    """None unless a system message stands right before a user's."""
    if len(messages) < 2 or (messages[0].role, messages[1].role) != ("system", "user"):
        return None
    said = f"{messages[0].content}\n\n{messages[1].content}"
    return [messages[1].model_copy(update={"content": said}), *messages[2:]]


def opens_thought(parts: Sequence[str]) -> bool:
    """Whether the template has begun the answer's thinking, as those of models do that always think."""
    return parts[-1].rstrip().endswith(OPEN)


def without_thought(parts: Sequence[str]) -> list[str]:
    """The prompt with the thinking that it begins ended at once, in the way that such models know."""
    return [*parts[:-1], f"{parts[-1].rstrip()}\n\n{CLOSE}\n\n"]


def with_bos(ids: list[int], vocabulary: Vocabulary) -> list[int]:
    """Adds the beginning-of-sequence token if the model wants one and the text did not bring it."""
    if vocabulary.bos is None or ids[:1] == [vocabulary.bos]:
        return ids
    return [vocabulary.bos, *ids]


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
