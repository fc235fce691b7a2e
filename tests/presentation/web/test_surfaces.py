"""Which page counts."""

from domain.entities.llm import LlmTaskKind
from presentation.web.surfaces import SILENCE_S, Surface, Surfaces

CHAT: Surface = (LlmTaskKind.CHAT, "c1")
DECK: Surface = (LlmTaskKind.NATARAJ, "all")


class Desk:
    """A clock that is set by hand, and what the scheduler was told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[tuple[LlmTaskKind | None, str | None]] = []
        self.surfaces = Surfaces(lambda kind, subject: self.told.append((kind, subject)), lambda: self.now)

    def open(self, page: str, surface: Surface | None) -> None:
        self.surfaces.show(page, surface)
        self.surfaces.turn_to(page)


def test_a_page_that_opens_is_looked_at_until_it_closes() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    desk.surfaces.gone("a")
    assert desk.told == [CHAT, (None, None)]


def test_a_hidden_page_is_not_looked_at() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    desk.surfaces.heard("a", visible=False)
    desk.surfaces.heard("a", visible=True)
    assert desk.told == [CHAT, (None, None), CHAT]


def test_a_page_is_seen_while_its_browser_says_so() -> None:
    desk = Desk()
    assert not desk.surfaces.seen("a")
    desk.open("a", CHAT)
    assert desk.surfaces.seen("a")
    desk.surfaces.heard("a", visible=False)
    assert not desk.surfaces.seen("a")
    desk.surfaces.heard("a", visible=True)
    desk.now = SILENCE_S + 0.1
    assert not desk.surfaces.seen("a")


def test_of_two_pages_the_one_turned_to_last_counts() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    desk.open("b", DECK)
    desk.surfaces.heard("a", visible=True)
    assert desk.told == [CHAT, DECK]
    desk.surfaces.heard("a", visible=True, turned_to=True)
    assert desk.told == [CHAT, DECK, CHAT]


def test_the_other_page_counts_again_when_one_is_hidden() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    desk.open("b", DECK)
    desk.surfaces.heard("b", visible=False)
    assert desk.told[-1] == CHAT


def test_a_page_without_a_surface_counts_too() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    desk.open("settings", None)
    assert desk.told == [CHAT, (None, None)]


def test_a_page_that_falls_silent_is_cleared_within_five_seconds() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    desk.now = SILENCE_S
    desk.surfaces.settle()
    assert desk.told == [CHAT]
    desk.now = 4.5
    desk.surfaces.settle()
    assert desk.told == [CHAT, (None, None)]
    desk.surfaces.heard("a", visible=True)
    assert desk.told[-1] == CHAT


def test_a_lost_connection_hides_the_page_at_once() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    desk.surfaces.hide("a")
    desk.surfaces.hide("never heard of")
    assert desk.told == [CHAT, (None, None)]


def test_nothing_is_told_twice() -> None:
    desk = Desk()
    desk.open("a", CHAT)
    for _ in range(10):
        desk.surfaces.heard("a", visible=True, turned_to=True)
    assert desk.told == [CHAT]
