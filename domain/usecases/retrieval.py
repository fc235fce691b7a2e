"""What the notes say about a question: by meaning, by words and through the graph, packed into a token budget."""

from collections.abc import Collection, Iterable, Sequence

from domain.entities.knowledge import Concept, Passage, Relation, RetrievedContext
from domain.entities.note import Note
from domain.errors import ModelError, QueueFull
from domain.repositories.embedder import Embedder
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.notes import NoteRepository
from domain.repositories.vectors import VectorRepository
from domain.usecases.passages import best_passages, keywords, similarity, words
from domain.usecases.text_budget import cut_end, text_tokens

CONTEXT_SHARE = 0.4
LONGEST_CONTEXT_TOKENS = 3_000
"""However long the model's context is: every token of it is read before the first word of the answer."""
_NEAREST = 20
_FOUND = 20
_MIN_COSINE = 0.2
"""all-MiniLM-L6-v2 gives unrelated texts less; "hello" should bring no notes."""
_NEAR_THE_BEST = 0.5
"""Share of the best note's cosine below which a note is beside the point."""
_FUSION_K = 60
_GRAPH_WEIGHT = 0.5
_SEEDS = 5
_CONCEPTS = 20
_NEIGHBOURS = 50
_ENOUGH_RELATIONS = 5
"""With fewer than these around the question, a second hop is worth its time."""
_GRAPH_NOTES = 10
_CITED = 8
_WORD_SEARCHES = 3
_ENOUGH_HITS = 3
_NOTE_SHARE = 0.4
"""Of what is left of the budget, for the next best note; the first would else leave no room for the second."""
_RELATION_SHARE = 0.15
_RELATIONS = 12
_SMALLEST_PASSAGE_TOKENS = 30
_SAME = 0.8
_QUESTION_CHARACTERS = 2_000


def context_budget(context_tokens: int) -> int:
    """Tokens of notes for a model with so long a context."""
    return min(LONGEST_CONTEXT_TOKENS, int(context_tokens * CONTEXT_SHARE))


class RetrieveContextUseCase:
    """Finds passages and numbers them. The same question over the same notes gives the same text."""

    def __init__(
        self,
        embedder: Embedder,
        vectors: VectorRepository,
        notes: NoteRepository,
        knowledge: KnowledgeRepository,
    ) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._notes = notes
        self._knowledge = knowledge

    async def __call__(
        self,
        question: str,
        *,
        budget_tokens: int,
        manas_id: str | None = None,
        leave_out: Collection[str] = (),
    ) -> RetrievedContext:
        """Empty when nothing fits the question. `leave_out` are ids of notes that the model sees anyway.

        Without the embedder it searches by words and the graph alone, and `hindrance` says why.
        """
        typed = keywords(question)
        asked = frozenset(words(" ".join(typed)))
        near, hindrance = await self._nearest(question, manas_id)
        found = await self._search(typed, manas_id)
        direct = [note_id for note_id in _fuse([(1, near), (1, found)]) if note_id not in leave_out]
        related, relations = await self._through_graph(typed, direct[:_SEEDS], manas_id)
        order = [
            note_id
            for note_id in _fuse([(1, near), (1, found), (_GRAPH_WEIGHT, related)])
            if note_id not in leave_out
        ]
        notes = await self._notes.many(order[: 2 * _CITED])
        passages = await self._choose(notes, asked, set(direct), budget_tokens)
        text = _render(passages, _lines(passages, relations, asked, int(budget_tokens * _RELATION_SHARE)))
        return RetrievedContext(
            text=text, citations=passages, estimated_tokens=text_tokens(text), hindrance=hindrance
        )

    async def _nearest(self, question: str, manas_id: str | None) -> tuple[list[str], str | None]:
        try:
            vector = await self._embedder.embed(question[:_QUESTION_CHARACTERS])
        except (ModelError, QueueFull) as error:
            return [], str(error)
        near = await self._vectors.nearest(vector, manas_id=manas_id, limit=_NEAREST)
        least = max(_MIN_COSINE, _NEAR_THE_BEST * near[0][1]) if near else 0
        return [note_id for note_id, cosine in near if cosine >= least], None

    async def _search(self, typed: Sequence[str], manas_id: str | None) -> list[str]:
        """All words together first; when hardly a note has them all, the longest words each alone."""
        if not typed:
            return []
        hits = await self._notes.search(" ".join(typed), manas_id=manas_id, limit=_FOUND)
        together = [hit.note_id for hit in hits]
        if len(together) >= _ENOUGH_HITS or len(typed) == 1:
            return together
        alone = [
            [hit.note_id for hit in await self._notes.search(word, manas_id=manas_id, limit=_FOUND)]
            for word in _longest(typed)
        ]
        return _fuse([(2, together), *((1, ids) for ids in alone)])[:_FOUND]

    async def _through_graph(
        self, typed: Sequence[str], seeds: Sequence[str], manas_id: str | None
    ) -> tuple[list[str], tuple[Relation, ...]]:
        """Notes and relations around the concepts that the question and the best notes name."""
        named = await self._concepts_in(typed)
        start = [*named, *await self._knowledge.concepts_of(seeds)][:_CONCEPTS]
        if not start:
            return [], ()
        begin = [concept.id for concept in start]
        around = await self._knowledge.neighbours(begin, hops=1, limit=_NEIGHBOURS)
        if len(around.relations) < _ENOUGH_RELATIONS:
            around = await self._knowledge.neighbours(begin, hops=2, limit=_NEIGHBOURS)
        ids = list(dict.fromkeys(concept.id for concept in (*start, *around.concepts)))
        naming = await self._knowledge.notes_naming(ids, _GRAPH_NOTES)
        if manas_id is None:
            return list(naming), around.relations
        # The graph knows no Manas: what notes outside of it say must not leak into its answers.
        inside = frozenset(await self._notes.note_ids(manas_id))
        return (
            [note_id for note_id in naming if note_id in inside],
            tuple(relation for relation in around.relations if not inside.isdisjoint(relation.note_ids)),
        )

    async def _concepts_in(self, typed: Sequence[str]) -> list[Concept]:
        """Concepts whose whole name, or an alias, is in the question."""
        asked = frozenset(words(" ".join(typed)))
        found: dict[str, Concept] = {}
        for word in _longest(typed):
            for concept in await self._knowledge.find_concepts(word):
                names = [frozenset(words(name)) for name in (concept.name, *concept.aliases)]
                if any(name and name <= asked for name in names):
                    found.setdefault(concept.id, concept)
        return list(found.values())

    async def _choose(
        self, notes: Iterable[Note], asked: frozenset[str], direct: set[str], budget_tokens: int
    ) -> tuple[Passage, ...]:
        """Best first. A note that only the graph brought in is there with its summary; what repeats is left out."""
        chosen: list[Passage] = []
        seen: list[frozenset[str]] = []
        left = int(budget_tokens * (1 - _RELATION_SHARE))
        for rank, note in enumerate(notes):
            room = int(left * _NOTE_SHARE) - text_tokens(_heading(len(chosen) + 1, note.title)) - 1
            if room < _SMALLEST_PASSAGE_TOKENS or len(chosen) == _CITED:
                break
            text = await self._passage(note, asked, room, summary_only=note.id not in direct)
            said = frozenset(words(text))
            if not said or any(similarity(said, other) >= _SAME for other in seen):
                continue
            seen.append(said)
            passage = Passage(note_id=note.id, title=note.title, text=text, score=1 / (_FUSION_K + rank))
            chosen.append(passage)
            left -= text_tokens(_numbered(len(chosen), passage)) + 1
        return tuple(chosen)

    async def _passage(self, note: Note, asked: frozenset[str], room: int, *, summary_only: bool) -> str:
        whole = "" if summary_only else best_passages(note.text, asked, room)
        if whole and len(whole) >= len(note.text.strip()):
            return whole
        summary = await self._knowledge.summary(note.id)
        if not summary:
            return whole or best_passages(note.text, asked, room)
        if summary_only:
            return cut_end(summary, room)
        head = cut_end(summary, room // 3)
        return f"{head}\n{best_passages(note.text, asked, room - text_tokens(head) - 1)}"


def _longest(typed: Sequence[str]) -> list[str]:
    return sorted(typed, key=lambda word: (-len(word), word))[:_WORD_SEARCHES]


def _fuse(rankings: Iterable[tuple[float, Sequence[str]]]) -> list[str]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009), weighted; ties by id."""
    scores: dict[str, float] = {}
    for weight, ids in rankings:
        for rank, note_id in enumerate(ids, start=1):
            scores[note_id] = scores.get(note_id, 0.0) + weight / (_FUSION_K + rank)
    return sorted(scores, key=lambda note_id: (-scores[note_id], note_id))


def _heading(number: int, title: str) -> str:
    return f"[{number}] {' '.join(title.split())}\n"


def _numbered(number: int, passage: Passage) -> str:
    return f"{_heading(number, passage.title)}{passage.text}\n"


def _lines(
    passages: Sequence[Passage], relations: Sequence[Relation], asked: frozenset[str], budget_tokens: int
) -> list[str]:
    """Relations that a cited note asserts, as sentences with its number; those nearest to the question first."""
    numbers = {passage.note_id: number for number, passage in enumerate(passages, start=1)}
    sentences: list[tuple[int, str]] = []
    for relation in relations:
        by = sorted(numbers[note_id] for note_id in relation.note_ids if note_id in numbers)
        if by:
            sentence = f"{relation.source.name} {relation.verb} {relation.target.name}."
            shared = len(asked.intersection(words(sentence)))
            sentences.append((-shared, f"{sentence} {''.join(f'[{number}]' for number in by)}"))
    lines: list[str] = []
    for _, line in sorted(set(sentences))[:_RELATIONS]:
        budget_tokens -= text_tokens(line) + 1
        if budget_tokens < 0:
            break
        lines.append(line)
    return lines


def _render(passages: Sequence[Passage], lines: Sequence[str]) -> str:
    parts = [_numbered(number, passage) for number, passage in enumerate(passages, start=1)]
    if lines:
        parts.append("Related:\n" + "\n".join(lines) + "\n")
    return "\n".join(parts).strip()
