"""A conversation in an export: no branch is missing, and the numbers in answers have their notes."""

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from domain.entities.conversation import ChatMessage, Citation
from domain.usecases.export_conversations import conversation_markdown

AT = datetime(2026, 1, 1, tzinfo=UTC)


def said(name: str, parent: str | None, **fields: object) -> ChatMessage:
    given = {
        "id": name,
        "conversation_id": "c",
        "parent_id": parent,
        "role": "user" if name.startswith("q") else "assistant",
        "content": f"said {name}.",
        "created_at": AT,
    }
    return ChatMessage.model_validate(given | fields)


TALK = [said("q1", None), said("a1", "q1"), said("q2", "a1"), said("a2", "q2"), said("a3", "q1"), said("q3", "a3")]  # fmt: skip


def order(text: str) -> list[str]:
    """The messages by their ids, and the headings."""
    found = re.finditer(r"said (?P<said>\w+)\.$|^(?P<heading>## Another branch.*)$", text, re.MULTILINE)
    return [match["heading"] or match["said"] for match in found]


def test_the_shown_branch_comes_first_and_the_others_follow_with_what_differs() -> None:
    text = conversation_markdown(TALK, "a2", {})
    assert order(text) == [
        "q1", "a1", "q2", "a2", "## Another branch, from: said q1.", "a3", "q3",
    ]  # fmt: skip


def test_a_branch_that_is_to_be_gone_on_from_in_its_middle_is_told_to_its_end() -> None:
    text = conversation_markdown(TALK, "a1", {})
    assert order(text)[:4] == ["q1", "a1", "q2", "a2"]


def test_another_first_question_begins_at_the_beginning() -> None:
    text = conversation_markdown([*TALK, said("q9", None)], "a2", {})
    assert text.endswith("## Another branch, from: the beginning\n\n**You**\n\nsaid q9.\n")


@given(st.lists(st.integers(-1, 12), min_size=1, max_size=12), st.integers(-1, 12))
def test_every_message_is_there_once_whatever_the_parents_say(parents: list[int], leaf: int) -> None:
    messages = [said(f"q{at}", f"q{parent}" if parent >= 0 else None) for at, parent in enumerate(parents)]
    text = conversation_markdown(messages, f"q{leaf}", {})
    found = [each for each in order(text) if not each.startswith("#")]
    assert sorted(found) == sorted(f"q{at}" for at in range(len(parents)))


def test_the_notes_of_an_answer_are_listed_below_it_with_their_files() -> None:
    answer = said(
        "a1",
        None,
        content="So it is [1][2].",
        citations=(
            Citation(number=1, note_id="n1", title="A [draft] of\nmine"),
            Citation(number=2, note_id="gone", title="Gone", written_by="Weekly"),
        ),
    )
    assert conversation_markdown([answer], "a1", {"n1": "A [draft] of mine.md"}) == (
        "**UNIUN**\n\nSo it is [1][2].\n\nNotes that this answer was given:\n\n"
        "- [1] [A \\[draft\\] of mine](../notes/A%20%5Bdraft%5D%20of%20mine.md)\n"
        "- [2] Gone (deleted since), written by the Gana Weekly\n"
    )


def test_thinking_a_model_and_an_end_before_the_end_are_told() -> None:
    text = conversation_markdown(
        [said("a1", None, model="small", thinking="first\n\nthen", state="failed", error="No memory.")],
        "a1",
        {},
    )
    assert text == (
        "**UNIUN** (small)\n\n> Thinking:\n>\n> first\n>\n> then\n\nsaid a1.\n\n*This answer failed.* No memory.\n"
    )
