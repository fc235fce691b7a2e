"""The load: a deck to fill, notes to read, two Ganas with due times, and a user who asks and looks around.

It is the load of the bug that this scheduler was made for, and the same for every policy: same prompts, seeds, moments.
"""

import random
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from domain.entities.llm import GenerationRequest, LlmTaskKind, Message, Sampling

CARDS, NOTES, CHATS, GANAS = 12, 40, 5, 2
DECK = "all notes"
CHAT_TOKENS = 40
_SEED = 118
"""Of the drawing of notes, and the first seed of the cards."""

_CHAT_MOMENTS = (0.08, 0.23, 0.33, 0.61, 0.78)
"""Irregular, as fractions of the window."""
_GANA_MOMENTS = ((0.05, 0.20), (0.45, 0.55))
"""Submitted, and due."""

_BREAK = "\n\n"
_EXTRACT = "Read the note. List its main concepts, how they relate, and a one-line summary, as JSON."
_CARD = "Join these notes into one new thought, in at most 60 words. Say it to their author, without any introduction."
_ANSWER = "You answer questions from the user's note below, in a few plain sentences."
_QUESTIONS = (
    ("Harrison's longitude", "Why could a good clock tell a ship where it was? Explain it step by step."),
    ("Keeping a sourdough", "My starter has a grey liquid on top. What should I do, and why?"),
    ("Fair queues", "Why is one queue for everybody not fair to people? Explain it with an example."),
    (
        "Where the tomatoes go",
        "Why do my tomatoes do better along the wall? Explain all the reasons in your own words.",
    ),
    ("Tuning a guitar", "Why can a guitar never be perfectly in tune? Explain it to a beginner."),
)
_TASKS = (
    (
        "garden letter",
        "garden",
        "Write a short letter to a neighbour about what these garden notes advise for spring.",
    ),
    (
        "clock digest",
        "clocks",
        "Write in a few sentences what these notes about clocks have in common.",
    ),
)
_NAME: dict[str, Any] = {"type": "string", "minLength": 2, "maxLength": 30}
KNOWLEDGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "concepts": {
            "type": "array",
            "minItems": 2,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "name": _NAME,
                    "type": {"enum": ["person", "place", "thing", "idea", "method"]},
                },
                "required": ["name", "type"],
                "additionalProperties": False,
            },
        },
        "relations": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {"source": _NAME, "verb": _NAME, "target": _NAME},
                "required": ["source", "verb", "target"],
                "additionalProperties": False,
            },
        },
        "summary": {"type": "string", "minLength": 20, "maxLength": 120},
    },
    "required": ["concepts", "relations", "summary"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Note:
    """A sample note, as it lies in a folder of Markdown."""

    title: str
    tags: tuple[str, ...]
    text: str
    """Without the front matter."""


@dataclass(frozen=True)
class Submission:
    """A job and when it is asked for, in seconds from the start."""

    at_s: float
    request: GenerationRequest
    due_s: float | None = None


@dataclass(frozen=True)
class Glance:
    """The user opens a page, or none."""

    at_s: float
    kind: LlmTaskKind | None
    subject: str | None
    words: str


@dataclass(frozen=True)
class Load:
    """Everything that happens in one window."""

    background: tuple[Submission, ...]
    chats: tuple[Submission, ...]
    questions: tuple[str, ...]
    glances: tuple[Glance, ...]


def describe() -> str:
    """The load in words."""
    return (
        f"a deck of {CARDS} cards and a backfill of {NOTES} notes queued at the start, {GANAS} Ganas with due times, "
        f"and a user who asks {CHATS} times"
    )


def sample_folder() -> Path:
    """The notes that come with the program."""
    return Path(str(files("data.demo"))) / "notes"


def sample_notes() -> tuple[Note, ...]:
    """The notes in `notes/`, by title."""
    found = [_read(item.name, item.read_text("utf-8")) for item in sample_folder().glob("*.md")]
    return tuple(sorted(found, key=lambda note: note.title))


def _read(name: str, text: str) -> Note:
    _, front, body = text.split("---\n", 2)
    tags = next(line for line in front.splitlines() if line.startswith("tags:"))
    inside = tags.removeprefix("tags:").strip(" []")
    return Note(name.removesuffix(".md"), tuple(tag.strip() for tag in inside.split(",")), body.strip())


def build_load(model: str, window_s: float) -> Load:
    """Moments scale with the window, the work does not."""
    notes = sample_notes()
    by_title = {note.title: note for note in notes}
    chats = tuple(
        Submission(at * window_s, _chat(model, number, by_title[title], question))
        for number, (at, (title, question)) in enumerate(zip(_CHAT_MOMENTS, _QUESTIONS, strict=True), 1)
    )
    ganas = tuple(
        Submission(at * window_s, _gana(model, notes, *task), due * window_s)
        for (at, due), task in zip(_GANA_MOMENTS, _TASKS, strict=True)
    )
    cards = tuple(Submission(0.0, request) for request in _deck(model, notes))
    backfill = tuple(Submission(0.0, _extraction(model, note)) for note in notes[:NOTES])
    glances = (
        Glance(0.06 * window_s, LlmTaskKind.CHAT, None, "the chat"),
        Glance(0.42 * window_s, LlmTaskKind.NATARAJ, DECK, "the deck"),
        Glance(0.50 * window_s, LlmTaskKind.CHAT, None, "the chat"),
        Glance(0.90 * window_s, None, None, "nothing"),
    )
    return Load((*cards, *backfill, *ganas), chats, tuple(question for _, question in _QUESTIONS), glances)


def _chat(model: str, number: int, note: Note, question: str) -> GenerationRequest:
    return GenerationRequest(
        kind=LlmTaskKind.CHAT,
        flow=f"conversation {number}",
        model=model,
        messages=(
            Message(role="system", content=f"{_ANSWER}\n\n{_passage(note)}"),
            Message(role="user", content=question),
        ),
        max_tokens=CHAT_TOKENS,
    )


def _deck(model: str, notes: tuple[Note, ...]) -> list[GenerationRequest]:
    """Pairs and triples that were not drawn before."""
    draw = random.Random(_SEED)
    seen: set[frozenset[str]] = set()
    cards: list[GenerationRequest] = []
    while len(cards) < CARDS:
        chosen = draw.sample(notes, 2 + len(cards) % 2)
        titles = frozenset(note.title for note in chosen)
        if titles in seen:
            continue
        seen.add(titles)
        text = "\n\n".join(map(_passage, chosen))
        cards.append(
            GenerationRequest(
                kind=LlmTaskKind.NATARAJ,
                flow=DECK,
                model=model,
                messages=(Message(role="user", content=f"{_CARD}\n\n{text}"),),
                sampling=Sampling(temperature=0.7, top_p=0.9, seed=_SEED + len(cards)),
                max_tokens=110,
            )
        )
    return cards


def _extraction(model: str, note: Note) -> GenerationRequest:
    return GenerationRequest(
        kind=LlmTaskKind.EXTRACT,
        flow=note.title,
        model=model,
        messages=(Message(role="user", content=f"{_EXTRACT}\n\n# {note.title}\n{note.text}"),),
        json_schema=KNOWLEDGE_SCHEMA,
        max_tokens=200,
    )


def _gana(model: str, notes: tuple[Note, ...], name: str, tag: str, task: str) -> GenerationRequest:
    tagged = [note for note in notes if tag in note.tags][:3]
    text = "\n\n".join(map(_passage, tagged))
    return GenerationRequest(
        kind=LlmTaskKind.GANA,
        flow=name,
        model=model,
        messages=(Message(role="user", content=f"{task}\n\n{text}"),),
        sampling=Sampling(temperature=0.7, top_p=0.9, seed=_SEED),
        max_tokens=64,
    )


def _passage(note: Note) -> str:
    """The beginning of a note: jobs on several notes get what retrieval would hand over, not all of their text."""
    return f"# {note.title}\n{note.text.partition(_BREAK)[0]}"
