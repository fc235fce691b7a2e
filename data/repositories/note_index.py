"""The full-text index: FTS5 in SQLite, a tsvector with a GIN index in PostgreSQL."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from sqlalchemy import TextClause, bindparam, text
from sqlmodel import Session

from data.database.columns import storable
from data.database.rows import chunks, is_sqlite
from data.repositories.full_text import words
from domain.entities.note import Note

# PostgreSQL's limits: a tsvector of 1 MB, positions below 16,384. A word's first places are enough for its rank.
_DOCUMENT_BYTES = 700_000
_MAX_POSITION = 16_383
_PLACES = 8
# More than any score of the words: both bm25 and ts_rank divide by the length of the text, so that a long note's title
# would count for nothing.
_TITLE_FITS = 1_000.0
_CALLED = "(SELECT note.number FROM note_name JOIN note ON note.id = note_name.note_id WHERE note_name.key = :called)"
_SQLITE = (
    f"SELECT rowid, :more + (rowid IN {_CALLED}) * :more - bm25(note_search, 10.0, 5.0, 1.0) AS score "
    "FROM note_search WHERE note_search MATCH :query {scope} ORDER BY score DESC, rowid DESC LIMIT :limit"
)
_POSTGRES = (
    f"SELECT number, CAST(:more AS float) * (1 + CAST(number IN {_CALLED} AS int)) "
    "+ ts_rank(document, CAST(:query AS tsquery), 1) AS score FROM note_search "
    "WHERE document @@ CAST(:query AS tsquery) {scope} ORDER BY score DESC, number DESC LIMIT :limit"
)
_OF_MANAS = (
    "AND EXISTS (SELECT 1 FROM note JOIN manas_note ON manas_note.note_id = note.id "
    "WHERE note.number = {number} AND manas_note.manas_id = :manas) "
)
_TAGGED = (
    "AND EXISTS (SELECT 1 FROM note JOIN note_tag ON note_tag.note_id = note.id WHERE note.number = {number} "
    "AND (note_tag.tag = :tag OR substr(note_tag.tag, 1, {length}) = :nested)) "
)
# Kept, since composing a statement takes longer than executing it.
_ENTER_SQLITE = text(
    "INSERT INTO note_search (rowid, title, tags, body) SELECT number, :title, :tags, :body FROM note WHERE id = :id"
)
_ENTER_POSTGRES = text(
    "INSERT INTO note_search (number, document) "
    "SELECT number, CAST(:document AS tsvector) FROM note WHERE id = :id"
)


def index_notes(session: Session, notes: Sequence[Note]) -> None:
    """Enters notes that are stored and not in it."""
    if is_sqlite(session):
        rows = [
            {"id": note.id, **{column: " ".join(words) for column, words in _columns(note).items()}}
            for note in notes
        ]
    else:
        rows = [{"id": note.id, "document": _document(note)} for note in notes]
    if rows:
        session.connection().execute(_ENTER_SQLITE if is_sqlite(session) else _ENTER_POSTGRES, rows)


def unindex_notes(session: Session, numbers: Sequence[int]) -> None:
    """Takes out those that are in it."""
    for chunk in chunks(numbers):
        session.connection().execute(_remove(is_sqlite(session)), {"numbers": list(chunk)})


@cache
def _remove(from_sqlite: bool) -> TextClause:
    key = "rowid" if from_sqlite else "number"
    return text(f"DELETE FROM note_search WHERE {key} IN :numbers").bindparams(
        bindparam("numbers", expanding=True)
    )


def matches(
    session: Session,
    wanted: Sequence[tuple[str, bool]],
    *,
    called: str = "",
    tag: str | None = None,
    manas_id: str | None = None,
    limit: int,
) -> list[tuple[int, float]]:
    """(note number, score), best first, of the notes that have all the words: those that are `called` so (a `name_key`)
    before those whose title has all of them, and these before the rest. Words hold letters and digits only."""
    nested = storable(f"{tag}/")
    scope = "" if manas_id is None else _OF_MANAS
    if tag is not None:
        scope += _TAGGED.replace("{length}", str(len(nested)))
    values = {"called": called, "manas": manas_id, "tag": tag, "nested": nested, "limit": limit}
    if is_sqlite(session):
        query = " AND ".join(f'"{word}"{"*" if beginning else ""}' for word, beginning in wanted)
        in_titles = f"title : ({query})"
        statement = _SQLITE.format(scope=scope.format(number="note_search.rowid"))
    else:
        query = " & ".join(f"'{word}'{':*' if beginning else ''}" for word, beginning in wanted)
        in_titles = " & ".join(f"'{word}':{'*' if beginning else ''}A" for word, beginning in wanted)
        statement = _POSTGRES.format(scope=scope.format(number="note_search.number"))

    def ranked(query: str, more: float) -> list[tuple[int, float]]:
        found = session.connection().execute(text(statement), {**values, "query": query, "more": more})
        return [(int(number), float(score)) for number, score in found]

    found = ranked(in_titles, _TITLE_FITS)
    if len(found) < limit:
        known = {number for number, _ in found}
        found += [one for one in ranked(query, 0.0) if one[0] not in known][: limit - len(found)]
    return found


def _columns(note: Note) -> dict[str, Iterable[str]]:
    return {
        "title": words("\n".join((note.title, *note.aliases))),
        "tags": words("\n".join(note.tags)),
        "body": words(note.text),
    }


def _document(note: Note) -> str:
    """A tsvector as text: title in weight A, tags in B, text in D."""
    places: dict[str, list[str]] = defaultdict(list)
    position = size = 0
    for column, weight in (("title", "A"), ("tags", "B"), ("body", "D")):
        for word in _columns(note)[column]:
            position = min(position + 1, _MAX_POSITION)
            if len(places[word]) < _PLACES:
                places[word].append(f"{position}{weight}")
                size += len(word.encode()) + 8
            if size > _DOCUMENT_BYTES:
                break
    return " ".join(f"'{word}':{','.join(at)}" for word, at in places.items() if at)
