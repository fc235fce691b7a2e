"""The token loop: prefill in chunks, decode token by token, stop at any boundary, resume from what is kept."""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Protocol

import numpy as np

from data.clock import Clock
from data.inference.backend import Backend, Interrupted
from data.inference.batches import MOST_ONE_BY_ONE, Batches
from data.inference.chat_template import ChatTemplate, opens_thought, with_bos
from data.inference.constraint import Grammars
from data.inference.kv_cache import KvCache, Slot
from data.inference.options import EngineOptions
from data.inference.prefill import ChunkSizer
from data.inference.sequence import Sequence
from data.inference.tool_grammar import require_tools
from domain.errors import EngineError, InvalidRequest, PromptTooLong, UniunError
from domain.repositories.inference_runner import RunnerJob, RunnerOutcome
from domain.usecases.thinking import OPEN

_CHECK_EVERY_TOKENS = 32
"""And at the end of an answer. NaN in the KV state stays there, so that looking seldom finds it too; a look takes 3 ms."""


class AtBoundary(Protocol):
    """Told at every boundary."""

    def __call__(self, prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None: ...


class TokenLoop:
    """One loaded model and the jobs begun on it. One job advances at a time; the others keep their place.

    The KV state of a job at a boundary lacks its last token at least. The step that evaluates that one draws the next,
    so a resume never needs logits from before the stop.
    """

    def __init__(self, backend: Backend, options: EngineOptions, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock
        self._kv = KvCache(backend, options.kv_budget_bytes)
        self._chunks = ChunkSizer(
            options.interruptible_chunk_s if backend.interruptible else options.chunk_s,
            backend.least_chunk,
            backend.most_chunk,
        )
        self._template = ChatTemplate(backend.vocabulary, clock)
        self._grammars = Grammars(backend.vocabulary)
        self._sequences: dict[str, Sequence] = {}

    def run(
        self,
        job: RunnerJob,
        produced: list[int],
        at_boundary: AtBoundary,
        stopping: Callable[[], bool],
        batches: Batches | None = None,
        begun: Callable[[], None] = lambda: None,
        since: datetime | None = None,
    ) -> RunnerOutcome:
        """Starts or resumes the job; `produced` are its tokens so far, in case this process has not seen it, `batches`
        those in which its prompt was evaluated, and `since` when it first ran, if not now. Calls `begun` when it is known what of the prompt is kept.

        Stops at the first boundary where `stopping` says so. Whoever makes it say so may `interrupt` then, and a
        prefill chunk is given up half-way.

        Raises `InvalidRequest` and its kind when the job is to blame, else `EngineError`; nothing of the job is kept
        then, and the other jobs go on.
        """
        try:
            return self._run(job, produced, at_boundary, stopping, batches, begun, since)
        except BaseException as error:
            self._sequences.pop(job.id, None)
            self._kv.drop(job.id)
            if isinstance(error, UniunError) or not isinstance(error, Exception):
                raise
            raise EngineError(f"{self._backend.name} failed on job {job.id}: {_named(error)}") from error

    def interrupt(self) -> None:
        """From another thread: see `run`."""
        self._backend.interrupt()

    def batches(self, job_id: str) -> Batches:
        """In which the job was evaluated so far; it has begun and not ended."""
        return self._sequences[job_id].batches

    def _run(
        self,
        job: RunnerJob,
        produced: list[int],
        at_boundary: AtBoundary,
        stopping: Callable[[], bool],
        batches: Batches | None,
        begun: Callable[[], None],
        since: datetime | None,
    ) -> RunnerOutcome:
        sequence = self._sequences.get(job.id)
        if sequence is None:
            try:
                sequence = self._begin(job, produced, since)
                sequence.batches = batches or Batches()
            except UniunError:
                raise
            except Exception as error:
                raise InvalidRequest(f"Job {job.id} cannot be begun: {_named(error)}") from error
        self._sequences[job.id] = sequence
        if sequence.batches.tokens > 0 and not self._kv.holds(job.id):
            sequence.lost()
        slot = self._kv.take(
            job.id, job.cache_key, sequence.tokens, None if sequence.in_haste else sequence.batches
        )
        sequence.batches = slot.batches
        if sequence.cached_tokens is None:
            sequence.cached_tokens = min(len(slot.tokens), sequence.prompt_tokens)
        begun()
        while sequence.finish_reason is None:
            self._backend.arm()
            if stopping():
                break
            try:
                token, text = self._step(sequence, slot)
            except Interrupted:
                continue
            prefilled = min(len(slot.tokens), sequence.prompt_tokens)
            at_boundary(prefilled, sequence.prompt_tokens, sequence.done, token, text)
        finished = sequence.finish_reason is not None
        if finished:
            self.forget(job.id)
        return RunnerOutcome(
            status="finished" if finished else "stopped",
            finish_reason=sequence.finish_reason,
            tokens_done=sequence.done,
            text=sequence.text,
            usage=sequence.usage(),
        )

    def forget(self, job_id: str) -> None:
        """The job will not resume; its KV state stays as a prefix."""
        self._sequences.pop(job_id, None)
        self._kv.end(job_id)

    def close(self) -> None:
        self._sequences.clear()
        self._backend.close()

    def _step(self, sequence: Sequence, slot: Slot) -> tuple[int | None, str]:
        """Up to the next boundary: a prefill chunk, of which the last gives the first token, or a token.

        A state that was lost is made in the batches that it was made in before; what the job had produced, token by token,
        if that is not too much.
        """
        held, size = len(slot.tokens), self._next_size(sequence, slot)
        chunk = sequence.tokens[held : held + size]
        draws = held + len(chunk) == len(sequence.tokens)
        start = self._clock.monotonic()
        self._kv.evaluate(slot, chunk, want_logits=draws)
        self._chunks.learn(len(chunk), self._clock.monotonic() - start)
        if not draws:
            return None, ""
        token = sequence.choose(self._backend)
        before = sequence.done
        text = sequence.accept(token)
        if sequence.finish_reason is not None or sequence.done % _CHECK_EVERY_TOKENS == 0:
            check_logits(self._backend)
        return (token if sequence.done > before else None), text

    def _next_size(self, sequence: Sequence, slot: Slot) -> int:
        held, ahead = len(slot.tokens), len(sequence.tokens)
        if (known := slot.batches.at(held)) is not None:
            return known[1]
        one_by_one = 0 if sequence.in_haste else MOST_ONE_BY_ONE
        chunked = max(sequence.prompt_tokens, ahead - one_by_one) - self._backend.last_alone - held
        return self._chunks.size(chunked) if chunked > 0 else 1

    def _begin(self, job: RunnerJob, produced: list[int], since: datetime | None) -> Sequence:
        backend, vocabulary = self._backend, self._backend.vocabulary
        begun = ""
        if job.prompt is not None:
            parts, specials = [job.prompt], False
        else:
            tools = () if job.tooling is None else job.tooling.tools
            if tools:
                require_tools(vocabulary.template)
            # A grammar that begins with the answer leaves no room for thinking.
            at_once = job.json_schema is not None or (job.tooling is not None and job.tooling.must_call)
            thinking = job.thinking and not at_once
            parts, specials = self._template.parts(job.messages, tools, thinking=thinking, now=since), True
            if thinking and opens_thought(parts):
                begun = OPEN
        self._refuse_too_long(parts)
        prompt = vocabulary.encode(parts[0], specials)
        for part in parts[1:]:
            prompt += vocabulary.encode_inside(part, specials)
        prompt = with_bos(prompt, vocabulary)
        if not prompt:
            raise InvalidRequest("The prompt is empty. Send at least one character.")
        if len(prompt) >= backend.context_tokens:
            raise PromptTooLong(len(prompt), backend.context_tokens)
        matcher = self._grammars.for_job(job)
        sequence = Sequence(job, prompt, vocabulary, backend.context_tokens, matcher, begun)
        for token in produced:
            sequence.accept(token)
        return sequence

    def _refuse_too_long(self, parts: list[str]) -> None:
        """Before it is tokenized, which takes a minute for some texts of a few megabytes.

        A token stands for at most as many bytes as the longest of the vocabulary. (A tokenizer that drops text breaks
        this rule; those of generating models do not.)
        """
        size = sum(len(part.encode()) for part in parts)
        context = self._backend.context_tokens
        if size > context and (least := -(-size // self._longest_piece)) >= context:
            raise PromptTooLong(least, context, at_least=True)

    @cached_property
    def _longest_piece(self) -> int:
        """Bytes."""
        vocabulary = self._backend.vocabulary
        texts = (len(text.encode()) for text in vocabulary.control)
        return max(1, *texts, *(len(vocabulary.piece(token)) for token in range(vocabulary.size)))


def check_logits(backend: Backend) -> None:
    """Raises `EngineError` when the last evaluation gave no usable numbers, which an argmax would not notice."""
    logits = backend.logits()
    if not np.isfinite(logits).all():
        raise EngineError("The model computes values that are not numbers.")
    if logits.size > 1 and logits.min() == logits.max():
        raise EngineError("The model gives every token the same probability.")


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
