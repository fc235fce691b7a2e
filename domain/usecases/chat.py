"""One answer in a conversation: from the notes, with citations, and kept while it comes."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import timedelta

from domain.entities.conversation import (
    AnswerBegun,
    AnswerEvent,
    AnswerUnkept,
    ChatMessage,
    Citation,
    Conversation,
    Draft,
    MessageState,
    ThinkingDelta,
)
from domain.entities.entity import Entity
from domain.entities.knowledge import RetrievedContext
from domain.entities.llm import Finished, Message, Sampling, TextDelta
from domain.errors import ConversationNotFound, DatabaseError, InvalidRequest, JobCancelled, UniunError
from domain.prompts import chat as prompt
from domain.prompts.titles import UNTITLED, title_of
from domain.repositories.conversations import ConversationRepository
from domain.repositories.identity import Identities
from domain.repositories.model_store import ModelStore
from domain.repositories.notes import NoteRepository
from domain.repositories.scheduler_coordinator import JobHandle
from domain.usecases.citations import citations_of, cited, cited_before
from domain.usecases.llm import UNKNOWN_CONTEXT_TOKENS, ReadAheadUseCase, SendChatStreamUseCase
from domain.usecases.passages import keywords
from domain.usecases.repetition import goes_in_circles
from domain.usecases.retrieval import RetrieveContextUseCase, context_budget
from domain.usecases.text_budget import cut_middle
from domain.usecases.thinking import ThinkingFold

KEEP_PERIOD = timedelta(seconds=1)
"""So much of an answer a kill may cost."""
_LONGEST_KEEP_PERIOD = timedelta(minutes=1)
"""While the database takes nothing: each attempt may hold up the answer."""
VARIED = Sampling(temperature=0.7, top_p=0.95)
"""For a retry: the likeliest tokens would be the same answer again."""
_FEW_WORDS = 3
_CIRCLES = "It went on repeating itself. Answer again, ask differently, or use a larger model."


class Asking(Entity):
    """What is asked, and where in the conversation."""

    conversation: Conversation
    text: str | None
    """None: the question is there already and is answered once more."""
    parent_id: str | None
    """The message that a new question follows, none for the first; for a retry the question itself."""
    question_id: str | None = None
    """Of the new question, from a face that may have to ask later whether it is there. Else it is given one here."""
    system: str | None = None
    draft: Draft | None = None
    draft_note_id: str | None = None
    """The note whose draft it is: it need not be looked up as well."""


class AnswerUseCase:
    """Answers questions; every conversation, in every face, goes through here."""

    def __init__(
        self,
        send: SendChatStreamUseCase,
        prepare: ReadAheadUseCase,
        retrieve: RetrieveContextUseCase,
        conversations: ConversationRepository,
        notes: NoteRepository,
        models: ModelStore,
        identities: Identities,
        pause: Callable[[], Awaitable[None]],
    ) -> None:
        """`pause` is the time between two attempts to keep an answer that the database does not take."""
        self.send = send
        self.prepare = prepare
        self.retrieve = retrieve
        self.conversations = conversations
        self.notes = notes
        self.models = models
        self.identities = identities
        self.pause = pause

    def __call__(self, asking: Asking, kept: Callable[[], object] = lambda: None) -> "Answer":
        """Nothing happens before its `events()` are iterated. `kept` is called once the question is in the database."""
        return Answer(self, asking, kept)

    async def read_ahead(self, asking: Asking) -> None:
        """Has everything prefilled that the next question's prompt will begin with; `asking` is without that question.

        Returns when it lies ready. Being cancelled stops it. Raises whatever ends the job.
        """
        path = await self.conversations.path(asking.parent_id) if asking.parent_id is not None else ()
        noted = asking.draft is not None or await self.notes.count() > 0
        messages = (*head(asking, noted=noted), *_history(path))
        # Without rules and history there is nothing to read; the model is loaded all the same.
        job = self.prepare(
            asking.conversation.id,
            messages or (Message(role="user", content="Hello"),),
            model=asking.conversation.model,
        )
        try:
            await job.result()
        finally:
            job.cancel()


class Answer:
    """One answer on its way. Question and answer are in the database from the first moment on."""

    def __init__(self, by: AnswerUseCase, asking: Asking, kept: Callable[[], object]) -> None:
        self._by = by
        self._asking = asking
        self._kept = kept
        self._job: JobHandle | None = None
        self._stopping = False
        self._fold = ThinkingFold()
        self._cited_before: tuple[Citation, ...] = ()
        """Within a conversation one note keeps one number."""
        self._cut: str | None = None
        """Why it has no end."""

    def cancel(self) -> None:
        """Stops it at the next boundary; what there is of it is kept. Harmless when it has ended."""
        self._stopping = True
        if self._job is not None:
            self._job.cancel()

    async def events(self) -> AsyncGenerator[AnswerEvent, None]:
        """`AnswerBegun`, then everything that happens; may be iterated once. Ends early, without an error, after
        `cancel()`. However it ends, the message says how: complete, stopped, or failed and why. While the database
        does not take that, there is an `AnswerUnkept` at each attempt, until it does or nobody iterates any more.

        Raises `InvalidRequest` for an empty question, and whatever ends the job.
        """
        question = await self._question()
        self._kept()
        answer = self._blank(question)
        await self._by.conversations.put_message(answer)
        state: MessageState = "stopped"
        error: str | None = None
        failure: UniunError | None = None
        try:
            before = (await self._by.conversations.path(question.id))[:-1]
            self._cited_before = cited_before(before)
            context = await self._context(question, before)
            answer = answer.model_copy(update={"citations": citations_of(context)})
            yield AnswerBegun(
                question_id=question.id,
                answer_id=answer.id,
                citations=(*answer.citations, *self._only_before(answer)),
                hindrance=context.hindrance if context is not None else None,
            )
            if not self._stopping:
                messages = self._messages(question, before, context)
                async with aclosing(self._stream(messages, answer)) as events:
                    async for event in events:
                        yield event
                state, error = ("stopped", self._cut) if self._cut else ("complete", None)
        except JobCancelled as cancelled:
            if not self._stopping:
                error, failure = str(cancelled), cancelled
        except UniunError as problem:
            state, error, failure = "failed", str(problem), problem
        except BaseException:
            # Nobody is there to wait for a database.
            await self._by.conversations.put_message(self._end(answer, state, error))
            raise
        ended = self._end(answer, state, error)
        while (hindrance := await self._keep(ended)) is not None:
            yield AnswerUnkept(reason=hindrance)
            await self._by.pause()
        if failure is not None:
            raise failure

    def _end(self, answer: ChatMessage, state: MessageState, error: str | None) -> ChatMessage:
        self._fold.end()
        if self._job is not None:
            self._job.cancel()
        return self._so_far(answer, state, error)

    async def _stream(
        self, messages: tuple[Message, ...], answer: ChatMessage
    ) -> AsyncGenerator[AnswerEvent, None]:
        self._job = self._by.send(
            self._asking.conversation.id,
            messages,
            model=self._asking.conversation.model,
            sampling=VARIED if self._asking.text is None and self._takes_the_likeliest() else None,
        )
        kept_at, period = self._by.identities.now(), KEEP_PERIOD
        async for event in self._job.events():
            if not isinstance(event, TextDelta):
                if isinstance(event, Finished) and event.result.finish_reason == "length":
                    self._cut = _cut_words(event.result.usage.completion_tokens, self._fold)
                yield event
                continue
            said, thought = self._fold.feed(event.text)
            if thought:
                yield ThinkingDelta(text=thought)
            if said:
                yield TextDelta(text=said, tokens=event.tokens)
                if goes_in_circles(self._fold.answer):
                    self._cut = _CIRCLES
                    return  # its job ends with the answer
            now = self._by.identities.now()
            if not timedelta(0) <= now - kept_at < period:  # the wall clock may also have been set back
                kept_at = now
                if await self._keep(self._so_far(answer, "streaming", None)) is not None:
                    kept_at, period = self._by.identities.now(), min(2 * period, _LONGEST_KEEP_PERIOD)
                else:
                    period = KEEP_PERIOD
        said, _ = self._fold.end()
        if said:
            yield TextDelta(text=said, tokens=0)

    def _takes_the_likeliest(self) -> bool:
        recommended = self._by.models.get(self._model()).sampling
        return recommended is None or recommended.temperature == 0

    async def _keep(self, answer: ChatMessage) -> str | None:
        """Why the database did not take it; none when it did. A busy one must not end an answer that comes."""
        try:
            await self._by.conversations.put_message(answer)
        except DatabaseError as error:
            return str(error)
        return None

    def _so_far(self, answer: ChatMessage, state: MessageState, error: str | None) -> ChatMessage:
        text = self._fold.answer.lstrip("\n") if self._fold.thinking else self._fold.answer
        update: dict[str, object] = {
            "content": text,
            "thinking": self._fold.thinking.strip(),
            "state": state,
            "error": error,
            "citations": (*answer.citations, *cited(text, self._only_before(answer))) if text else (),
        }
        return answer.model_copy(update=update)

    def _only_before(self, answer: ChatMessage) -> tuple[Citation, ...]:
        """Notes that earlier answers refer to and this one was not given again: it may mean them all the same."""
        given = {citation.note_id for citation in answer.citations}
        return tuple(citation for citation in self._cited_before if citation.note_id not in given)

    # -- before the answer

    async def _question(self) -> ChatMessage:
        """The question that is there already, or a new one, kept before anything can go wrong with it."""
        asking, by = self._asking, self._by
        if asking.text is None:
            path = await by.conversations.path(asking.parent_id or "")
            return path[-1]
        if not asking.text.strip():
            raise InvalidRequest("The question is empty. Type one.")
        try:
            await by.conversations.get(asking.conversation.id)
        except ConversationNotFound:
            title = asking.conversation.title
            await by.conversations.create(
                asking.conversation.model_copy(
                    update={"title": title_of(asking.text) if title == UNTITLED else title}
                )
            )
        question = ChatMessage(
            id=asking.question_id or by.identities.new_id(),
            conversation_id=asking.conversation.id,
            parent_id=asking.parent_id,
            role="user",
            content=asking.text,
            created_at=by.identities.now(),
        )
        await by.conversations.put_message(question)
        return question

    def _blank(self, question: ChatMessage) -> ChatMessage:
        return ChatMessage(
            id=self._by.identities.new_id(),
            conversation_id=question.conversation_id,
            parent_id=question.id,
            role="assistant",
            content="",
            state="streaming",
            model=self._model(),
            created_at=self._by.identities.now(),
        )

    async def _context(self, question: ChatMessage, before: Sequence[ChatMessage]) -> RetrievedContext | None:
        """None when there are no notes at all: then it is a plain chat, and the embedder need not be there."""
        if not await self._by.notes.count():
            return None
        asked = question.content
        if len(keywords(asked)) < _FEW_WORDS:
            # "And why?" finds nothing by itself; it is about what was asked before.
            questions = [message.content for message in before if message.role == "user"]
            asked = "\n".join([*questions[-1:], asked])
        note_id = self._asking.draft_note_id
        return await self._by.retrieve(
            asked,
            budget_tokens=self._budget() // (2 if self._asking.draft is not None else 1),
            manas_id=self._asking.conversation.manas_id,
            leave_out=() if note_id is None else (note_id,),
            numbers={citation.note_id: citation.number for citation in self._cited_before},
        )

    def _messages(
        self, question: ChatMessage, before: Sequence[ChatMessage], context: RetrievedContext | None
    ) -> tuple[Message, ...]:
        """System, history, and the newest question with its notes.

        The order is for the KV cache. What notes fit changes with every question, so they stand with the newest
        question, at the end; once answered, a question is in the history as it was typed. The system message and the
        history are then the same tokens at every turn, and only the last turn is prefilled again.
        """
        noted = context is not None or self._asking.draft is not None
        draft, selected = self._draft()
        newest = prompt.question(question.content, context, draft=draft, selected=selected)
        return (
            *head(self._asking, noted=noted),
            *_history(before),
            Message(role="user", content=newest),
        )

    def _draft(self) -> tuple[Draft | None, str]:
        """The draft and what is selected in it, cut to half of what notes and draft may have together."""
        draft = self._asking.draft
        if draft is None:
            return None, ""
        budget = self._budget() // 2
        cut = draft.model_copy(update={"text": cut_middle(draft.text, budget * 2 // 3), "selection": None})
        return cut, cut_middle(draft.selected, budget // 3)

    def _model(self) -> str:
        return self._asking.conversation.model or self._by.models.default_name()

    def _budget(self) -> int:
        return context_budget(self._by.models.get(self._model()).context_tokens or UNKNOWN_CONTEXT_TOKENS)


def head(asking: Asking, *, noted: bool) -> tuple[Message, ...]:
    """The system message, the same at every turn; none when there are no rules to give. `noted`: there is material."""
    rules = prompt.ANSWERING if noted else None
    system = "\n\n".join(part for part in (rules, asking.system) if part)
    return (Message(role="system", content=system),) if system else ()


def _history(path: Sequence[ChatMessage]) -> list[Message]:
    """Questions and their answers. A question without an answer is left out: many chat templates refuse two user
    messages in a row."""
    history: list[Message] = []
    question: ChatMessage | None = None
    for message in path:
        if message.role == "user":
            question = message
        elif question is not None and message.content.strip():
            history.append(Message(role="user", content=question.content))
            history.append(Message(role="assistant", content=message.content))
            question = None
    return history


def _cut_words(tokens: int, fold: ThinkingFold) -> str:
    most = f"{tokens} tokens, the most that one answer may have"
    if fold.thinking and not fold.answer.strip():
        return f"The model thought for {most}, and came to no answer. Ask for less at once, or use another model."
    return f"It had {most}. Ask for the rest."
