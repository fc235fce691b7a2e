"""One job as the token loop holds it, whether it advances or is stopped."""

from collections.abc import Sequence as Seq

from data.inference.backend import Backend, Vocabulary
from data.inference.batches import Batches
from data.inference.channels import ChannelReader, has_channels
from data.inference.constraint import Matcher
from data.inference.sampling import REDRAW
from data.inference.text import StopMatcher, TextDecoder
from domain.entities.llm import FinishReason, Usage
from domain.repositories.inference_runner import RunnerJob
from domain.usecases.thinking import CLOSE, OPEN
from domain.usecases.tool_calls import MARKS

_THOUGHT = {
    OPEN: OPEN,
    CLOSE: CLOSE,
    "[THINK]": OPEN,
    "[/THINK]": CLOSE,
    "<seed:think>": OPEN,
    "</seed:think>": CLOSE,
}
"""The words of Qwen and most others, of Mistral, and of Seed."""


class Sequence:
    """Prompt and produced tokens, and all that turns a token into text.

    Everything here is a function of the job and its tokens, so a new process rebuilds it from `produced`.
    """

    def __init__(
        self,
        job: RunnerJob,
        prompt: Seq[int],
        vocabulary: Vocabulary,
        context_tokens: int,
        matcher: Matcher | None,
        begun: str = "",
    ) -> None:
        """`begun` is what the prompt has of the answer already, and whoever reads it should know."""
        self.job = job
        self.tokens = list(prompt)
        self.prompt_tokens = len(prompt)
        self.cached_tokens: int | None = None
        """Prompt tokens found in kept state when the job first ran here; none before that."""
        self.batches = Batches()
        """In which its tokens were evaluated, also when that state is gone."""
        self.in_haste = False
        """Its state was lost again before it came any further: now it is made in chunks, whatever the bits."""
        self._lost_at: int | None = None
        self.finish_reason: FinishReason | None = None
        self._vocabulary = vocabulary
        self._context_tokens = context_tokens
        self._matcher = matcher
        self._decoder = TextDecoder()
        self._stops = StopMatcher(job.stop)
        self._text: list[str] = []
        self._begun = begun
        marks = _THOUGHT | ({mark: mark for mark in MARKS} if job.tooling is not None else {})
        self._marks = {
            vocabulary.control[token]: mark.encode()
            for token, mark in marks.items()
            if job.prompt is None and token in vocabulary.control
        }
        """Control tokens that whoever reads the answer must see, and as what."""
        channels = job.prompt is None and has_channels(vocabulary.control)
        self._channels = ChannelReader(vocabulary.control, prompt[-1]) if channels else None

    @property
    def done(self) -> int:
        """Tokens produced so far."""
        return len(self.tokens) - self.prompt_tokens

    @property
    def text(self) -> str:
        return "".join(self._text)

    def lost(self) -> None:
        """Its state is to be made anew."""
        self.in_haste, self._lost_at = self._lost_at == self.done, self.done

    def choose(self, backend: Backend) -> int:
        """The next token. With a schema: draw freely, and only if that is refused draw again among the allowed.

        Both draws are independent, so the result is distributed as if the mask had been applied first; the costly
        mask is mostly saved (the trick is llama.cpp's).
        """
        token = backend.sample(self.job.sampling, self.done)
        if self._matcher is None or self._matcher.allows(token):
            return token
        return self._matcher.sample_allowed(backend.logits(), self.job.sampling, self.done + REDRAW)

    def accept(self, token: int) -> str:
        """Appends a token, sets `finish_reason` if it is the last, and returns the text that may now be shown."""
        if token in self._vocabulary.end:
            self.finish_reason = "stop"
            return self._show(self._stops.flush())
        self.tokens.append(token)
        piece = self._marks.get(token) or self._vocabulary.piece(token)
        if self._channels is not None:
            piece = self._channels.feed(token, piece)
        text, stopped = self._stops.feed(self._decoder.feed(piece))
        complete = self._matcher is not None and self._matcher.consume(token)
        if stopped or complete:
            self.finish_reason = "stop"
        elif self.done >= self.job.max_tokens or len(self.tokens) >= self._context_tokens:
            self.finish_reason = "length"
        if self.finish_reason is not None:
            text += self._stops.flush()
        return self._show(text)

    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.done,
            cached_tokens=self.cached_tokens or 0,
        )

    def _show(self, text: str) -> str:
        text, self._begun = self._begun + text, ""
        if text:
            self._text.append(text)
        return text
