"""Markdown as it reads without its marks, for a line or two of it."""

import re

from domain.entities.note import names_file

_LINE_MARKS = re.compile(
    r"^[ \t]*(?:(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)+|`{3,}.*$)", re.MULTILINE
)
_WIKILINK = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\n]{0,1000}\)")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|~~|`{1,2})(?=\S)([^*_~`\n]{1,300})(?<=\S)\1(?!\w)")


_EMBED = re.compile(r"!\[\[([^\[\]\n|]{1,300})(?:\|[^\[\]\n]{0,300})?\]\]")
_PICTURE = re.compile(r"!\[([^\[\]\n]{0,300})\]\([^()\n]{0,1000}\)")
_TASK = re.compile(r"^([ \t]*(?:>[ \t]?)*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)\[[ xX]\][ \t]+", re.MULTILINE)


def said_text(markdown: str) -> str:
    """Without what says nothing to a model: names of pictures and other files that are shown in it, and boxes of tasks. What
    stands beside a picture in words stays."""
    text = _EMBED.sub(lambda embed: "" if names_file(embed[1].strip()) else embed[0], markdown)
    text = _PICTURE.sub(lambda picture: "" if names_file(picture[1].strip()) else picture[1], text)
    return _TASK.sub(r"\1", text)


def plain_text(markdown: str) -> str:
    """The words stay, and so do marks that stand for themselves, as in 2 * 3."""
    text = _LINE_MARKS.sub("", said_text(markdown))
    text = _WIKILINK.sub(lambda link: link[2] or link[1], text)
    return _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", text))


def without_title(markdown: str, title: str) -> str:
    """Without a heading at the beginning that only says the title again."""
    first, _, rest = markdown.lstrip().partition("\n")
    return rest if first.startswith("#") and plain_text(first).strip() == title else markdown


def shortened(line: str, most: int) -> str:
    """At most so many characters; cut between words, where there is a gap in its second half, with an ellipsis."""
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    words = cut.rpartition(" ")[0]
    return f"{(words if len(words) > most // 2 else cut).rstrip(' ,;:.')}…"
