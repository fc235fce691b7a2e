"""The one place that tells the user what happened, and what went wrong."""

import logging

from nicegui import ui

from domain.errors import UniunError
from presentation.web.page_words import page_words

_log = logging.getLogger("uniun.web")
UNEXPECTED = "Something went wrong in UNIUN itself. It has been written to the log; try again."


def tell(text: str) -> None:
    """A short notice that goes by itself."""
    # Without a colour of its own: Quasar's white would be the page's white in the dark.
    ui.notify(
        text, position="top", classes="u-notice", textColor="notice", attrs={"role": "status"}, group=False
    )


def tell_error(error: BaseException) -> None:
    """The sentence of an error that was foreseen; a neutral one for any other, with the details in the log.

    What a page looks up again and again fails each time while the database is away: one notice stands for all equal ones.
    """
    text = sentence(error)
    ui.notify(
        text,
        position="top",
        type="negative",
        multi_line=True,
        close_button="Close",
        timeout=10_000,
        classes="u-notice",
        group=text,
        badgeStyle="display: none",  # the figure that counts them tells nobody anything
    )


def sentence(error: BaseException) -> str:
    """What the user may read of it."""
    if isinstance(error, UniunError):
        return page_words(str(error))
    _log.error("unexpected error in a page", exc_info=error)
    return UNEXPECTED
