"""Finding notes by their words, by what they mean, or by both."""

from collections.abc import Sequence
from typing import TypedDict

from domain.entities.note import Note, SearchHit, SearchMode, SearchResult, clean_title, normal_tag
from domain.errors import InvalidRequest, ModelError, QueueFull
from domain.plain_text import plain_text, without_title
from domain.repositories.embedder import Embedder
from domain.repositories.notes import NoteRepository
from domain.repositories.vectors import VectorRepository
from domain.usecases.nearness import near_enough

RANK_OFFSET = 60
"""The constant of reciprocal rank fusion, as its authors chose it."""
_POOL = 50
"""Of each list, so many are fused at least."""
_EXACT = 3
"""So many times what is called just so counts as one more ranking."""
_SNIPPET_CHARACTERS = 200


class _Scope(TypedDict):
    tag: str | None
    manas_id: str | None


class SearchNotesUseCase:
    """One search over all notes or over those of a Manas."""

    def __init__(self, notes: NoteRepository, vectors: VectorRepository, embedder: Embedder) -> None:
        self._notes = notes
        self._vectors = vectors
        self._embedder = embedder

    async def __call__(
        self,
        query: str,
        *,
        mode: SearchMode = "words",
        tag: str | None = None,
        manas_id: str | None = None,
        limit: int = 20,
    ) -> SearchResult:
        """Best first: notes that are called just so, then the others. By meaning only those near enough are found. With `both`, words alone do if the embedder is not to be had; `meaning` raises its `ModelError`.

        Raises `InvalidRequest` for an empty query.
        """
        if not query.strip():
            raise InvalidRequest("There is nothing to search for. Type a word.")
        scope = _Scope(tag=normal_tag(tag) if tag is not None else None, manas_id=manas_id)
        if mode == "words":
            return SearchResult(hits=await self._notes.search(query, limit=limit, **scope))
        waiting = await self._vectors.waiting_count()
        if mode == "meaning":
            return SearchResult(hits=await self._by_meaning(query, scope, limit), waiting=waiting)
        pool = max(limit, _POOL)
        words = await self._notes.search(query, limit=pool, **scope)
        try:
            meaning = await self._by_meaning(query, scope, pool)
        except (ModelError, QueueFull) as error:
            return SearchResult(hits=words[:limit], without_meaning=str(error))
        called = clean_title(query).casefold()
        exact = [hit for hit in words if hit.title.casefold() == called]
        # Ahead of the best that a note can have by its ranks alone.
        fused = fuse_ranks(words, meaning, *[exact] * _EXACT)
        return SearchResult(hits=fused[:limit], waiting=waiting)

    async def _by_meaning(self, query: str, scope: _Scope, limit: int) -> tuple[SearchHit, ...]:
        vector = await self._embedder.embed(query)
        nearest = dict(near_enough(await self._vectors.nearest(vector, limit=limit, **scope)))
        return tuple(
            SearchHit(
                note_id=note.id,
                title=note.title,
                snippet=_beginning(note),
                score=nearest[note.id],
            )
            for note in await self._notes.many(tuple(nearest))
        )


def _beginning(note: Note) -> str:
    text = plain_text(without_title(note.text[: 2 * _SNIPPET_CHARACTERS], note.title))
    return " ".join(text.split())[:_SNIPPET_CHARACTERS]


def fuse_ranks(*rankings: Sequence[SearchHit]) -> tuple[SearchHit, ...]:
    """Reciprocal rank fusion (Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual
    Rank Learning Methods, SIGIR 2009): scores of different kinds are not comparable, ranks are.

    A hit keeps the snippet of the first ranking that has it.
    """
    scores: dict[str, float] = {}
    hits: dict[str, SearchHit] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            scores[hit.note_id] = scores.get(hit.note_id, 0.0) + 1 / (RANK_OFFSET + rank)
            hits.setdefault(hit.note_id, hit)
    best = sorted(hits.values(), key=lambda hit: (-scores[hit.note_id], hit.note_id))
    return tuple(hit.model_copy(update={"score": scores[hit.note_id]}) for hit in best)
