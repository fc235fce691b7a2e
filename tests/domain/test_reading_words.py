import asyncio
from typing import Any

import pytest

from domain.entities.knowledge import ReadingOverview
from domain.reading_words import overview_words, rough
from tests.fakes import MemoryStore, ScriptedCoordinator
from tests.memory.chat import NoBackgroundReading, knowledge_controller
from tests.memory.library import MemoryLibrary


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"left_s": 10_500.0}, "1,203 of 5,464 notes read into the graph, 4,261 wait, about 3 h left"),
        ({}, "1,203 of 5,464 notes read into the graph, 4,261 wait"),
        ({"paused": True}, "Reading is paused: 1,203 of 5,464 notes read into the graph, 4,261 wait"),
        (
            {"hindrance": "There is no model."},
            "1,203 of 5,464 notes read into the graph. 4,261 notes wait: There is no model.",
        ),
        (
            {"failed": 3, "waiting": 4_258},
            "1,203 of 5,464 notes read into the graph, 4,258 wait; 3 could not be read",
        ),
        ({"notes": 1, "waiting": 1}, "0 of 1 note read into the graph, 1 waits"),
        ({"waiting": 0, "paused": True}, "5,464 of 5,464 notes read into the graph"),
    ],
)
def test_a_sentence(more: dict[str, Any], words: str) -> None:
    fields = {"notes": 5_464, "waiting": 4_261, "failed": 0, "paused": False, **more}
    assert overview_words(ReadingOverview.model_validate(fields)) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "less than a minute"), (700, "about 12 min"), (7_300, "about 2 h"), (400_000, "about 5 days")],
)
def test_an_estimate_is_rough(seconds: float, words: str) -> None:
    assert rough(seconds) == words


def test_what_is_counted_and_what_is_left() -> None:
    async def look() -> None:
        library, background = MemoryLibrary(), NoBackgroundReading()
        for name in "abcd":
            await library.write(name, name, "Text.")
        await library.read("a", "Said.")
        knowledge = knowledge_controller(ScriptedCoordinator(), MemoryStore(), library, background)
        assert (await knowledge.overview()).left_s is None
        background.pace = 20.0
        overview = await knowledge.overview()
        assert (overview.notes, overview.read, overview.waiting, overview.left_s) == (4, 1, 3, 60.0)
        background.wanted = False
        overview = await knowledge.overview()
        assert (overview.paused, overview.left_s) == (True, None)
        assert knowledge.reading_paused()

    asyncio.run(look())
