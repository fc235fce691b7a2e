"""What the graph knows around a question, in a few statements whose cost does not grow with the number of notes."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import func
from sqlmodel import Session, col, select

from data.database.columns import storable
from data.database.tables.knowledge import AssertionRow, ConceptKeyRow, ConceptRow, MentionRow
from data.database.tables.notes import ManasNoteRow
from data.repositories.concept_names import concept_keys
from data.repositories.graph_reading import adjacent
from domain.entities.knowledge import Concept, Relation

COMMON = 100
"""A concept that more notes name is met everywhere and leads nowhere."""
_SEEDS = 20
_NEIGHBOURS = 50
_ENOUGH = 5
"""With fewer neighbours than these, a second hop is worth its time."""


def related_notes(
    session: Session,
    names: Sequence[str],
    note_ids: Sequence[str],
    *,
    manas_id: str | None,
    limit: int,
) -> tuple[str, ...]:
    """See `KnowledgeRepository`. The lists given are short."""
    begin = list(dict.fromkeys((*_named(session, names), *_of_notes(session, note_ids))))[:_SEEDS]
    reached = begin
    for _ in range(2):
        beyond = adjacent(session, reached, without=reached, limit=_NEIGHBOURS, most_notes=COMMON)
        reached = [*reached, *beyond]
        if len(reached) - len(begin) >= _ENOUGH or not beyond:
            break
    named = func.count(func.distinct(col(MentionRow.concept_id)))
    naming = select(MentionRow.note_id).where(col(MentionRow.concept_id).in_(reached))
    if manas_id is not None:
        inside = select(ManasNoteRow.note_id).where(ManasNoteRow.manas_id == manas_id)
        naming = naming.where(col(MentionRow.note_id).in_(inside))
    ranked = naming.group_by(col(MentionRow.note_id)).order_by(named.desc(), col(MentionRow.note_id))
    return tuple(session.exec(ranked.limit(limit))) if reached else ()


def relations_of(session: Session, note_ids: Sequence[str]) -> tuple[Relation, ...]:
    """See `KnowledgeRepository`."""
    notes: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    said = select(AssertionRow).where(
        col(AssertionRow.note_id).in_(note_ids), col(AssertionRow.source_id) != col(AssertionRow.target_id)
    )
    for row in session.exec(said):
        notes[row.source_id, row.verb, row.target_id].add(row.note_id)
    ends = {end for source, _, target in notes for end in (source, target)}
    concepts = {
        row.id: Concept(id=row.id, name=row.name, type=row.type, note_count=row.note_count)
        for row in session.exec(select(ConceptRow).where(col(ConceptRow.id).in_(ends)))
    }
    return tuple(
        Relation(
            source=concepts[source], verb=verb, target=concepts[target], note_ids=tuple(sorted(asserting))
        )
        for (source, verb, target), asserting in sorted(notes.items())
    )


def _named(session: Session, names: Sequence[str]) -> list[str]:
    keys = sorted({key for name in names for key in concept_keys(storable(name))})
    rows = (
        select(ConceptRow.id)
        .join(ConceptKeyRow, col(ConceptKeyRow.concept_id) == col(ConceptRow.id))
        .where(col(ConceptKeyRow.key).in_(keys), col(ConceptRow.note_count) <= COMMON)
        .order_by(col(ConceptRow.note_count).desc(), col(ConceptRow.name))
        .limit(_SEEDS)
    )
    return list(session.exec(rows)) if keys else []


def _of_notes(session: Session, note_ids: Sequence[str]) -> list[str]:
    mentioned = select(MentionRow.concept_id).where(col(MentionRow.note_id).in_(note_ids))
    rows = (
        select(ConceptRow.id)
        .where(col(ConceptRow.id).in_(mentioned), col(ConceptRow.note_count) <= COMMON)
        .order_by(col(ConceptRow.note_count).desc(), col(ConceptRow.name))
        .limit(_SEEDS)
    )
    return list(session.exec(rows)) if note_ids else []
