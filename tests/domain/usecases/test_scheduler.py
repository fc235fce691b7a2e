"""Several viewers and one foreground."""

from domain.entities.llm import LlmTaskKind
from domain.usecases.scheduler import SetForegroundKindUseCase
from tests.fakes import ScriptedCoordinator

CHAT, GANA, NATARAJ = LlmTaskKind.CHAT, LlmTaskKind.GANA, LlmTaskKind.NATARAJ


def test_the_last_viewer_counts_and_when_it_leaves_the_one_before() -> None:
    coordinator = ScriptedCoordinator()
    look = SetForegroundKindUseCase(coordinator)
    look(CHAT, "c")
    look(GANA, "g", viewer="other")
    look(NATARAJ, "deck", viewer="third")
    look(None, viewer="other")
    look(None, viewer="third")
    look(None)
    look(None, viewer="nobody")
    assert coordinator.surfaces == [
        (CHAT, "c"),
        (GANA, "g"),
        (NATARAJ, "deck"),
        (NATARAJ, "deck"),
        (CHAT, "c"),
        (None, None),
        (None, None),
    ]


def test_who_looks_elsewhere_is_the_last_again() -> None:
    coordinator = ScriptedCoordinator()
    look = SetForegroundKindUseCase(coordinator)
    look(CHAT, "c")
    look(GANA, "g", viewer="other")
    look(CHAT, "d")
    look(None)
    assert coordinator.surfaces[-2:] == [(CHAT, "d"), (GANA, "g")]
