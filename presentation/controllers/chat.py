"""One conversation between a user and the model, as a face shows it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from types import TracebackType

from domain.entities.conversation import (
    AnswerEvent,
    ChatMessage,
    Conversation,
    ConversationView,
    Draft,
    PathMessage,
)
from domain.entities.llm import LlmTaskKind
from domain.errors import InvalidRequest, MessageNotFound, UniunError
from domain.usecases.chat import Answer, AnswerUseCase, Asking
from domain.usecases.conversations import (
    BeginConversationUseCase,
    BranchUseCase,
    ChangeConversationUseCase,
    DeleteConversationUseCase,
    ListConversationsUseCase,
    ShowConversationUseCase,
)
from domain.usecases.scheduler import SetForegroundKindUseCase


@dataclass(frozen=True)
class ChatUseCases:
    """Everything that a chat does."""

    answer: AnswerUseCase
    begin: BeginConversationUseCase
    list_conversations: ListConversationsUseCase
    show: ShowConversationUseCase
    branch: BranchUseCase
    change: ChangeConversationUseCase
    delete: DeleteConversationUseCase
    set_foreground: SetForegroundKindUseCase


class ChatController:
    """Shows one conversation at a time; while it is entered (`with chat:`) that one is what the user looks at.

    `begin` or `open` it first. A new conversation is kept from its first question on.
    """

    def __init__(
        self, use_cases: ChatUseCases, *, model: str | None = None, system: str | None = None
    ) -> None:
        self._do = use_cases
        self._model = model
        self._system = system
        self._conversation: Conversation | None = None
        self._path: tuple[PathMessage, ...] = ()
        self._answer: Answer | None = None
        self._entered = False
        self.kept = False
        """Whether the conversation is in the database, as far as is known here."""

    def __enter__(self) -> "ChatController":
        self._entered = True
        self._look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = False
        self._leave()

    # -- which conversation

    @property
    def conversation(self) -> Conversation:
        """The one that is shown. Raises `InvalidRequest` before `begin` or `open`."""
        if self._conversation is None:
            raise InvalidRequest("No conversation is open. Begin one.")
        return self._conversation

    @property
    def path(self) -> tuple[PathMessage, ...]:
        """Its messages from the first to the leaf."""
        return self._path

    @property
    def model(self) -> str | None:
        """Answers the next question; the default model when none."""
        return self.conversation.model

    async def begin(self, *, manas: str | None = None) -> Conversation:
        """A new conversation, over all notes or those of a Manas (id or name). Raises `ManasNotFound`."""
        self._show(
            ConversationView(conversation=await self._do.begin(manas=manas, model=self._model), path=())
        )
        self.kept = False
        return self.conversation

    async def open(self, conversation_id: str) -> ConversationView:
        """By id or the beginning of one. Raises `ConversationNotFound`."""
        view = await self._do.show(conversation_id)
        self._show(view)
        return view

    def twin(self) -> "ChatController":
        """The same conversation, apart: an answer that is asked for there goes on when this one shows another."""
        twin = ChatController(self._do, model=self._model, system=self._system)
        twin._conversation, twin._path = self._conversation, self._path
        return twin

    def message(self, message_id: str) -> ChatMessage:
        """One of those that are shown. Raises `MessageNotFound`."""
        return self._on_path(message_id, "assistant", "user")

    async def tree(self) -> tuple[ChatMessage, ...]:
        """Every message on every branch, oldest first. Raises `ConversationNotFound`."""
        return await self._do.show.messages(self.conversation.id)

    async def conversation_of(self, message_id: str) -> str | None:
        """The id of the one, whichever it is, that has this message; none when there is no such message."""
        try:
            return await self._do.show.of_message(message_id)
        except MessageNotFound:
            return None

    async def version(self) -> str:
        """Another one after every change of the conversation that is shown, whichever program made it.

        Raises `ConversationNotFound`.
        """
        return await self._do.show.version(self.conversation.id)

    async def conversations(self, text: str = "", *, limit: int = 50) -> tuple[Conversation, ...]:
        """Newest change first; those that have the text somewhere."""
        return await self._do.list_conversations(text, limit=limit)

    async def delete(self, conversation_id: str) -> None:
        """With its messages. Raises `ConversationNotFound`."""
        await self._do.delete(conversation_id)

    async def rename(self, title: str) -> Conversation:
        """One line of it, of at most 200 characters."""
        title = " ".join(title.split())[:200]
        if self._path:
            self._conversation = await self._do.change.rename(self.conversation.id, title)
        elif title:
            self._conversation = self.conversation.model_copy(update={"title": title})
        return self.conversation

    async def use_model(self, model: str | None) -> None:
        """From the next question on, here and in conversations that are begun later."""
        self._model = model
        if self._path:
            self._conversation = await self._do.change.use_model(self.conversation.id, model)
        else:
            self._conversation = self.conversation.model_copy(update={"model": model})

    async def use_manas(self, manas: str | None) -> None:
        """From the next question on. Raises `ManasNotFound`."""
        if self._path:
            self._conversation = await self._do.change.use_manas(self.conversation.id, manas)
        else:
            # The same conversation: a page has told its id already, and a question may be on its way.
            begun = await self._do.begin(manas=manas)
            self._conversation = self.conversation.model_copy(update={"manas_id": begun.manas_id})

    # -- asking

    @property
    def answering(self) -> bool:
        """Whether an answer is on its way."""
        return self._answer is not None

    def send(
        self, text: str, *, question_id: str | None = None, kept: Callable[[], object] = lambda: None
    ) -> AsyncGenerator[AnswerEvent, None]:
        """Asks at the end of the path and streams the answer; ends early, without an error, after `cancel()`. `kept` is
        called once the question is in the database, under the id given or a new one.

        Question and answer are kept however it ends. Raises what `Answer.events` raises, and `InvalidRequest` while
        another answer is on its way.
        """
        return self._ask(self._asking(text, self.conversation.leaf_id, question_id), kept)

    def retry(self, message_id: str | None = None) -> AsyncGenerator[AnswerEvent, None]:
        """Another answer beside the one named, or beside the last; it is written with more chance.

        Raises `MessageNotFound`, and what `send` raises.
        """
        message = self._on_path(message_id, "assistant", "user")
        return self._ask(self._asking(None, message.parent_id if message.role == "assistant" else message.id))

    def edit(
        self,
        text: str,
        message_id: str | None = None,
        *,
        question_id: str | None = None,
        kept: Callable[[], object] = lambda: None,
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The question named, or the last one, put differently: a new branch beside it. `kept` as for `send`.

        Raises `MessageNotFound`, and what `send` raises.
        """
        parent_id = self._on_path(message_id, "user").parent_id
        return self._ask(self._asking(text, parent_id, question_id), kept)

    async def read_ahead(self) -> None:
        """While the user types: the model is loaded, and what was said so far lies ready when the question is sent.

        Being cancelled stops it. Raises whatever ends the job.
        """
        await self._do.answer.read_ahead(self._asking(None, self.conversation.leaf_id))

    def cancel(self) -> None:
        """Stops the answer at the next boundary. Harmless when there is none."""
        if self._answer is not None:
            self._answer.cancel()

    async def branch(self, message_id: str) -> None:
        """The path ends at this message; the next question follows it. Raises `MessageNotFound`."""
        await self._do.branch(self.conversation.id, message_id)
        await self._refresh()

    async def show_sibling(self, message_id: str) -> None:
        """The path goes through this message to the newest one below it. Raises `MessageNotFound`."""
        await self._do.branch(self.conversation.id, message_id, to_its_end=True)
        await self._refresh()

    # -- inside

    def _asking(self, text: str | None, parent_id: str | None, question_id: str | None = None) -> Asking:
        draft, note_id = self._draft()
        return Asking(
            conversation=self.conversation,
            text=text,
            parent_id=parent_id,
            question_id=question_id,
            system=self._system,
            draft=draft,
            draft_note_id=note_id,
        )

    def _draft(self) -> tuple[Draft | None, str | None]:
        """What the user is writing, and the id of its note."""
        return None, None

    async def _ask(
        self, asking: Asking, kept: Callable[[], object] = lambda: None
    ) -> AsyncGenerator[AnswerEvent, None]:
        if self._answer is not None:
            raise InvalidRequest("An answer is on its way. Wait for it, or stop it.")
        self._answer = self._do.answer(asking, kept)
        whole = False
        try:
            async with aclosing(self._answer.events()) as events:
                async for event in events:
                    yield event
            whole = True
        finally:
            self._answer = None
            if self.conversation.id == asking.conversation.id:
                # A first question that could not be kept leaves no conversation: its own error is to be heard.
                with nullcontext() if whole else suppress(UniunError):
                    await self._refresh()

    def _on_path(self, message_id: str | None, *roles: str) -> ChatMessage:
        for shown in reversed(self._path):
            if shown.message.role in roles and message_id in (None, shown.message.id):
                return shown.message
        raise MessageNotFound("There is no such message in what is shown.")

    async def _refresh(self) -> None:
        view = await self._do.show(self.conversation.id)
        self._conversation, self._path, self.kept = view.conversation, view.path, True

    def _show(self, view: ConversationView) -> None:
        self.cancel()
        self._conversation, self._path, self.kept = view.conversation, view.path, True
        self._look()

    def _look(self) -> None:
        if self._entered and self._conversation is not None:
            self._do.set_foreground(LlmTaskKind.CHAT, self._conversation.id)

    def _leave(self) -> None:
        self._do.set_foreground(None)
