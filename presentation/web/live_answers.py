"""Answers that are being written. They belong to no tab: any that shows the conversation sees them grow."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from domain.entities.conversation import AnswerBegun, AnswerEvent, AnswerUnkept, ThinkingDelta
from domain.entities.llm import Finished, GenerationResult, Preempted, Prefilling, TextDelta, Waiting
from domain.errors import InvalidRequest, UniunError
from presentation.controllers.chat import ChatController
from presentation.web.changes import Changes
from presentation.web.markdown import GrowingMarkdown
from presentation.web.notices import sentence

PUSH_S = 1 / 30
"""Shortest time between two pictures of a growing answer: faster is not seen, and costs every open tab."""
REST = 4
"""So many times as long as a picture took to make is no other one made. A long list or table is one block, which is rendered
as a whole each time: one of 2,000 tokens takes 10 ms."""
LONGEST_RUNNING = 100
"""Answers at once, over all conversations."""


class LiveAnswer:
    """What there is of one answer, and who watches it."""

    def __init__(
        self,
        conversation_id: str,
        question: str | None,
        after: str | None,
        asked_at: float,
        question_id: str | None = None,
    ) -> None:
        self.conversation_id = conversation_id
        self.question = question
        """None when a question that is there already is answered once more."""
        self.after = after
        """The message that the question, or for a retry the answer, follows."""
        self.asked_at = asked_at
        self.question_id = question_id
        """Of a new question, where the page that asks gave it one."""
        self.kept = False
        """Whether its question is in the database; it begins later, when it is known from what notes it is written."""
        self.begun: AnswerBegun | None = None
        self.text = ""
        self.thinking = ""
        self.markdown = GrowingMarkdown()
        self.state: Waiting | Prefilling | Preempted | AnswerUnkept | None = None
        """What it waits for; none while text comes."""
        self.ended = False
        self.error: str | None = None
        self.result: GenerationResult | None = None
        self._unrendered: list[str] = []
        self._watchers: list[Callable[[int], None]] = []

    def watch(self, watcher: Callable[[int], None]) -> Callable[[], None]:
        """Calls it after every change with the first block of the text that is new or changed; returns what ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def take(self, event: AnswerEvent) -> None:
        """Its text is rendered when it is shown, not at every token."""
        match event:
            case AnswerBegun():
                self.begun, self.kept = event, True
                self.markdown = GrowingMarkdown(sources_of(event))
            case TextDelta(text=text):
                self.state = None
                self.text += text
                self._unrendered.append(text)
            case ThinkingDelta(text=text):
                self.state = None
                self.thinking += text
            case Waiting() | Prefilling() | Preempted() | AnswerUnkept():
                self.state = event
            case Finished(result=result):
                self.result = result

    def show(self) -> None:
        """Renders what is new, and tells whoever watches."""
        first = len(self.markdown.blocks)
        if self._unrendered:
            first = self.markdown.feed("".join(self._unrendered))
            self._unrendered.clear()
        for watcher in tuple(self._watchers):
            watcher(first)


class LiveAnswers:
    """At most one for each conversation."""

    def __init__(self, changes: Changes, now: Callable[[], float]) -> None:
        self._changes = changes
        self._now = now
        self._running: dict[str, tuple[LiveAnswer, ChatController, asyncio.Task[None]]] = {}

    def of(self, conversation_id: str) -> LiveAnswer | None:
        """The answer that is being written there."""
        running = self._running.get(conversation_id)
        return running[0] if running is not None else None

    def of_question(self, question_id: str) -> LiveAnswer | None:
        """The answer that is being written to it."""
        answers = (answer for answer, _, _ in self._running.values())
        return next((answer for answer in answers if answer.question_id == question_id), None)

    def send(self, chat: ChatController, text: str, question_id: str | None = None) -> LiveAnswer:
        """Asks at the end of what `chat` shows. Raises `InvalidRequest` while another answer is on its way."""
        if not text.strip():
            raise InvalidRequest("The question is empty. Write something.")
        own = chat.twin()
        answer = LiveAnswer(_id(own), text, own.conversation.leaf_id, self._now(), question_id)
        events = own.send(text, question_id=question_id, kept=lambda: self._kept(answer))
        return self._begin(own, answer, events)

    def retry(self, chat: ChatController, message_id: str) -> LiveAnswer:
        """Another answer beside that one. Raises `MessageNotFound`, and what `send` raises."""
        own = chat.twin()
        message = own.message(message_id)
        question_id = message.parent_id if message.role == "assistant" else message.id
        return self._begin(own, LiveAnswer(_id(own), None, question_id, self._now()), own.retry(message_id))

    def edit(
        self, chat: ChatController, message_id: str, text: str, question_id: str | None = None
    ) -> LiveAnswer:
        """That question put differently. Raises `MessageNotFound`, and what `send` raises."""
        own = chat.twin()
        before = own.message(message_id).parent_id
        answer = LiveAnswer(_id(own), text, before, self._now(), question_id)
        events = own.edit(text, message_id, question_id=question_id, kept=lambda: self._kept(answer))
        return self._begin(own, answer, events)

    def stop(self, conversation_id: str) -> None:
        """At the next token; what there is of it is kept. Harmless when there is none."""
        if conversation_id in self._running:
            self._running[conversation_id][1].cancel()

    async def keep(self) -> None:
        """Until it is cancelled; then all are stopped, and each keeps what there is of it."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            tasks = [task for _, _, task in self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- inside

    def _kept(self, answer: LiveAnswer) -> None:
        answer.kept = True
        answer.show()
        self._changes.tell("conversations")

    def _begin(
        self, chat: ChatController, answer: LiveAnswer, events: AsyncGenerator[AnswerEvent, None]
    ) -> LiveAnswer:
        if answer.conversation_id in self._running:
            raise InvalidRequest("An answer is on its way. Wait for it, or stop it.")
        if len(self._running) >= LONGEST_RUNNING:
            raise InvalidRequest(f"{LONGEST_RUNNING} answers are on their way. Wait for one, or stop it.")
        task = asyncio.get_running_loop().create_task(self._follow(answer, events))
        self._running[answer.conversation_id] = (answer, chat, task)
        self._changes.tell("conversations")
        return answer

    async def _follow(self, answer: LiveAnswer, events: AsyncGenerator[AnswerEvent, None]) -> None:
        pusher = Pusher(answer, self._now, asyncio.get_running_loop().call_later)
        try:
            async with aclosing(events):
                async for event in events:
                    answer.take(event)
                    if isinstance(event, AnswerBegun):
                        self._changes.tell("conversations")
                    pusher.changed()
        except UniunError as error:
            answer.error = sentence(error)
        except Exception as error:  # noqa: BLE001 - whatever ends it, the tabs must learn that it has ended
            answer.error = sentence(error)
        finally:
            pusher.close()
            del self._running[answer.conversation_id]
            answer.ended = True
            answer.show()
            self._changes.tell("conversations")


class Pusher:
    """Merges changes: the first one is shown at once, the next ones not before `PUSH_S` has passed."""

    def __init__(
        self,
        answer: LiveAnswer,
        now: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], asyncio.Handle],
    ) -> None:
        self._answer = answer
        self._now = now
        self._call_later = call_later
        self._not_before = float("-inf")
        self._timer: asyncio.Handle | None = None

    def changed(self) -> None:
        if self._timer is None:
            wait = max(0.0, self._not_before - self._now())
            self._timer = self._call_later(wait, self._push)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._push()

    def _push(self) -> None:
        self._timer, began = None, self._now()
        self._answer.show()
        ended = self._now()
        self._not_before = max(began + PUSH_S, ended + REST * (ended - began))


def sources_of(begun: AnswerBegun) -> dict[int, str]:
    """Where the number of a citation leads."""
    return {citation.number: f"/notes/{citation.note_id}" for citation in begun.citations}


def _id(chat: ChatController) -> str:
    return chat.conversation.id
