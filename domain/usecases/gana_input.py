"""What a Gana has not read yet, as much of it as fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from domain.entities.gana import GanaDraft
from domain.entities.note import Note
from domain.prompts.gana import note_block
from domain.repositories.notes import NoteRepository
from domain.usecases.text_budget import cut_middle, text_tokens

INPUT_NOTES = 50
MOST_INPUT_NOTES = 10_000
"""Of one moment, as after a bulk import."""
SHORTEST_EXCERPT_TOKENS = 60
"""Notes that get less than that are named by their titles only."""


@dataclass(frozen=True)
class InputBatch:
    """The oldest unread notes, and the cursor that has read them."""

    notes: tuple[Note, ...]
    text: str
    cursor: datetime | None


def watches(draft: GanaDraft) -> bool:
    """Whether it has an input at all."""
    return draft.input_tag is not None or draft.input_manas_id is not None


async def read_input(
    notes: NoteRepository, draft: GanaDraft, after: datetime | None, budget_tokens: int
) -> InputBatch:
    """An empty batch when there is nothing new.

    The cursor is a time, so notes that changed at the same moment are read together or not at all: none is passed over.
    """
    limit = INPUT_NOTES
    while True:
        found = await _unread(notes, draft, after, limit)
        if len(found) < limit:
            break
        if found[0].changed_at != found[-1].changed_at:
            last = found[-1].changed_at  # there may be more of this moment
            found = tuple(note for note in found if note.changed_at < last)
            break
        if limit >= MOST_INPUT_NOTES:
            break
        limit *= 4
    return _pack([note for note in found if note.source != "gana"], budget_tokens)


async def newest_input(notes: NoteRepository, draft: GanaDraft, budget_tokens: int) -> InputBatch:
    """For a preview when nothing is new: the newest notes of the input, whatever the cursor says."""
    lines = await notes.lines(tag=draft.input_tag, manas_id=draft.input_manas_id, limit=3)
    found = [note for note in await notes.many([line.id for line in lines]) if note.source != "gana"]
    return _pack(found[::-1], budget_tokens)


async def _unread(
    notes: NoteRepository, draft: GanaDraft, after: datetime | None, limit: int
) -> tuple[Note, ...]:
    return await notes.changed_since(after, tag=draft.input_tag, manas_id=draft.input_manas_id, limit=limit)


def _pack(found: Sequence[Note], budget_tokens: int) -> InputBatch:
    taken: list[Note] = []
    blocks: list[str] = []
    room = budget_tokens
    for _, moment in groupby(found, key=lambda note: note.changed_at):
        group = list(moment)
        cost = sum(text_tokens(note_block(note.title, note.text)) for note in group)
        if taken and cost > room:
            break
        blocks += _blocks(group, room) if cost > room else [note_block(n.title, n.text) for n in group]
        taken += group
        room -= cost
        if room <= 0:
            break
    cursor = taken[-1].changed_at if taken else None
    return InputBatch(tuple(taken), "\n\n".join(blocks), cursor)


def _blocks(group: Sequence[Note], room: int) -> list[str]:
    """More than fits: an equal share each, and only the titles of those that get no share."""
    shown = max(1, min(len(group), room // (2 * SHORTEST_EXCERPT_TOKENS)))
    share = max(SHORTEST_EXCERPT_TOKENS, room // shown - SHORTEST_EXCERPT_TOKENS)
    blocks = [note_block(note.title, cut_middle(note.text, share)) for note in group[:shown]]
    rest = group[shown:]
    if rest:
        titles = "; ".join(note.title for note in rest)
        blocks.append(note_block(f"{len(rest)} more notes", cut_middle(titles, SHORTEST_EXCERPT_TOKENS * 2)))
    return blocks
