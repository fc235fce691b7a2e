"""What a Gana has not read yet, as much of it as fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.entities.gana import GanaDraft
from domain.entities.note import Note, NoteArrival
from domain.prompts.gana import note_block
from domain.repositories.notes import NoteRepository
from domain.usecases.text_budget import cut_middle, text_tokens

INPUT_NOTES = 50
SHORTEST_EXCERPT_TOKENS = 60
"""With less room than that a note waits for the next run."""
LEFT_ALONE = timedelta(minutes=1)
"""After its last change somebody who was writing a note is taken to have written it."""
LONGEST_HOLD = timedelta(minutes=30)
"""Notes that came after one that is being written wait no longer for it."""


@dataclass(frozen=True)
class InputBatch:
    """The oldest unread notes, and the cursor that has read them."""

    notes: tuple[Note, ...]
    text: str
    cursor: int | None


def watches(draft: GanaDraft) -> bool:
    """Whether it has an input at all."""
    return draft.input_tag is not None or draft.input_manas_id is not None


def left_alone(arrived: Sequence[NoteArrival], now: datetime) -> Sequence[NoteArrival]:
    """Those before the first that is being written. The others wait behind it, for the cursor cannot go back to it; a batch
    that is full, or one that has waited long, waits no longer."""
    if len(arrived) >= INPUT_NOTES:
        return arrived
    for at, arrival in enumerate(arrived):
        if being_written(arrival.note, now):
            behind = (other.note for other in arrived[at + 1 :])
            late = any(note.source == "typed" and note.changed_at < now - LONGEST_HOLD for note in behind)
            return arrived if late else arrived[:at]
    return arrived


def being_written(note: Note, now: datetime) -> bool:
    """Whether it was changed just now. One that was saved whole, by a program or from a file, has not been changed since."""
    return note.changed_at != note.created_at and now - LEFT_ALONE < note.changed_at <= now


async def read_input(
    notes: NoteRepository,
    draft: GanaDraft,
    after: int | None,
    budget_tokens: int,
    *,
    whole_at: datetime | None = None,
) -> InputBatch:
    """An empty batch when there is nothing new. What does not fit is left for the next run; with `whole_at` also what is
    being written then."""
    found: Sequence[NoteArrival] = await notes.arrived_since(
        after, tag=draft.input_tag, manas_id=draft.input_manas_id, limit=INPUT_NOTES
    )
    if whole_at is not None:
        found = left_alone(found, whole_at)
    taken, text = _pack([arrival.note for arrival in found], budget_tokens)
    return InputBatch(taken, text, found[len(taken) - 1].number if taken else None)


async def newest_input(notes: NoteRepository, draft: GanaDraft, budget_tokens: int) -> InputBatch:
    """For a preview when nothing is new: the newest notes of the input, whatever the cursor says."""
    lines = await notes.lines(tag=draft.input_tag, manas_id=draft.input_manas_id, limit=3)
    found = [note for note in await notes.many([line.id for line in lines]) if note.source != "gana"]
    return InputBatch(*_pack(found[::-1], budget_tokens), cursor=None)


def _pack(found: Sequence[Note], budget_tokens: int) -> tuple[tuple[Note, ...], str]:
    """The first notes that fit; of one that is larger than the budget, its beginning and its end."""
    blocks: list[str] = []
    room = budget_tokens
    for note in found:
        block = note_block(note.title, note.text)
        cost = text_tokens(block)
        if cost > room:
            if blocks:
                break
            block = note_block(note.title, cut_middle(note.text, max(SHORTEST_EXCERPT_TOKENS, room)))
        blocks.append(block)
        room -= cost
    return tuple(found[: len(blocks)]), "\n\n".join(blocks)
