"""What every page is given."""

from collections.abc import Callable
from dataclasses import dataclass, field

from domain.entities.llm import LlmTaskKind
from presentation.faces import Controllers
from presentation.web.changes import Changes
from presentation.web.errands import Errands
from presentation.web.live_answers import LiveAnswers
from presentation.web.notes_replaced import Replaced
from presentation.web.pulls import Pulls
from presentation.web.surfaces import Surfaces


@dataclass(frozen=True)
class Site:
    """One for the whole server; a page takes from it and keeps nothing in it."""

    faces: Controllers
    surfaces: Surfaces
    changes: Changes
    answers: LiveAnswers
    now: Callable[[], float]
    """Seconds of a clock that only goes forward."""
    errands: Errands
    pulls: Pulls
    replaced: Replaced = field(default_factory=Replaced)

    def enter_surface(self, kind: LlmTaskKind, subject: str | None = None) -> None:
        """This page shows the kind, or one flow of it, until it says otherwise or is closed."""
        self.surfaces.enter(kind, subject)
