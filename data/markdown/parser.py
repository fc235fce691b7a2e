"""Markdown to what a note needs: title, tags, links, times."""

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from data.markdown.front_matter import (
    BrokenFrontMatter,
    moment,
    read_front_matter,
    split_front_matter,
    words,
)
from data.markdown.inline import file_target, note_target, plain, scan_inline
from domain.entities.note import MAX_TAG_CHARACTERS, ParsedNote, clean_title, names_file, normal_tag

MAX_TAGS = MAX_ALIASES = 200
MAX_LINKS = 5_000


class _PlainDumper(yaml.SafeDumper):
    """Writes no aliases, which `parse` refuses."""

    def ignore_aliases(self, data: object) -> bool:
        return True


class MarkdownNoteParser:
    """Implements `NoteParser`: CommonMark decides what is a block of code and what is text; the text is then scanned."""

    def __init__(self) -> None:
        # Only blocks: the library's inline rules are slow on large notes, and wikilinks and tags are not among them.
        self._blocks = MarkdownIt("commonmark").disable(["inline", "text_join"])

    def parse(self, text: str, *, front_matter: bool = True) -> ParsedNote:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
        flaws: list[str] = []
        head, body = split_front_matter(text) if front_matter else (None, text)
        front: dict[str, Any] = {}
        if head is not None:
            try:
                front = read_front_matter(head)
            except BrokenFrontMatter as broken:
                body = text  # nothing of it is lost
                flaws.append(f"The front matter is left in the text, because it cannot be read: {broken}.")
        environment: dict[str, Any] = {}
        tokens = self._blocks.parse(body, environment)
        found = [find for token in tokens if token.type == "inline" for find in scan_inline(token.content)]
        addresses = [entry["href"] for entry in environment.get("references", {}).values()]
        links = tuple(
            dict.fromkeys(
                [
                    *(find.text for find in found if find.kind == "link"),
                    *filter(None, map(note_target, addresses)),
                ]
            )
        )
        files = [find.text for find in found if find.kind == "file"]
        files += [*filter(None, map(file_target, addresses)), *filter(names_file, links)]
        text_tags = sorted({find.text for find in found if find.kind == "tag"})
        front_tags = [normal_tag(word) for word in words(_first(front, "tags", "tag"), separators=", ")]
        tags = {tag for tag in front_tags if 0 < len(tag) <= MAX_TAG_CHARACTERS} | set(text_tags)
        if len(tags) > MAX_TAGS or len(links) > MAX_LINKS:
            flaws.append(f"Only the first {MAX_TAGS} tags and {MAX_LINKS} links are kept.")
        return ParsedNote(
            title=_title(front.get("title")) or _first_heading(tokens),
            text=body,
            tags=tuple(sorted(tags)[:MAX_TAGS]),
            text_tags=tuple(text_tags[:MAX_TAGS]),
            aliases=_aliases(front),
            links=links[:MAX_LINKS],
            attachments=tuple(dict.fromkeys(files))[:MAX_LINKS],
            created_at=_time(front, flaws, "created", "date"),
            updated_at=_time(front, flaws, "updated", "modified"),
            flaws=tuple(flaws),
        )

    def render(self, front: Mapping[str, object], text: str) -> str:
        shown = {key: value for key, value in front.items() if value not in (None, "", [], ())}
        if not shown:
            return text
        head = yaml.dump(shown, Dumper=_PlainDumper, allow_unicode=True, sort_keys=False, width=10_000)
        return f"---\n{head}---\n\n{text}"


def _first(front: dict[str, Any], *keys: str) -> object:
    return next((front[key] for key in keys if front.get(key) is not None), None)


def _title(value: object) -> str | None:
    if isinstance(value, dict | list) or value is None:
        return None
    return clean_title(str(value)) or None


def _first_heading(tokens: list[Token]) -> str | None:
    """Of the first level: a note that has none is better known by the name of its file."""
    for token, content in pairwise(tokens):
        if (
            token.type == "heading_open"
            and token.tag == "h1"
            and (title := clean_title(plain(content.content)))
        ):
            return title
    return None


def _aliases(front: dict[str, Any]) -> tuple[str, ...]:
    names = [clean_title(word) for word in words(_first(front, "aliases", "alias"), separators=",")]
    return tuple(dict.fromkeys(name for name in names if name))[:MAX_ALIASES]


def _time(front: dict[str, Any], flaws: list[str], *keys: str) -> datetime | None:
    key = next((key for key in keys if front.get(key) is not None), "")
    value = front.get(key)
    if value is None or value == "":
        return None
    if (time := moment(value)) is None:
        flaws.append(f"`{key}` in the front matter is no time: {str(value)[:60]!r}.")
    return time
