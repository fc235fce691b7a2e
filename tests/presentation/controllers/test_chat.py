import asyncio
from contextlib import aclosing

import pytest

from domain.entities.conversation import AnswerBegun, AnswerEvent, ChatMessage, Conversation
from domain.entities.llm import LlmTaskKind, TextDelta
from domain.errors import DatabaseError, EngineError, InvalidRequest, MessageNotFound, UnknownModel
from presentation.controllers.chat import ChatController
from tests.fakes import HOLD, MemoryStore, ScriptedCoordinator, answer
from tests.memory.chat import MemoryChat
from tests.memory.conversations import MemoryConversations


def open_chat(
    coordinator: ScriptedCoordinator, store: MemoryStore | None = None, memory: MemoryChat | None = None
) -> ChatController:
    memory = memory or MemoryChat(coordinator, store or MemoryStore("tiny"))
    chat = ChatController(memory.use_cases, system="Be brief.")
    asyncio.run(chat.begin())
    return chat


async def collect(chat: ChatController, text: str) -> list[AnswerEvent]:
    return [event async for event in chat.send(text)]


def said(chat: ChatController) -> list[tuple[str, str]]:
    return [(shown.message.role, shown.message.content) for shown in chat.path]


def states(chat: ChatController) -> list[str]:
    return [shown.message.state for shown in chat.path]


def test_the_second_turn_carries_the_first() -> None:
    coordinator = ScriptedCoordinator(answer("One", "."), answer("Two."))
    chat = open_chat(coordinator)
    asyncio.run(collect(chat, "first"))
    asyncio.run(collect(chat, "second"))
    assert said(chat) == [
        ("user", "first"),
        ("assistant", "One."),
        ("user", "second"),
        ("assistant", "Two."),
    ]
    assert [m.content for m in coordinator.requests[1].messages] == ["Be brief.", "first", "One.", "second"]
    assert coordinator.requests[0].flow == coordinator.requests[1].flow


def test_the_surface_follows_the_conversation_that_is_shown() -> None:
    coordinator = ScriptedCoordinator()
    with open_chat(coordinator) as chat:
        first = chat.conversation.id
        asyncio.run(collect(chat, "hello"))
        second = asyncio.run(chat.begin()).id
        asyncio.run(chat.open(first))
    assert coordinator.surfaces == [
        (LlmTaskKind.CHAT, first),
        (LlmTaskKind.CHAT, second),
        (LlmTaskKind.CHAT, first),
        (None, None),
    ]


def test_what_a_new_conversation_draws_on_makes_it_no_other_one() -> None:
    memory = MemoryChat(ScriptedCoordinator(), MemoryStore("tiny"))
    chat = open_chat(ScriptedCoordinator(), memory=memory)
    before = chat.conversation

    manas = asyncio.run(memory.library.manases.create("Trees"))
    asyncio.run(chat.use_manas(manas.id))
    assert chat.conversation == before.model_copy(update={"manas_id": manas.id})


def test_a_conversation_is_kept_from_its_first_question_on() -> None:
    coordinator = ScriptedCoordinator(answer("One."))
    memory = MemoryChat(coordinator, MemoryStore("tiny"))
    chat = open_chat(coordinator, memory=memory)
    assert asyncio.run(chat.conversations()) == ()
    asyncio.run(collect(chat, "What is a stoic, and why should I care about any of them at all today?"))
    other = open_chat(coordinator, memory=memory)
    (kept,) = asyncio.run(other.conversations("stoic"))
    assert kept.title == "What is a stoic, and why should I care about any of them…"
    view = asyncio.run(other.open(kept.id[:6]))
    assert [shown.message.content for shown in view.path][1] == "One."


class FullDisk(MemoryConversations):
    """Keeps nothing; `whole` says whether not even the conversation."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self._whole = whole

    async def create(self, conversation: Conversation) -> None:
        if self._whole:
            raise DatabaseError("The disk is full.")
        await super().create(conversation)

    async def put_message(self, message: ChatMessage) -> None:
        raise DatabaseError("The disk is full.")


@pytest.mark.parametrize("whole", [True, False])
def test_a_first_question_that_cannot_be_kept_says_why(whole: bool) -> None:
    coordinator = ScriptedCoordinator(answer("One."))
    memory = MemoryChat(coordinator, MemoryStore("tiny"), conversations=FullDisk(whole=whole))
    chat = open_chat(coordinator, memory=memory)
    with pytest.raises(DatabaseError, match="disk is full"):
        asyncio.run(collect(chat, "hello"))
    assert not chat.answering


def test_a_stopped_answer_ends_quietly_and_is_kept() -> None:
    chat = open_chat(ScriptedCoordinator([*answer("Half an", " answer")[:1], HOLD]))

    async def scenario() -> None:
        async for event in chat.send("question"):
            if isinstance(event, TextDelta):
                assert chat.answering
                asyncio.get_running_loop().call_soon(chat.cancel)

    asyncio.run(scenario())
    assert said(chat) == [("user", "question"), ("assistant", "Half an")]
    assert states(chat) == ["complete", "stopped"]
    assert not chat.answering


def test_a_question_that_was_stopped_before_the_first_word_is_kept_but_not_sent_again() -> None:
    coordinator = ScriptedCoordinator([HOLD], answer("Fine."))
    chat = open_chat(coordinator)

    async def scenario() -> None:
        asyncio.get_running_loop().call_soon(chat.cancel)
        (begun,) = await collect(chat, "question")
        assert isinstance(begun, AnswerBegun)
        await collect(chat, "another")

    asyncio.run(scenario())
    assert [content for _, content in said(chat)] == ["question", "", "another", "Fine."]
    assert [m.content for m in coordinator.requests[1].messages] == ["Be brief.", "another"]


def test_a_failure_in_the_middle_is_told_and_keeps_what_was_answered() -> None:
    chat = open_chat(ScriptedCoordinator([*answer("Half")[:1], EngineError("The engine failed.")]))
    with pytest.raises(EngineError):
        asyncio.run(collect(chat, "question"))
    assert said(chat) == [("user", "question"), ("assistant", "Half")]
    assert chat.path[-1].message.state == "failed"
    assert chat.path[-1].message.error == "The engine failed."


def test_a_question_that_cannot_be_answered_is_kept_with_the_reason() -> None:
    chat = open_chat(ScriptedCoordinator(), MemoryStore())
    with pytest.raises(UnknownModel):
        asyncio.run(collect(chat, "question"))
    assert said(chat) == [("user", "question"), ("assistant", "")]
    assert "no model tiny" in (chat.path[-1].message.error or "")


def test_leaving_the_stream_early_cancels_the_job() -> None:
    coordinator = ScriptedCoordinator(answer("a", "b", "c"))
    chat = open_chat(coordinator)

    async def scenario() -> None:
        async with aclosing(chat.send("question")) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break

    asyncio.run(scenario())
    assert coordinator.jobs[0].cancelled.is_set()
    assert said(chat) == [("user", "question"), ("assistant", "a")]
    assert states(chat)[-1] == "stopped"


def test_cancelling_nothing_is_harmless() -> None:
    open_chat(ScriptedCoordinator()).cancel()


def test_one_answer_at_a_time() -> None:
    chat = open_chat(ScriptedCoordinator(answer("a", "b")))

    async def scenario() -> None:
        async with aclosing(chat.send("question")) as events:
            await anext(events)
            with pytest.raises(InvalidRequest, match="on its way"):
                await collect(chat, "another")

    asyncio.run(scenario())


def test_a_retry_is_a_sibling_and_written_with_more_chance() -> None:
    coordinator = ScriptedCoordinator(answer("One."), answer("Uno."))
    chat = open_chat(coordinator)

    async def scenario() -> None:
        await collect(chat, "first")
        [_ async for _ in chat.retry()]

    asyncio.run(scenario())
    assert said(chat) == [("user", "first"), ("assistant", "Uno.")]
    assert coordinator.requests[0].messages == coordinator.requests[1].messages
    assert coordinator.requests[0].sampling.temperature == 0
    assert coordinator.requests[1].sampling.temperature > 0
    one = chat.path[1].siblings[0]
    asyncio.run(chat.show_sibling(one))
    assert said(chat)[1] == ("assistant", "One.")


def test_an_edit_is_a_branch_and_the_old_one_stays() -> None:
    coordinator = ScriptedCoordinator(answer("One."), answer("Two."), answer("Three."))
    chat = open_chat(coordinator)

    async def scenario() -> None:
        await collect(chat, "first")
        await collect(chat, "second")
        [_ async for _ in chat.edit("the first", chat.path[0].message.id)]
        assert said(chat) == [("user", "the first"), ("assistant", "Three.")]
        old = next(each for each in chat.path[0].siblings if each != chat.path[0].message.id)
        await chat.show_sibling(old)

    asyncio.run(scenario())
    assert [content for _, content in said(chat)] == ["first", "One.", "second", "Two."]
    assert [m.content for m in coordinator.requests[2].messages] == ["Be brief.", "the first"]


def test_a_branch_goes_on_from_any_message() -> None:
    coordinator = ScriptedCoordinator(answer("One."), answer("Two."), answer("Deux."))
    chat = open_chat(coordinator)

    async def scenario() -> None:
        await collect(chat, "first")
        await collect(chat, "second")
        await chat.branch(chat.path[1].message.id)
        assert len(chat.path) == 2
        await collect(chat, "the second")

    asyncio.run(scenario())
    assert [content for _, content in said(chat)] == ["first", "One.", "the second", "Deux."]
    assert len(chat.path[2].siblings) == 2


def test_messages_that_are_not_there() -> None:
    chat = open_chat(ScriptedCoordinator())
    with pytest.raises(MessageNotFound):
        chat.retry()
    with pytest.raises(MessageNotFound):
        chat.edit("x", "nonsense")
    asyncio.run(collect(chat, "first"))
    with pytest.raises(MessageNotFound):
        asyncio.run(chat.branch("nonsense"))


def test_title_and_model_of_a_new_and_of_an_old_conversation() -> None:
    coordinator = ScriptedCoordinator()
    memory = MemoryChat(coordinator, MemoryStore("tiny", "other"))
    chat = open_chat(coordinator, memory=memory)

    async def scenario() -> None:
        await chat.rename("My\n title")
        await chat.use_model("other")
        await collect(chat, "first")
        assert (await chat.conversations())[0].title == "My title"
        await chat.rename("Another")
        await chat.use_model("tiny")
        await collect(chat, "second")
        assert (await chat.conversations())[0].title == "Another"

    asyncio.run(scenario())
    assert [request.model for request in coordinator.requests] == ["other", "tiny"]
    assert [shown.message.model for shown in chat.path] == [None, "other", None, "tiny"]


def test_only_the_end_of_a_shortened_path_goes_on() -> None:
    chat = open_chat(ScriptedCoordinator(answer("One."), answer("Two.")))
    asyncio.run(collect(chat, "first"))
    asyncio.run(collect(chat, "second"))
    assert [shown.goes_on for shown in chat.path] == [False] * 4
    asyncio.run(chat.branch(chat.path[1].message.id))
    assert [shown.goes_on for shown in chat.path] == [False, True]
    asyncio.run(chat.show_sibling(chat.path[1].message.id))
    assert [shown.goes_on for shown in chat.path] == [False] * 4


def test_where_a_message_is_can_be_asked() -> None:
    chat = open_chat(ScriptedCoordinator(answer("One.")))
    assert not chat.kept
    asyncio.run(collect(chat, "first"))
    assert chat.kept
    assert asyncio.run(chat.conversation_of(chat.path[0].message.id)) == chat.conversation.id
    assert asyncio.run(chat.conversation_of("nothing")) is None
