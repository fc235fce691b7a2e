"""What the notes say about a question: by meaning, by words and through the graph, packed into a token budget."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

from domain.entities.knowledge import Passage, Relation, RetrievedContext
from domain.entities.note import Note
from domain.errors import ModelError, QueueFull
from domain.plain_text import said_text
from domain.repositories.embedder import Embedder
from domain.repositories.ganas import GanaRepository
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.notes import NoteRepository
from domain.repositories.vectors import VectorRepository
from domain.usecases.nearness import near_enough
from domain.usecases.passages import SCANNED_CHARACTERS, best_passages, keywords, phrases, similarity, words
from domain.usecases.text_budget import cut_end, text_tokens

CONTEXT_SHARE = 0.4
LONGEST_CONTEXT_TOKENS = 3_000
"""However long the model's context is: every token of it is read before the first word of the answer."""
_NEAREST = 20
_FOUND = 20
_FUSION_K = 60
_GRAPH_WEIGHT = 0.5
_SEEDS = 5
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
        ganas: GanaRepository,
    ) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._notes = notes
        self._knowledge = knowledge
        self._ganas = ganas

    async def __call__(
        self,
        question: str,
        *,
        budget_tokens: int,
        manas_id: str | None = None,
        leave_out: Collection[str] = (),
        numbers: Mapping[str, int] | None = None,
    ) -> RetrievedContext:
        """Empty when nothing fits the question. `leave_out` are ids of notes that the model sees anyway; `numbers` those
        that notes have already, by id. The others get the lowest that are free.

        Without the embedder it searches by words and the graph alone, and `hindrance` says why.
        """
        typed = keywords(question)
        asked = frozenset(words(" ".join(typed)))
        near, hindrance = await self._nearest(question, manas_id)
        found = await self._search(typed, manas_id)
        direct = [note_id for note_id in _fuse([(1, near), (1, found)]) if note_id not in leave_out]
        related = await self._knowledge.related_notes(
            phrases(question), direct[:_SEEDS], manas_id=manas_id, limit=_GRAPH_NOTES
        )
        order = [
            note_id
            for note_id in _fuse([(1, near), (1, found), (_GRAPH_WEIGHT, related)])
            if note_id not in leave_out
        ][: 2 * _CITED]
        notes = await self._notes.many(order)
        summaries = await self._knowledge.summaries(order)
        passages = _choose(
            notes, summaries, asked, set(direct), await self._writers(notes), numbers or {}, budget_tokens
        )
        relations = await self._knowledge.relations_of([passage.note_id for passage in passages])
        text = _render(passages, _lines(passages, relations, asked, int(budget_tokens * _RELATION_SHARE)))
        return RetrievedContext(
            text=text, citations=passages, estimated_tokens=text_tokens(text), hindrance=hindrance
        )

    async def _writers(self, notes: Iterable[Note]) -> dict[str, str]:
        """Which Gana wrote which of these notes, by name."""
        written = {note.id: note.origin for note in notes if note.source == "gana"}
        names = {gana.id: gana.draft.name for gana in await self._ganas.all()} if written else {}
        return {note_id: names.get(gana_id or "", "") for note_id, gana_id in written.items()}

    async def _nearest(self, question: str, manas_id: str | None) -> tuple[list[str], str | None]:
        try:
            vector = await self._embedder.embed(question[:_QUESTION_CHARACTERS])
        except (ModelError, QueueFull) as error:
            return [], str(error)
        near = await self._vectors.nearest(vector, manas_id=manas_id, limit=_NEAREST)
        return [note_id for note_id, _ in near_enough(near)], None

    async def _search(self, typed: Sequence[str], manas_id: str | None) -> list[str]:
        """All words together first; when hardly a note has them all, the longest words each alone."""
        if not typed:
            return []
        (together,) = await self._notes.matching([" ".join(typed)], manas_id=manas_id, limit=_FOUND)
        if len(together) >= _ENOUGH_HITS or len(typed) == 1:
            return list(together)
        alone = await self._notes.matching(_longest(typed), manas_id=manas_id, limit=_FOUND)
        return _fuse([(2, together), *((1, ids) for ids in alone)])[:_FOUND]


def _choose(
    notes: Iterable[Note],
    summaries: Mapping[str, str],
    asked: frozenset[str],
    direct: set[str],
    writers: Mapping[str, str],
    numbers: Mapping[str, int],
    budget_tokens: int,
) -> tuple[Passage, ...]:
    """Best first. A note that only the graph brought in is there with its summary; what repeats is left out."""
    chosen: list[Passage] = []
    seen: list[frozenset[str]] = []
    left = int(budget_tokens * (1 - _RELATION_SHARE))
    free = (number for number in count(1) if number not in numbers.values())
    next_number = next(free)
    for rank, note in enumerate(notes):
        number = numbers.get(note.id, next_number)
        room = int(left * _NOTE_SHARE) - text_tokens(_heading(number, note.title)) - 1
        if room < _SMALLEST_PASSAGE_TOKENS or len(chosen) == _CITED:
            break
        text = _passage(note, summaries.get(note.id, ""), asked, room, summary_only=note.id not in direct)
        said = frozenset(words(text))
        if not said or any(similarity(said, other) >= _SAME for other in seen):
            continue
        seen.append(said)
        passage = Passage(
            number=number,
            note_id=note.id,
            title=note.title,
            text=text,
            score=1 / (_FUSION_K + rank),
            written_by=writers.get(note.id),
        )
        chosen.append(passage)
        left -= text_tokens(_numbered(passage)) + 1
        if number == next_number:
            next_number = next(free)
    return tuple(chosen)


def _passage(note: Note, summary: str, asked: frozenset[str], room: int, *, summary_only: bool) -> str:
    said = said_text(note.text[:SCANNED_CHARACTERS]) + note.text[SCANNED_CHARACTERS:]
    whole = "" if summary_only else best_passages(said, asked, room)
    if whole and len(whole) >= len(said.strip()):
        return whole
    if not summary:
        return whole or best_passages(said, asked, room)
    if summary_only:
        return cut_end(summary, room)
    head = cut_end(summary, room // 3)
    return f"{head}\n{best_passages(said, asked, room - text_tokens(head) - 1)}"


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


def _numbered(passage: Passage) -> str:
    return f"{_heading(passage.number, passage.title)}{passage.text}\n"


def _lines(
    passages: Sequence[Passage], relations: Sequence[Relation], asked: frozenset[str], budget_tokens: int
) -> list[str]:
    """Relations that a cited note asserts, as sentences with its number; those nearest to the question first."""
    numbers = {passage.note_id: passage.number for passage in passages}
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
    parts = [_numbered(passage) for passage in passages]
    if lines:
        parts.append("Related:\n" + "\n".join(lines) + "\n")
    return "\n".join(parts).strip()
