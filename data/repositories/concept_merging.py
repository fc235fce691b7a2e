"""Which names mean one concept. It follows from what notes say now, so that it ends with the note that said so."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import bindparam, delete, func, update
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database.rows import chunks, insert, table, upsert
from data.database.tables.knowledge import AssertionRow, ConceptKeyRow, ConceptRow, MentionRow
from data.database.tables.notes import NoteNameRow, NoteRow
from data.repositories.concept_names import concept_keys
from data.repositories.note_links import name_key

DEFAULT_TYPE = "thing"

_MENTION = table(MentionRow).c
_NAMING = (
    select_columns(_MENTION.concept_id).where(_MENTION.key.in_(bindparam("keys", expanding=True))).distinct()
)
"""Kept, since composing a statement takes longer than executing it; every note that is saved asks this."""

Said = tuple[str, str, str, int]
"""Concept, name, type, and how many notes say so."""


def place(session: Session, names: Collection[str]) -> dict[str, str]:
    """Name to a concept that has one of its keys, made if there is none, until `refresh`. Names of which nothing is
    left are left out."""
    keys = {name: own for name, own in _keys(session, names).items() if own}
    known = _owners(session, {key for own in keys.values() for key in own})
    new = _unused(session, {own[-1] for own in keys.values() if not known.keys() & set(own)})
    concepts: dict[str, str] = {}
    for name, own in keys.items():
        concepts[name] = next((known[key] for key in own if key in known), None) or new[own[-1]]
        for key in own:
            known.setdefault(key, concepts[name])
    _make(session, set(concepts.values()) & set(new.values()))
    return concepts


def refresh(session: Session, concept_ids: Iterable[str]) -> None:
    """Merges and splits concepts as their names demand, and writes what follows from the names. Concepts that no note
    names go.

    The cost is that of the names of these concepts and of counting the notes that say them.
    """
    said, keys, seen = _closure(session, set(concept_ids))
    groups = _groups(keys)
    concepts = _assigned(session, said, keys, groups)
    _move(session, said, concepts)
    _describe(session, said, concepts)
    _write_keys(session, seen, {key: concepts[name] for name, own in keys.items() for key in own})
    for chunk in chunks(sorted(seen - set(concepts.values()))):
        session.connection().execute(delete(table(ConceptRow)).where(col(ConceptRow.id).in_(chunk)))


def refresh_named(session: Session, name_keys: Collection[str]) -> None:
    """After titles or aliases with these keys came or went: they say what is the same."""
    concepts: set[str] = set()
    for chunk in chunks(sorted(name_keys)):
        concepts.update(session.connection().execute(_NAMING, {"keys": chunk}).scalars())
    if concepts:
        refresh(session, concepts)


def _closure(
    session: Session, concept_ids: set[str]
) -> tuple[list[Said], dict[str, tuple[str, ...]], set[str]]:
    """What is said of these concepts and of those that share a key with them, the keys of all their names, and all
    these concepts."""
    said: list[Said] = []
    keys: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    while concept_ids:
        seen |= concept_ids
        rows: list[Said] = []
        for chunk in chunks(sorted(concept_ids)):
            named = (
                select(MentionRow.concept_id, MentionRow.name, MentionRow.type, func.count())
                .where(col(MentionRow.concept_id).in_(chunk))
                .group_by(col(MentionRow.concept_id), col(MentionRow.name), col(MentionRow.type))
            )
            rows.extend(
                (concept_id, name, kind, count) for concept_id, name, kind, count in session.exec(named)
            )
        new = _keys(session, {name for _, name, _, _ in rows})
        said += rows
        keys |= new
        concept_ids = set(_owners(session, {key for own in new.values() for key in own}).values()) - seen
    return said, keys, seen


def _groups(keys: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Names that are connected by shared keys."""
    towards: dict[str, str] = {}

    def root(key: str) -> str:
        while (parent := towards.setdefault(key, key)) != key:
            towards[key] = towards[parent]
            key = parent
        return key

    for own in keys.values():
        for key in own[1:]:
            towards[root(key)] = root(own[0])
    groups: dict[str, list[str]] = defaultdict(list)
    for name, own in sorted(keys.items()):
        groups[root(own[0]) if own else name].append(name)
    return list(groups.values())


def _assigned(
    session: Session,
    said: Sequence[Said],
    keys: Mapping[str, tuple[str, ...]],
    groups: Sequence[Sequence[str]],
) -> dict[str, str]:
    """Name to concept. Of several groups that were one concept, and of several concepts that become one group, the one
    that most notes name keeps the id."""
    group_of = {name: at for at, group in enumerate(groups) for name in group}
    votes: Counter[tuple[int, str]] = Counter()
    for concept_id, name, _, count in said:
        votes[group_of[name], concept_id] += count
    given: dict[int, str] = {}
    ranked = sorted(votes, key=lambda pair: (-votes[pair], pair[1], groups[pair[0]]))
    taken: set[str] = set()
    for group, concept_id in ranked:
        if group not in given and concept_id not in taken:
            given[group] = concept_id
            taken.add(concept_id)
    first = {at: next(iter(keys[group[0]]), group[0]) for at, group in enumerate(groups) if at not in given}
    new = _unused(session, set(first.values()))
    _make(session, new.values())
    given |= {at: new[key] for at, key in first.items()}
    return {name: given[at] for name, at in group_of.items()}


def _move(session: Session, said: Sequence[Said], concepts: Mapping[str, str]) -> None:
    """Gives mentions and assertions to the concepts that their names mean."""
    moves: dict[tuple[str, str], set[str]] = defaultdict(set)
    for old, name, _, _ in said:
        if concepts[name] != old:
            moves[old, concepts[name]].add(name)
    columns = (
        (table(MentionRow), "concept_id", "name"),
        (table(AssertionRow), "source_id", "source_name"),
        (table(AssertionRow), "target_id", "target_name"),
    )
    for (old, new), names in sorted(moves.items()):
        for chunk in chunks(sorted(names)):
            for rows, owner, called in columns:
                theirs = (rows.c[owner] == old) & rows.c[called].in_(chunk)
                session.connection().execute(update(rows).where(theirs).values({owner: new}))


def _describe(session: Session, said: Sequence[Said], concepts: Mapping[str, str]) -> None:
    """Name, type and count."""
    names: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for _, name, kind, count in said:
        names[concepts[name]][name] += count
        types[concepts[name]][kind] += count
    notes: dict[str, int] = {}
    for chunk in chunks(sorted(names)):
        counted = (
            select(MentionRow.concept_id, func.count(func.distinct(col(MentionRow.note_id))))
            .where(col(MentionRow.concept_id).in_(chunk))
            .group_by(col(MentionRow.concept_id))
        )
        notes.update(session.exec(counted).all())
    rows = [
        {
            "id": concept_id,
            "name": _most(names[concept_id]),
            "type": _most_type(types[concept_id]),
            "note_count": notes[concept_id],
        }
        for concept_id in sorted(names)
    ]
    upsert(session, ConceptRow, rows, key=["id"])


def _write_keys(session: Session, seen: Collection[str], wanted: Mapping[str, str]) -> None:
    present: dict[str, str] = {}
    for chunk in chunks(sorted(seen)):
        rows = select(ConceptKeyRow.key, ConceptKeyRow.concept_id)
        present.update(session.exec(rows.where(col(ConceptKeyRow.concept_id).in_(chunk))).all())
    for chunk in chunks(sorted(present.keys() - wanted.keys())):
        session.connection().execute(delete(table(ConceptKeyRow)).where(col(ConceptKeyRow.key).in_(chunk)))
    changed = [
        {"key": key, "concept_id": owner} for key, owner in wanted.items() if present.get(key) != owner
    ]
    upsert(session, ConceptKeyRow, changed, key=["key"])


def _keys(session: Session, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """What each name means: its own keys, and that of the title of the note that has it as an alias."""
    titles = _titles(session, names)
    return {
        name: tuple(dict.fromkeys((*own, *titles.get(name, ())))) if (own := concept_keys(name)) else ()
        for name in sorted(names)
    }


def _titles(session: Session, names: Collection[str]) -> dict[str, tuple[str, ...]]:
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


def _owners(session: Session, keys: Collection[str]) -> dict[str, str]:
    """Key to concept."""
    owners: dict[str, str] = {}
    for chunk in chunks(sorted(keys)):
        rows = select(ConceptKeyRow.key, ConceptKeyRow.concept_id)
        owners.update(session.exec(rows.where(col(ConceptKeyRow.key).in_(chunk))).all())
    return owners


def _unused(session: Session, keys: Collection[str]) -> dict[str, str]:
    """Key to the id of a new concept. It follows from the key: a concept that went and comes back is the same one,
    unless another, once named so too, has kept that id."""
    found: dict[str, str] = {}
    turn = 0
    while waiting := sorted(set(keys) - found.keys()):
        ids = {key: _id(key, turn) for key in waiting}
        taken: set[str] = set()
        for chunk in chunks(sorted(ids.values())):
            taken.update(session.exec(select(ConceptRow.id).where(col(ConceptRow.id).in_(chunk))))
        found.update({key: concept_id for key, concept_id in ids.items() if concept_id not in taken})
        turn += 1
    return found


def _id(key: str, turn: int) -> str:
    return hashlib.sha256((f"{key}\n{turn}" if turn else key).encode()).hexdigest()[:32]


def _make(session: Session, concept_ids: Iterable[str]) -> None:
    """`refresh` gives them what they lack."""
    rows = [{"id": each, "name": "", "type": DEFAULT_TYPE, "note_count": 0} for each in sorted(concept_ids)]
    insert(session, ConceptRow, rows)


def _most(counts: Mapping[str, int]) -> str:
    """What most notes say; the first by letter among equals."""
    return min(counts, key=lambda each: (-counts[each], each))


def _most_type(counts: Mapping[str, int]) -> str:
    return min(counts, key=lambda kind: (kind == DEFAULT_TYPE, -counts[kind], kind))
