"""One conversation between a user and the model."""

import uuid
from collections.abc import AsyncGenerator
from types import TracebackType

from domain.entities.llm import GenerationEvent, LlmTaskKind, Message, TextDelta
from domain.errors import JobCancelled
from domain.repositories.scheduler_coordinator import JobHandle
from domain.usecases.llm import SendChatStreamUseCase
from domain.usecases.scheduler import SetForegroundKindUseCase


class ChatController:
    """Holds the messages; while it is entered (`with chat:`) the conversation is what the user looks at."""

    def __init__(
        self,
        send: SendChatStreamUseCase,
        set_foreground: SetForegroundKindUseCase,
        *,
        model: str | None = None,
        system: str | None = None,
    ) -> None:
        self.model = model
        """Answers the next message; the default model when none."""
        self._send = send
        self._set_foreground = set_foreground
        self._system = (Message(role="system", content=system),) if system else ()
        self._messages: list[Message] = []
        self._conversation = uuid.uuid4().hex
        self._job: JobHandle | None = None
        self._stopping = False

    def __enter__(self) -> "ChatController":
        self._set_foreground(LlmTaskKind.CHAT, self._conversation)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set_foreground(None)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, the system message first."""
        return (*self._system, *self._messages)

    @property
    def answering(self) -> bool:
        """Whether an answer is on its way."""
        return self._job is not None

    def restart(self) -> None:
        """Begins a new conversation; the old one is forgotten."""
        self._messages.clear()
        self._conversation = uuid.uuid4().hex
        self._set_foreground(LlmTaskKind.CHAT, self._conversation)

    async def send(self, text: str) -> AsyncGenerator[GenerationEvent, None]:
        """Asks and streams the answer; ends early, without an error, after `cancel()`.

        What was answered so far stays in the conversation, however the answer ends. A question without a word of
        answer is taken out again: many chat templates refuse two user messages in a row.
        """
        question = Message(role="user", content=text)
        job = self._send(self._conversation, (*self.messages, question), model=self.model)
        self._messages.append(question)
        conversation = self._conversation
        self._job = job
        self._stopping = False
        answer: list[str] = []
        try:
            async for event in job.events():
                if isinstance(event, TextDelta):
                    answer.append(event.text)
                yield event
        except JobCancelled:
            if not self._stopping:
                raise
        finally:
            job.cancel()
            self._job = None
            if conversation == self._conversation:
                self._close_turn("".join(answer))

    def cancel(self) -> None:
        """Stops the answer at the next boundary. Harmless when there is none."""
        if self._job is not None:
            self._stopping = True
            self._job.cancel()

    def _close_turn(self, answer: str) -> None:
        if answer.strip():
            self._messages.append(Message(role="assistant", content=answer))
        else:
            self._messages.pop()
