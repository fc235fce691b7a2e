from datetime import UTC, datetime

from domain.entities.conversation import ChatMessage, Citation
from domain.usecases.citations import cited_before

AT = datetime(2026, 1, 1, tzinfo=UTC)


def said(content: str, **notes: int) -> ChatMessage:
    """An answer that was given these notes, by their numbers."""
    return ChatMessage(
        id=content,
        conversation_id="c",
        parent_id=None,
        role="assistant",
        content=content,
        citations=tuple(
            Citation(number=number, note_id=note, title=note.title()) for note, number in notes.items()
        ),
        created_at=AT,
    )


def numbers(*path: ChatMessage) -> dict[str, int]:
    return {citation.note_id: citation.number for citation in cited_before(path)}


def test_only_what_an_answer_refers_to_has_a_number_that_stays() -> None:
    assert numbers(said("See [2].", tea=1, coffee=2), said("And [1, 3].", tea=1, cocoa=3)) == {
        "coffee": 2,
        "tea": 1,
        "cocoa": 3,
    }


def test_of_an_older_conversation_the_first_note_keeps_the_number_and_the_other_gets_one_of_its_own() -> None:
    older = (said("Two [1].", tea=1), said("Four [1].", coffee=1))
    assert numbers(*older) == {"tea": 1}
    assert numbers(*older, said("Four, as I said [2].", coffee=2), said("Hot [2].", cocoa=2)) == {
        "tea": 1,
        "coffee": 2,
    }
