"""What errors advise is written for a terminal. On a page the same advice is given in the page's own terms."""

import re

_TABLE: tuple[tuple[str, str], ...] = (
    (r"List them with: uniun notes list\b", "The notes page lists them."),
    (r"List them with: uniun notes manas list\b", "The notes page lists them, under Manases."),
    (r"List them with: uniun nataraj list\b", "The deck shows them."),
    (r"List them with: uniun gana list\b", "The page of Ganas lists them."),
    (r"Fill it: uniun nataraj fill\b", "Fill it."),
    (r" Show it: uniun nataraj\b", ""),
    (
        r"Look for some with: uniun notes list --tag TAG, or uniun notes search WORDS",
        "Look for some on the notes page.",
    ),
    (r"Remove it there: uniun notes edit \S+", "Remove it there."),
    (r"Try again with: uniun notes failures --retry", "On its page it can be read again."),
    (r"then: uniun notes failures --retry", "then have the note read again, on its page."),
    (r"Give it another one: uniun gana edit --trigger", "Give it another one, on its page."),
    (r"Fetch it with: uniun models pull \S+", "Fetch it on the models page."),
    (r"or now with: uniun models pull \S+", "or now on the models page"),
    (r"Fetch them again with `uniun models pull [^`]+`", "Fetch them again on the models page"),
    (r"`uniun models pull [^`]+` repairs it", "Fetching it again, on the models page, repairs it"),
    (r"; `uniun models list` shows", "; the models page shows"),
    (r"`uniun models list` shows", "The models page shows"),
    (r"Choose another: uniun models list\b", "Choose another on the models page."),
    (r"\(`uniun models rm NAME` removes a model\)", "(the models page removes models)"),
    (r"with `uniun models add`", "on the models page"),
    (
        r"uniun models rm (\S+), then uniun models pull \S+",
        r"Remove \1 on the models page, and fetch it again",
    ),
    (
        r"uniun models rm (\S+), then uniun models add \S+ PATH",
        r"Remove \1 on the models page, and add it again",
    ),
    (r"register it again: uniun models add \S+ PATH", "add it again on the models page"),
    (r"Revoke one with: uniun keys revoke NAME", "Revoke one on the settings page."),
    (r"Make one with: uniun keys create NAME", "Make one on the settings page."),
    (r"See: uniun keys list\b", "The settings page lists them."),
    (
        r"(?:\bor )?[Ss]ee:? `?uniun doctor`?(?:, and try again)?",
        "“Look for problems” on the settings page says more",
    ),
    (r"uniun background status\b", "the settings page says since when."),
    (r"[Pp]ulling again resumes it", "Fetching it again goes on where it stopped"),
    (r"([Tt]hen|and) pull again", r"\1 fetch it again"),
    (r"\bPull again to fetch it anew", "Fetch it again"),
    (r"\bPull again", "Fetch it again"),
    (r"\bPull or register the model again", "Fetch the model again, or add it again"),
)
_REPLACED = tuple((re.compile(pattern), said) for pattern, said in _TABLE)
_COMMAND = re.compile(r"`(uniun [^`]+)`|\b(uniun(?: [\w…-]+)+)")


def page_words(text: str) -> str:
    """The same sentence for a page. A command that only a terminal knows is called that; backticks go."""
    for pattern, said in _REPLACED:
        text = pattern.sub(said, text)
    return _COMMAND.sub(lambda match: f"{match[1] or match[2]} (in a terminal)", text).replace("`", "")
