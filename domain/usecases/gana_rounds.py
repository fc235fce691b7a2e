"""The jobs of one run: one for a plain Gana, up to four for one that calls tools."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.entities.gana import Gana, GanaProgress
from domain.entities.llm import Finished, GenerationResult, LlmTaskKind, Message, Sampling
from domain.errors import EngineError, JobCancelled
from domain.prompts import gana as prompt
from domain.repositories.scheduler_coordinator import JobHandle
from domain.usecases.gana_tools import GraphTools
from domain.usecases.llm import GenerateOneShotUseCase
from domain.usecases.thinking import answer_only

MAX_ROUNDS = 4
WARMTH = Sampling(temperature=0.3, top_p=0.95)


@dataclass
class GanaJobs:
    """Submits the jobs of one run, one after the other, and counts what they took."""

    generate: GenerateOneShotUseCase
    gana: Gana
    deadline: datetime | None
    watch: Callable[[GanaProgress], None]
    tokens: int = field(default=0, init=False)
    preemptions: int = field(default=0, init=False)
    stopped: bool = field(default=False, init=False)
    """By the user."""
    _round: int = field(default=1, init=False)
    _tool: str = field(default="", init=False)
    _job: JobHandle | None = field(default=None, init=False)

    def stop(self) -> None:
        """Ends the present job at its next token; no other follows."""
        self.stopped = True
        if self._job is not None:
            self._job.cancel()

    async def answer(
        self,
        model: str,
        messages: Sequence[Message],
        max_tokens: int,
        json_schema: dict[str, Any] | None = None,
    ) -> str:
        """One job; its answer without the thinking. Raises what ended it otherwise; `JobCancelled` after `stop`."""
        if self.stopped:
            raise JobCancelled("It was stopped.")
        job = self._job = self.generate.submit(
            LlmTaskKind.GANA,
            self.gana.id,
            messages,
            model=model,
            sampling=WARMTH,
            max_tokens=max_tokens,
            thinking=False,  # which has no end that fits in so many tokens
            deadline=self.deadline,
            json_schema=json_schema,
        )
        try:
            async for event in job.events():
                self.watch(GanaProgress(round=self._round, tool=self._tool, event=event))
                if isinstance(event, Finished):
                    self._count(event.result)
                    return answer_only(event.result.text)
        finally:
            self._job = None
            job.cancel()
        raise EngineError(f"Job {job.id} ended without an answer. Run the Gana again.")

    async def converse(self, model: str, asked: Sequence[Message], max_tokens: int, tools: GraphTools) -> str:
        """What it publishes; empty when it ends with nothing. Chat comes between two rounds."""
        for self._round in range(1, MAX_ROUNDS + 1):
            left = MAX_ROUNDS - self._round
            said = await self.answer(model, asked, max_tokens, prompt.tool_schema(last=left == 0))
            call = prompt.read_call(said)
            if call is not None and call.tool in ("publish", "nothing"):
                return call.argument if call.tool == "publish" else ""
            self._tool = call.tool if call is not None else ""
            if left:
                found = (
                    prompt.tool_result(call, await tools.run(call), left)
                    if call is not None
                    else prompt.unreadable(left)
                )
                asked = (*asked, Message(role="assistant", content=said or "{}"), found)
        raise EngineError(
            f"After {MAX_ROUNDS} rounds it had neither published nor ended. Give it a simpler task or a larger model."
        )

    def _count(self, result: GenerationResult) -> None:
        self.tokens += result.usage.completion_tokens
        self.preemptions += result.preemptions
