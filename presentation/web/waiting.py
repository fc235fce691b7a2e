"""Why an answer does not come yet, and for how long: in words."""

from typing import NamedTuple

from domain.entities.conversation import AnswerUnkept
from domain.entities.llm import LlmTaskKind, Preempted, Prefilling, Waiting
from domain.entities.scheduler import SchedulerSnapshot
from presentation.flow_names import names_of
from presentation.scheduler_words import ANOTHER, short_flow
from presentation.web.live_answers import LiveAnswer
from presentation.web.page_words import page_words
from presentation.web.site import Site


class OtherChat(NamedTuple):
    """The conversation whose answer is written first."""

    conversation_id: str
    title: str
    ours: bool
    """Whether it can be stopped from here: a chat in a terminal cannot."""


class OtherChats:
    """Finds the title of whom an answer waits for."""

    def __init__(self, site: Site) -> None:
        self._answers = site.answers
        self._names = names_of(site.faces.chat, site.faces.notes, site.faces.ganas, site.faces.manases)

    async def before(self, answer: LiveAnswer, snapshot: SchedulerSnapshot) -> OtherChat | None:
        """None while it waits for something else, or for a chat that is no conversation of this library."""
        running = snapshot.running
        if not isinstance(answer.state, Waiting) or snapshot.loading is not None or running is None:
            return None
        if running.kind is not LlmTaskKind.CHAT or running.flow == answer.conversation_id:
            return None
        await self._names.learn([(running.kind, running.flow)])
        title = self._names.name(running.kind, running.flow)
        ours = self._answers.of(running.flow) is not None
        return OtherChat(running.flow, title, ours) if title != running.flow else None


def waiting_words(
    answer: LiveAnswer, snapshot: SchedulerSnapshot, waited_s: float, other: OtherChat | None = None
) -> str:
    """One line; empty once text comes."""
    match answer.state:
        case Waiting() as waiting:
            return _queued(waiting, snapshot, waited_s, other)
        case Prefilling(done_tokens=done, total_tokens=total) if total:
            return f"Reading the question and its notes… {100 * done // total} %"
        case Preempted(reason=reason):
            return f"Interrupted, goes on soon: {reason}"
        case AnswerUnkept(reason=reason):
            return f"Ended, but not kept yet; this goes on by itself… {page_words(reason)}"
    if answer.text:
        return ""
    if answer.thinking:
        return "Thinking…"
    return "Looking through your notes…" if answer.begun is None else "Beginning…"


def _queued(waiting: Waiting, snapshot: SchedulerSnapshot, waited_s: float, other: OtherChat | None) -> str:
    if snapshot.loading is not None:
        return waiting.reason[:1].upper() + waiting.reason[1:].replace(", ", "… ", 1)
    running = snapshot.running
    if running is None:
        return f"Waiting… {waited_s:.1f} s"
    who = f"the chat “{short_flow(other.title)}”" if other else ANOTHER.get(running.kind, str(running.kind))
    if running.state == "stopping":
        return f"Stopping {who}… {waited_s:.1f} s"
    later = " or later" if waiting.at_least else ""
    place = f" Place {waiting.position}{later} in the queue." if waiting.position > 1 else ""
    soon = waiting.estimated_start_s
    about = f" About {max(1, round(soon))} s more." if soon is not None else ""
    return f"Waiting for {who} to end… {waited_s:.1f} s.{place}{about}"
