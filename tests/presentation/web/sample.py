"""A library as somebody has it after some weeks."""

from datetime import UTC, datetime, timedelta

from dependency_injector.containers import DeclarativeContainer

from domain.entities.conversation import ChatMessage, Citation, Conversation
from domain.entities.gana import GanaRun
from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim

_NOTES = {
    "Sourdough": "# Starter\n\nFeed it every morning, 1:5:5. See [[Rye bread]].\n\n- flour\n- water",
    "Rye bread": "Needs a [[Sourdough]] starter. Bake at 230 °C for 45 minutes.",
    "Bees in March": "First flight at 12 °C. The willow blooms; they bring pollen.",
    "Willow": "Salix. Blooms early, roots in wet ground. *Cut it in winter.*",
    "Reading list": "1. The Overstory\n2. Braiding Sweetgrass\n3. Entangled Life",
    "Mycorrhiza": "Fungi and roots trade sugar for phosphorus.\n\n```python\ndef trade(sugar):\n    return sugar / 7\n```",
}


async def fill(container: DeclarativeContainer) -> None:
    """Notes with tags and links, a Manas, and conversations."""
    notes = container.notes_controller()
    ids = {}
    for title, text in _NOTES.items():
        ids[title] = (await notes.add(text, title=title, tags=["garden" if "root" in text else "kitchen"])).id
    manases = container.manas_controller()
    await manases.create("Garden")
    await manases.add("Garden", [], tag="garden")
    await _read(container, ids)
    await _talk(container, ids)
    await _tasks(container, ids)


async def _tasks(container: DeclarativeContainer, notes: dict[str, str]) -> None:
    """Two Ganas, one of them with a log."""
    ganas = container.gana_controller()
    await ganas.create(
        {
            "name": "Garden watcher",
            "task": "Say what a new note means for the beds.",
            "trigger": "when a new note with #garden comes",
            "output_tag": "advice",
        }
    )
    fields = {
        "name": "Morning digest",
        "task": "Sum up what is new since yesterday in five lines.",
        "trigger": "every day at 8:00",
        "output_tag": "digest",
    }
    digest = await ganas.enable((await ganas.create(fields)).id, on=True)
    at = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
    runs: list[dict[str, object]] = [
        {
            "status": "succeeded",
            "output": "The willow blooms and the bees fly. The starter wants feeding; the rye can wait until Sunday.",
            "input_note_ids": (notes["Willow"], notes["Bees in March"]),
            "seconds": 12.4,
            "tokens": 88,
            "preemptions": 2,
        },
        {"status": "skipped", "reason": "missed", "by": "background"},
        {
            "status": "failed",
            "reason": "error",
            "detail": "The model's answer could not be read.",
            "seconds": 3.1,
        },
    ]
    for number, fields_of_run in reversed([*enumerate(runs)]):  # oldest first, as they come
        run = {
            "id": f"run-{number}",
            "gana_id": digest.id,
            "due_at": None,
            "started_at": at - timedelta(days=number),
        }
        await container.gana_repository().put_run(GanaRun.model_validate(run | fields_of_run))


async def _read(container: DeclarativeContainer, ids: dict[str, str]) -> None:
    """What a model would have found in most of them."""
    graph = {
        "Sourdough": (("Starter", "food"), ("Flour", "food"), ("Water", "matter"), ("Morning", "time")),
        "Rye bread": (("Starter", "food"), ("Rye", "plant"), ("Oven", "tool"), ("Flour", "food")),
        "Bees in March": (("Bees", "animal"), ("Willow", "plant"), ("Pollen", "matter"), ("Morning", "time")),
        "Willow": (("Willow", "plant"), ("Water", "matter"), ("Roots", "plant"), ("Winter", "time")),
        "Mycorrhiza": (("Fungi", "plant"), ("Roots", "plant"), ("Sugar", "matter"), ("Phosphorus", "matter")),
    }
    for title, concepts in graph.items():
        note = (await container.notes_controller().show(ids[title])).note
        said = Extraction(
            concepts=tuple(ConceptClaim(name=name, type=kind) for name, kind in concepts),
            relations=tuple(
                RelationClaim(source=concepts[0][0], verb="needs", target=name) for name, _ in concepts[1:]
            ),
            summary=f"What matters about {title.lower()}.",
        )
        await container.knowledge_repository().assert_extraction(note.id, note.content_hash, said)


async def _talk(container: DeclarativeContainer, notes: dict[str, str]) -> None:
    """`/c/talk-bread` has branches, sources, code and thinking; the others are there to fill the list."""
    conversations = container.conversation_repository()
    at = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
    for title in ("Which trees bloom first?", "A plan for the compost", "Words for the club's letter"):
        at += timedelta(hours=1)
        await conversations.create(_conversation(f"talk-{title[:5]}", title, at))
    at += timedelta(hours=1)
    await conversations.create(_conversation("talk-bread", "How long does the starter need?", at))
    cited = (
        Citation(number=1, note_id=notes["Sourdough"], title="Sourdough"),
        Citation(number=2, note_id=notes["Rye bread"], title="Rye bread"),
    )
    for message in (
        _said("q1", None, "user", "How long does the starter need before I can bake?", at),
        _said("a1", "q1", "assistant", "A week.", at, state="stopped"),
        _said(
            "a2",
            "q1",
            "assistant",
            "About **seven days**. Feed it every morning [1], and bake when it doubles in four hours:\n\n"
            "1. flour and water, one to one\n2. a warm place\n3. patience\n\nThe loaf then takes 45 minutes at "
            "230 °C [2].",
            at,
            thinking="The notes say every morning, 1:5:5. The oven is in the note on rye bread.",
            citations=cited,
        ),
        _said("q2", "a2", "user", "And the amounts for two loaves, as a little program?", at),
        _said(
            "a3",
            "q2",
            "assistant",
            '```python\ndef loaves(count: int) -> dict[str, int]:\n    return {"flour": 500 * count, "water": 340 * count, '
            '"salt": 11 * count}\n\nprint(loaves(2))\n```\n\n| | one | two |\n|---|---|---|\n| flour | 500 g | 1 kg |\n'
            "| water | 340 g | 680 g |\n",
            at,
            citations=cited[1:],
        ),
    ):
        await conversations.put_message(message)


def _conversation(name: str, title: str, at: datetime) -> Conversation:
    return Conversation(id=name, title=title, created_at=at, changed_at=at)


def _said(
    name: str, parent: str | None, role: str, content: str, at: datetime, **more: object
) -> ChatMessage:
    fields = {"id": name, "parent_id": parent, "role": role, "content": content, "created_at": at, **more}
    return ChatMessage.model_validate({"conversation_id": "talk-bread", **fields})
