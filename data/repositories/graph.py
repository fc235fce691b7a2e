"""Writing the graph: what notes assert goes in and out, and concepts follow."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import delete, func, update
from sqlmodel import Session, col, select

from data.database.columns import storable
from data.database.rows import chunks, insert, table, upsert
from data.database.tables.knowledge import AssertionRow, ConceptKeyRow, ConceptRow, MentionRow, SummaryRow
from data.database.tables.notes import NoteNameRow, NoteRow
from data.repositories.concept_names import concept_keys
from data.repositories.note_links import name_key
from domain.entities.knowledge import Extraction

DEFAULT_TYPE = "thing"


def assert_all(session: Session, note_id: str, extraction: Extraction) -> None:
    """Puts a note's assertions in the place of those that it had made."""
    before = _remove(session, note_id)
    types = {claim.name: claim.type for claim in reversed(extraction.concepts)}
    for relation in extraction.relations:
        types.setdefault(relation.source, DEFAULT_TYPE)
        types.setdefault(relation.target, DEFAULT_TYPE)
    concepts = _resolve(session, list(types))
    mentions = {
        (concepts[name], storable(" ".join(name.split()))): kind
        for name, kind in types.items()
        if name in concepts
    }
    insert(
        session,
        MentionRow,
        [
            {"note_id": note_id, "concept_id": concept_id, "name": name, "type": kind}
            for (concept_id, name), kind in mentions.items()
        ],
    )
    relations = {
        (
            concepts[relation.source],
            storable(" ".join(relation.verb.casefold().split())),
            concepts[relation.target],
        )
        for relation in extraction.relations
        if relation.source in concepts and relation.target in concepts
    }
    insert(
        session,
        AssertionRow,
        [
            {"note_id": note_id, "source_id": source, "verb": verb, "target_id": target}
            for source, verb, target in sorted(relations)
            if source != target and verb
        ],
    )
    upsert(session, SummaryRow, [{"note_id": note_id, "summary": extraction.summary}], key=["note_id"])
    refresh(session, before | set(concepts.values()))


def withdraw(session: Session, note_id: str) -> None:
    """Takes back everything that a note asserted."""
    refresh(session, _remove(session, note_id))


def refresh(session: Session, concept_ids: Iterable[str]) -> None:
    """Name, type and count of concepts, from what notes say; concepts that no note names go."""
    for chunk in chunks(sorted(set(concept_ids))):
        names: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
        said = session.exec(
            select(MentionRow.concept_id, MentionRow.name, MentionRow.type, func.count())
            .where(col(MentionRow.concept_id).in_(chunk))
            .group_by(col(MentionRow.concept_id), col(MentionRow.name), col(MentionRow.type))
        )
        for concept_id, name, kind, count in said:
            names[concept_id].append((-count, name, kind))
        notes = dict(
            session.exec(
                select(MentionRow.concept_id, func.count(func.distinct(col(MentionRow.note_id))))
                .where(col(MentionRow.concept_id).in_(chunk))
                .group_by(col(MentionRow.concept_id))
            ).all()
        )
        upsert(
            session,
            ConceptRow,
            [
                {
                    "id": concept_id,
                    "name": _most(said)[0],
                    "type": _most_type(said),
                    "note_count": notes[concept_id],
                }
                for concept_id, said in names.items()
            ],
            key=["id"],
        )
        orphans = [concept_id for concept_id in chunk if concept_id not in names]
        session.connection().execute(delete(table(ConceptRow)).where(col(ConceptRow.id).in_(orphans)))


def _remove(session: Session, note_id: str) -> set[str]:
    """Returns the concepts that are to be refreshed."""
    touched = set(session.exec(select(MentionRow.concept_id).where(MentionRow.note_id == note_id)))
    for row in (MentionRow, AssertionRow, SummaryRow):
        session.connection().execute(delete(table(row)).where(table(row).c.note_id == note_id))
    return touched


def _resolve(session: Session, names: Sequence[str]) -> dict[str, str]:
    """Name to concept, making those that are new. Names of which nothing is left are left out."""
    titles = _titles(session, names)
    wanted = {name: (*keys, *titles.get(name, ())) for name in names if (keys := concept_keys(name))}
    known: dict[str, str] = {}
    for chunk in chunks(sorted({key for keys in wanted.values() for key in keys})):
        known.update(
            session.exec(
                select(ConceptKeyRow.key, ConceptKeyRow.concept_id).where(col(ConceptKeyRow.key).in_(chunk))
            ).all()
        )
    concepts: dict[str, str] = {}
    for name, keys in wanted.items():
        found = list(dict.fromkeys(known[key] for key in keys if key in known))
        concept_id = _merged(session, found, known) if found else _make(session, keys[-1])
        new = [key for key in dict.fromkeys(keys) if key not in known]
        insert(session, ConceptKeyRow, [{"key": key, "concept_id": concept_id} for key in new])
        known.update(dict.fromkeys(new, concept_id))
        concepts[name] = concept_id
    # A later name may have merged what an earlier one found.
    return {name: known[keys[0]] for name, keys in wanted.items() if name in concepts}


def _titles(session: Session, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Keys of the titles of notes that have a name among their aliases, if one note has: its author says that it is the
    same."""
    keys = {name: name_key(name) for name in names}
    titles: dict[str, set[str]] = defaultdict(set)
    for chunk in chunks(sorted(set(keys.values()))):
        found = session.exec(
            select(NoteNameRow.key, NoteRow.title)
            .join(NoteRow, col(NoteRow.id) == col(NoteNameRow.note_id))
            .where(col(NoteNameRow.key).in_(chunk))
        )
        for key, title in found:
            titles[key].add(title)
    return {
        name: concept_keys(next(iter(titles[key])))[:1]
        for name, key in keys.items()
        if len(titles.get(key, ())) == 1
    }


def _make(session: Session, key: str) -> str:
    """The id follows from the key: a concept that went and comes back is the same one."""
    concept_id = hashlib.sha256(key.encode()).hexdigest()[:32]
    row = {"id": concept_id, "name": key, "type": DEFAULT_TYPE, "note_count": 0}
    upsert(session, ConceptRow, [row], key=["id"])
    return concept_id


def _merged(session: Session, found: Sequence[str], known: dict[str, str]) -> str:
    """One concept of several that turn out to be the same: the one that most notes name."""
    if len(found) == 1:
        return found[0]
    counts = dict(
        session.exec(select(ConceptRow.id, ConceptRow.note_count).where(col(ConceptRow.id).in_(found))).all()
    )
    kept, *others = sorted(found, key=lambda concept_id: (-counts.get(concept_id, 0), concept_id))
    moved = dict.fromkeys(others, kept)
    for row, owners in ((MentionRow, ("concept_id",)), (AssertionRow, ("source_id", "target_id"))):
        for owner in owners:
            _move(session, row, owner, moved)
    keys = table(ConceptKeyRow)
    session.connection().execute(update(keys).where(keys.c.concept_id.in_(others)).values(concept_id=kept))
    session.connection().execute(delete(table(ConceptRow)).where(col(ConceptRow.id).in_(others)))
    for key, concept_id in known.items():
        known[key] = moved.get(concept_id, concept_id)
    return kept


def _move(
    session: Session, row: type[MentionRow] | type[AssertionRow], owner: str, moved: Mapping[str, str]
) -> None:
    """Gives rows to another concept; a row that it has already is dropped."""
    rows = table(row)
    theirs = rows.c[owner].in_(list(moved))
    old = [dict(line._mapping) for line in session.connection().execute(rows.select().where(theirs))]
    session.connection().execute(delete(rows).where(theirs))
    new = [{**line, owner: moved[line[owner]]} for line in old]
    new = [line for line in new if line.get("source_id") is None or line["source_id"] != line["target_id"]]
    upsert(session, row, new, key=[column.name for column in rows.primary_key])


def _most(said: Sequence[tuple[int, str, str]]) -> tuple[str, int]:
    """The name that most notes use; the first by letter among equals."""
    counts: dict[str, int] = defaultdict(int)
    for count, name, _ in said:
        counts[name] += count
    return min((count, name) for name, count in counts.items())[::-1]


def _most_type(said: Sequence[tuple[int, str, str]]) -> str:
    counts: dict[str, int] = defaultdict(int)
    for count, _, kind in said:
        counts[kind] += count
    return min((kind == DEFAULT_TYPE, count, kind) for kind, count in counts.items())[2]
