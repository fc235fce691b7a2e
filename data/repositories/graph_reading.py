"""Reading the graph."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import case, func, or_
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database.columns import storable
from data.database.rows import chunks, table
from data.database.tables.knowledge import AssertionRow, ConceptKeyRow, ConceptRow, MentionRow, SummaryRow
from data.database.tables.notes import ManasNoteRow
from data.repositories.concept_names import concept_keys, other_names
from data.repositories.full_text import MAX_QUERY_CHARACTERS
from domain.entities.knowledge import Concept, Neighbourhood, Relation
from domain.folding import fold

MAX_HOPS = 2
RELATIONS_PER_CONCEPT = 10


def concepts_of(session: Session, note_ids: Sequence[str]) -> tuple[Concept, ...]:
    """Most named first."""
    ids: set[str] = set()
    for chunk in chunks(sorted(set(note_ids))):
        ids.update(
            session.exec(select(MentionRow.concept_id).where(col(MentionRow.note_id).in_(chunk)).distinct())
        )
    return _concepts(session, ids)


def summaries(session: Session, note_ids: Sequence[str]) -> dict[str, str]:
    """Note id to summary."""
    found: dict[str, str] = {}
    for chunk in chunks(sorted(set(note_ids))):
        rows = select(SummaryRow.note_id, SummaryRow.summary).where(col(SummaryRow.note_id).in_(chunk))
        found.update(session.exec(rows).all())
    return found


def notes_naming(session: Session, concept_ids: Sequence[str], limit: int) -> tuple[str, ...]:
    """Those that name most of them first."""
    counts: dict[str, int] = defaultdict(int)
    for chunk in chunks(sorted(set(concept_ids))):
        named = func.count(func.distinct(col(MentionRow.concept_id)))
        found = session.exec(
            select(MentionRow.note_id, named)
            .where(col(MentionRow.concept_id).in_(chunk))
            .group_by(col(MentionRow.note_id))
            .order_by(named.desc(), col(MentionRow.note_id))
            .limit(limit)
        )
        for note_id, count in found:
            counts[note_id] += count
    return tuple(sorted(counts, key=lambda note_id: (-counts[note_id], note_id))[:limit])


def neighbours(session: Session, concept_ids: Sequence[str], *, hops: int, limit: int) -> Neighbourhood:
    """The concepts themselves, then the nearer ones, then those that most notes name."""
    kept = [concept.id for concept in _concepts(session, set(concept_ids))][:limit]
    border = kept
    for _ in range(min(hops, MAX_HOPS)):
        border = adjacent(session, border, without=kept, limit=limit - len(kept))
        kept = [*kept, *border]
        if not border:
            break
    place = {concept_id: at for at, concept_id in enumerate(kept)}
    return _between(session, sorted(_concepts(session, place), key=lambda concept: place[concept.id]))


def find_concepts(session: Session, text: str, limit: int) -> tuple[Concept, ...]:
    """Whole names before parts of names."""
    text = storable(text[:MAX_QUERY_CHARACTERS])
    wanted = concept_keys(text)
    parts = {" ".join(fold(text).split()), *wanted}
    whole = func.max(case((col(ConceptKeyRow.key).in_(wanted), 1), else_=0))
    found = session.exec(
        select(ConceptRow.id, whole)
        .join(ConceptKeyRow, col(ConceptKeyRow.concept_id) == col(ConceptRow.id))
        .where(or_(*(col(ConceptKeyRow.key).contains(part, autoescape=True) for part in sorted(parts))))
        .group_by(col(ConceptRow.id))
        .order_by(whole.desc(), col(ConceptRow.note_count).desc(), col(ConceptRow.name))
        .limit(limit)
    )
    place = {concept_id: at for at, (concept_id, _) in enumerate(found)}
    return tuple(sorted(_concepts(session, place), key=lambda concept: place[concept.id]))


def most_named(session: Session, *, manas_id: str | None, limit: int) -> Neighbourhood:
    """The concepts that most notes name, of all or of a Manas."""
    if manas_id is None:
        ids = session.exec(
            select(ConceptRow.id)
            .order_by(col(ConceptRow.note_count).desc(), col(ConceptRow.name))
            .limit(limit)
        ).all()
    else:
        ids = session.exec(
            select(MentionRow.concept_id)
            .join(ManasNoteRow, col(ManasNoteRow.note_id) == col(MentionRow.note_id))
            .where(ManasNoteRow.manas_id == manas_id)
            .group_by(col(MentionRow.concept_id))
            .order_by(func.count(func.distinct(col(MentionRow.note_id))).desc(), col(MentionRow.concept_id))
            .limit(limit)
        ).all()
    return _between(session, _concepts(session, set(ids)))


def adjacent(
    session: Session,
    concept_ids: Sequence[str],
    *,
    without: Collection[str],
    limit: int,
    most_notes: int | None = None,
) -> list[str]:
    """Ids of concepts that a relation connects with one of these, most named first; none that more than `most_notes`
    name."""
    counts: dict[str, tuple[int, str]] = {}
    for chunk in chunks(concept_ids):
        for here, there in (
            (AssertionRow.source_id, AssertionRow.target_id),
            (AssertionRow.target_id, AssertionRow.source_id),
        ):
            ends = select(there).where(col(here).in_(chunk), col(here) != col(there))
            rows = select(ConceptRow.id, ConceptRow.note_count, ConceptRow.name).where(
                col(ConceptRow.id).in_(ends)
            )
            if most_notes is not None:
                rows = rows.where(col(ConceptRow.note_count) <= most_notes)
            ranked = rows.order_by(col(ConceptRow.note_count).desc(), col(ConceptRow.name))
            for concept_id, count, name in session.exec(ranked.limit(limit + len(without))):
                counts[concept_id] = (-count, name)
    found = sorted(counts.keys() - set(without), key=lambda concept_id: (counts[concept_id], concept_id))
    return found[: max(0, limit)]


def _concepts(session: Session, ids: Collection[str]) -> tuple[Concept, ...]:
    """Most named first."""
    rows: list[ConceptRow] = []
    names: dict[str, set[str]] = defaultdict(set)
    for chunk in chunks(sorted(ids)):
        rows.extend(session.exec(select(ConceptRow).where(col(ConceptRow.id).in_(chunk))))
        said = select(MentionRow.concept_id, MentionRow.name).where(col(MentionRow.concept_id).in_(chunk))
        for concept_id, name in session.exec(said.distinct()):
            names[concept_id].add(name)
    rows.sort(key=lambda row: (-row.note_count, row.name, row.id))
    return tuple(_concept(row, names[row.id]) for row in rows)


def _concept(row: ConceptRow, names: set[str]) -> Concept:
    return Concept(
        id=row.id,
        name=row.name,
        type=row.type,
        aliases=other_names(row.name, names),
        note_count=row.note_count,
    )


def _between(session: Session, concepts: Sequence[Concept]) -> Neighbourhood:
    """These concepts, and what notes say of two of them; what most notes say first, if it is too much."""
    by_id = {concept.id: concept for concept in concepts}
    notes: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    rows = table(AssertionRow).c
    for chunk in chunks(sorted(by_id)):
        said = select_columns(rows.source_id, rows.verb, rows.target_id, rows.note_id)
        for source, verb, target, note_id in session.connection().execute(
            said.where(rows.source_id.in_(chunk), rows.source_id != rows.target_id)
        ):
            if target in by_id:
                notes[source, verb, target].add(note_id)
    ranked = sorted(notes.items(), key=lambda one: (-len(one[1]), one[0]))
    return Neighbourhood(
        concepts=tuple(concepts),
        relations=tuple(
            Relation(source=by_id[source], verb=verb, target=by_id[target], note_ids=tuple(sorted(note_ids)))
            for (source, verb, target), note_ids in ranked[: RELATIONS_PER_CONCEPT * len(by_id)]
        ),
    )
