"""Writing the graph: what notes assert goes in and out, and concepts follow."""

from sqlalchemy import delete
from sqlmodel import Session, select

from data.database.rows import insert, table, upsert
from data.database.tables.knowledge import AssertionRow, MentionRow, SummaryRow
from data.repositories.concept_merging import DEFAULT_TYPE, place, refresh
from data.repositories.concept_names import kept_name
from data.repositories.note_links import name_key
from domain.entities.knowledge import Extraction


def assert_all(session: Session, note_id: str, extraction: Extraction) -> None:
    """Puts a note's assertions in the place of those that it had made."""
    refresh(session, put_assertions(session, note_id, extraction))


def put_assertions(session: Session, note_id: str, extraction: Extraction) -> set[str]:
    """The same without what follows from it: returns the concepts that are to be refreshed in this transaction."""
    before = _remove(session, note_id)
    types = {kept_name(claim.name): claim.type for claim in reversed(extraction.concepts)}
    relations = {
        (kept_name(relation.source), kept_name(relation.verb.casefold()), kept_name(relation.target))
        for relation in extraction.relations
    }
    for source, _, target in relations:
        types.setdefault(source, DEFAULT_TYPE)
        types.setdefault(target, DEFAULT_TYPE)
    concepts = place(session, types)
    insert(
        session,
        MentionRow,
        [
            {
                "note_id": note_id,
                "concept_id": concept_id,
                "name": name,
                "type": types[name],
                "key": name_key(name),
            }
            for name, concept_id in concepts.items()
        ],
    )
    insert(
        session,
        AssertionRow,
        [
            {
                "note_id": note_id,
                "source_name": source,
                "verb": verb,
                "target_name": target,
                "source_id": concepts[source],
                "target_id": concepts[target],
            }
            for source, verb, target in sorted(relations)
            if source in concepts and target in concepts and verb
        ],
    )
    upsert(session, SummaryRow, [{"note_id": note_id, "summary": extraction.summary}], key=["note_id"])
    return before | set(concepts.values())


def withdraw(session: Session, note_id: str) -> None:
    """Takes back everything that a note asserted."""
    refresh(session, _remove(session, note_id))


def _remove(session: Session, note_id: str) -> set[str]:
    """Returns the concepts that are to be refreshed."""
    touched = set(session.exec(select(MentionRow.concept_id).where(MentionRow.note_id == note_id)))
    for row in (MentionRow, AssertionRow, SummaryRow):
        session.connection().execute(delete(table(row)).where(table(row).c.note_id == note_id))
    return touched
