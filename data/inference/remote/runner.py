"""A runner whose engine is somebody else's: servers that speak the OpenAI protocol."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

import httpx

from data.clock import Clock
from data.inference.remote.backoff import Backoff
from data.inference.remote.errors import ServerFailed
from data.inference.remote.pool import ServerPool
from data.inference.remote.server import Server
from data.inference.remote.wire import Piece, pieces, request
from data.inference.text import StopMatcher
from domain.entities.llm import FinishReason, Usage
from domain.entities.models import RemoteModel, ServerState
from domain.errors import EngineError, InvalidRequest, ModelLoadFailed, UnknownModel
from domain.repositories.inference_runner import LoadedModel, RunnerJob, RunnerOutcome, RunnerProgress

ATTEMPTS = 6
"""In a row without one new token; then the job fails."""
ATTEMPTS_IN_ALL = 50
UNKNOWN_CONTEXT = 8192
_MAX_JOBS = 100_000


@dataclass
class Answer:
    """What has come so far; it outlives every connection."""

    stops: StopMatcher
    received: str = ""
    """All text of the model, that which may begin a stop string included."""
    shown: str = ""
    tokens: int = 0
    prompt_tokens: int | None = None
    prefilled_tokens: int = 0
    cached_tokens: int = 0
    replayed: int = 0
    """Characters of `received` that an attempt from the beginning has yet to repeat."""
    may_continue: bool = False
    finish: FinishReason | None = None
    """Set as soon as it is known: a stop that comes after it is too late."""
    failures: list[str] = field(default_factory=list)


class RemoteRunner:
    """Implements `InferenceRunner` for one model on its servers; runs overlap, as many as the servers take.

    A stop closes the stream, which ends the work there; a resumed run sends the text so far as the beginning of the
    answer. Where a server cannot continue a text (and for structured answers, whose grammar would begin anew), a stop
    before the first token takes effect and a later one does not: the answer is finished.
    A server that is lost in the middle of an answer is replaced in the same way; where the text cannot be continued it is
    asked for again with the same seed, and what was told already is passed over as long as it is the same.
    """

    def __init__(
        self,
        name: str,
        remote: RemoteModel,
        clock: Clock,
        *,
        environment: Mapping[str, str] = os.environ,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: random.Random | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._name = name
        self._remote = remote
        self._clock = clock
        self._sleep = sleep
        self._chance = chance or random.Random()
        self.pool = ServerPool(remote, clock, environment, self._chance, transport)
        self._answers: dict[str, Answer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stop_early: set[str] = set()

    async def states(self) -> tuple[ServerState, ...]:
        """What every server says of itself now."""

        async def one(server: Server) -> ServerState:
            try:
                self.pool.authorise()
                return await server.look()
            except (EngineError, InvalidRequest) as error:
                return ServerState(url=server.url, error=str(error))

        return tuple(await asyncio.gather(*map(one, self.pool.servers)))

    # -- the port

    async def load(self, model: str) -> LoadedModel:
        if model != self._name:
            raise UnknownModel(f"These servers run {self._name}, not {model}.")
        start = self._clock.monotonic()
        states = await self.states()
        contexts = [state.context_tokens for state in states if state.context_tokens is not None]
        if all(state.error is not None for state in states):
            raise ModelLoadFailed(
                f"No server of {model} can be used. {' '.join(s.error or '' for s in states)} "
                "Start the server, or give its address again with `uniun models add`."
            )
        return LoadedModel(
            name=model,
            engine="remote",
            context_tokens=min(contexts, default=UNKNOWN_CONTEXT),
            load_s=self._clock.monotonic() - start,
            memory_bytes=0,
            slots=self._remote.slots,
        )

    async def unload(self) -> None:
        """Nothing of it is here."""

    async def run(self, job: RunnerJob, emit: Callable[[RunnerProgress], None]) -> RunnerOutcome:
        if not (job.prompt or "").strip() and not any(m.content.strip() for m in job.messages):
            raise InvalidRequest("The prompt is empty. Give at least one word.")
        answer = self._answers.get(job.id)
        if answer is None:
            if len(self._answers) >= _MAX_JOBS:
                raise EngineError(f"{_MAX_JOBS} jobs are stopped and not forgotten. End some of them first.")
            answer = self._answers[job.id] = Answer(StopMatcher(job.stop))
        if job.id in self._stop_early:
            self._stop_early.discard(job.id)
            return self._outcome(answer)
        task = asyncio.create_task(self._attempts(job, answer, emit))
        self._tasks[job.id] = task
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.forget(job.id)
            raise
        finally:
            del self._tasks[job.id]
        if not task.cancelled():
            task.result()
        if answer.finish is None:
            return self._outcome(answer)
        if rest := answer.stops.flush():
            answer.shown += rest
            emit(_progress(answer, rest))
        self._answers.pop(job.id, None)
        return self._outcome(answer)

    def stop(self, job_id: str) -> None:
        task = self._tasks.get(job_id)
        if task is None:
            self._stop_early.add(job_id)
            return
        answer = self._answers[job_id]
        if answer.may_continue or not answer.received:
            task.cancel()

    def forget(self, job_id: str) -> None:
        self._answers.pop(job_id, None)
        self._stop_early.discard(job_id)

    async def aclose(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self.pool.aclose()

    # -- attempts

    async def _attempts(self, job: RunnerJob, answer: Answer, emit: Callable[[RunnerProgress], None]) -> None:
        """One server after another until the answer is whole."""
        self.pool.authorise()
        backoff = Backoff(self._chance)
        failed: Server | None = None
        in_a_row = 0
        for _ in range(ATTEMPTS_IN_ALL):
            server, rests_s = self.pool.choose(job.cache_key, but=failed)
            if rests_s > 0 or server is failed:
                await self._sleep(max(rests_s, backoff.next_s()))
            before = answer.tokens
            try:
                await self._attempt(job, answer, server, emit)
            except ServerFailed as error:
                server.failed()
                failed = server
                answer.failures.append(str(error))
                in_a_row = in_a_row + 1 if answer.tokens == before else 1
                if in_a_row >= ATTEMPTS:
                    break
            else:
                return
        last = list(dict.fromkeys(answer.failures[-ATTEMPTS:]))
        raise EngineError(
            f"The model {self._name} could not answer, after {len(answer.failures)} attempts. {' '.join(last)[:1500]} "
            "See `uniun doctor`, and try again."
        )

    async def _attempt(
        self, job: RunnerJob, answer: Answer, server: Server, emit: Callable[[RunnerProgress], None]
    ) -> None:
        if server.doubtful:
            await server.look()
        await server.learn()
        kind = server.state.kind if server.state is not None else ""
        free_text = job.json_schema is None and job.tooling is None
        answer.may_continue = free_text and (job.prompt is not None or bool(server.continues))
        if answer.tokens >= job.max_tokens:
            answer.finish = (
                "length"  # the stream was lost between the last token and the word that it was the last
            )
            return
        begun = answer.received if answer.may_continue else ""
        answer.replayed = len(answer.received) - len(begun)
        base = answer.tokens if begun else 0
        path, body = request(self._remote, job, begun, base, kind, whole=not answer.may_continue)
        produced = 0
        async with server.stream(path, body) as lines, aclosing(pieces(lines, server.name, begun)) as stream:
            async for piece in stream:
                produced = max(produced + bool(piece.text), piece.tokens or 0)
                answer.tokens = max(answer.tokens, base + produced)
                self._count_prompt(answer, piece, base)
                shown, met = self._take(answer, piece.text)
                answer.finish = answer.finish or ("stop" if met else piece.finish)
                if piece.text or piece.prompt_tokens is not None:
                    emit(_progress(answer, shown))
                if met:
                    break
        server.succeeded()
        self.pool.used(server, job.cache_key)

    @staticmethod
    def _count_prompt(answer: Answer, piece: Piece, base: int) -> None:
        """The prompt is what the caller asked, without the beginning of the answer that is sent along."""
        if piece.prompt_tokens is None:
            return
        if answer.prompt_tokens is None:
            answer.prompt_tokens = max(1, piece.prompt_tokens - base)
            answer.cached_tokens = min(answer.prompt_tokens, piece.cached_tokens or 0)
        answer.prefilled_tokens = min(answer.prompt_tokens, piece.prefilled_tokens or 0)

    @staticmethod
    def _take(answer: Answer, text: str) -> tuple[str, bool]:
        """New text from the server: what of it is to be shown, and whether a stop string was met."""
        if answer.replayed and text:
            again = answer.received[-answer.replayed :][: len(text)]
            if not text.startswith(again):
                raise EngineError(
                    "The server was lost in the middle of the answer, and another one would have gone on differently. "
                    "What came is kept; ask again for a whole answer."
                )
            answer.replayed -= len(again)
            text = text[len(again) :]
        answer.received += text
        shown, met = answer.stops.feed(text) if text else ("", False)
        answer.shown += shown
        return shown, met

    @staticmethod
    def _outcome(answer: Answer) -> RunnerOutcome:
        prompt = answer.prompt_tokens or 0
        return RunnerOutcome(
            status="stopped" if answer.finish is None else "finished",
            finish_reason=answer.finish,
            tokens_done=answer.tokens,
            text=answer.shown,
            usage=Usage(
                prompt_tokens=prompt,
                completion_tokens=answer.tokens,
                cached_tokens=min(prompt, answer.cached_tokens),
            ),
        )


def _progress(answer: Answer, text: str) -> RunnerProgress:
    return RunnerProgress(
        prefilled_tokens=answer.prefilled_tokens,
        prompt_tokens=answer.prompt_tokens or 0,
        tokens_done=answer.tokens,
        text=text,
    )
