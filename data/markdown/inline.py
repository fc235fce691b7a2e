"""Tags and links in a run of inline Markdown, each found in one pass over the text."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from domain.entities.note import MAX_TAG_CHARACTERS, names_file, normal_tag

# Every repetition is possessive or bounded: hostile text costs no more than its length.
_NEXT = re.compile(r"[\\`<\[\]#]")
_TICKS = re.compile(r"`++")
_WIKI = re.compile(r"\[\[([^\[\]\n]{1,1000}+)\]\]")
_ANGLE = re.compile(r"<(?:[a-zA-Z][a-zA-Z0-9+.\-]{1,31}+:[^\s<>]{0,4000}+|/?[a-zA-Z][^<>]{0,4000}+)>")
_TARGET = re.compile(
    r"\]\(\s{0,10}+(?:<([^<>\n]{1,2000}+)>|((?:[^\s()\\]|\\.|\([^\s()]{0,500}+\)){1,2000}+))[^()\n]{0,500}+\)"
)
_HIDING = re.compile(
    r"!?\[\[(?:[^\[\]\n|]{0,1000}+\|)?([^\[\]\n|]{1,1000}+)\]\]|!?\[([^\[\]\n]{0,1000}+)\]\([^()\n]{0,2000}+\)"
)
_LOOK_BACK = 2_000
_NOTE_SUFFIXES = (".md", ".markdown")


@dataclass(frozen=True)
class InlineFind:
    """A tag or the target of a link."""

    kind: str
    """`tag`, `link`, or `file` for the address of a file beside the notes."""
    text: str


def scan_inline(text: str) -> Iterator[InlineFind]:
    """In the order of the text; nothing from code, escapes, HTML tags and addresses."""
    ticks: dict[int, list[int]] | None = None
    comments_end = True
    at = 0
    while (found := _NEXT.search(text, at)) is not None:
        start = found.start()
        at = start + 1
        match text[start]:
            case "\\":
                at = start + 2
            case "`":
                if ticks is None:
                    ticks = _tick_runs(text)
                at = _after_code(text, start, ticks)
            case "<":
                if text.startswith("<!--", start) and comments_end:
                    end = text.find("-->", start + 4)
                    comments_end = end >= 0
                    at = end + 3 if comments_end else at
                elif (tag := _ANGLE.match(text, start)) is not None:
                    at = tag.end()
            case "[":
                if (wiki := _WIKI.match(text, start)) is not None:
                    at = wiki.end()
                    if target := _wiki_target(wiki[1]):
                        yield InlineFind("link", target)
            case "]":
                if (link := _TARGET.match(text, start)) is not None:
                    at = link.end()
                    if target := note_target(link[1] or link[2]):
                        yield InlineFind("link", target)
                    elif file := file_target(link[1] or link[2]):
                        yield InlineFind("file", file)
            case "#":
                tag_text, at = _hashtag(text, start)
                if tag_text:
                    yield InlineFind("tag", tag_text)


def plain(text: str) -> str:
    """Inline Markdown as a reader sees it, near enough for a title."""
    shown = _HIDING.sub(lambda m: m[1] if m[1] is not None else m[2], text)
    shown = re.sub(r"(?<!\\)(?:\*{1,3}|~~|`{1,3}|(?<!\w)_{1,2}|_{1,2}(?!\w))", "", shown)
    return " ".join(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", shown).split())


def note_target(href: str) -> str:
    """The note that an address names; empty if it names none."""
    path = _local_path(href)
    return _as_name(path) if path.lower().endswith(_NOTE_SUFFIXES) else ""


def file_target(href: str) -> str:
    """The file beside the notes that an address names; empty if it names none."""
    path = _local_path(href)
    return _as_name(path) if names_file(path) else ""


def _local_path(href: str) -> str:
    """Empty for an address elsewhere."""
    path = unquote(href.partition("#")[0].partition("?")[0]).replace("\\", "/").strip()
    return "" if "://" in path or ":" in path.partition("/")[0] else path


def _wiki_target(inside: str) -> str:
    name = inside.replace("\\|", "|").partition("|")[0].partition("#")[0].partition("^")[0].strip()
    return _as_name(name)


def _as_name(path: str) -> str:
    for suffix in _NOTE_SUFFIXES:
        if path.lower().endswith(suffix):
            path = path[: -len(suffix)]
    return "/".join(part for part in path.split("/") if part.strip(" .")).strip()


def _tick_runs(text: str) -> dict[int, list[int]]:
    runs: dict[int, list[int]] = {}
    for run in _TICKS.finditer(text):
        runs.setdefault(run.end() - run.start(), []).append(run.start())
    return runs


def _after_code(text: str, start: int, ticks: dict[int, list[int]]) -> int:
    """Past the code span that begins here; past its ticks if nothing closes it (CommonMark 6.1)."""
    run = _TICKS.match(text, start)
    assert run is not None
    same = ticks.get(run.end() - start, [])
    following = bisect_left(same, run.end())
    return same[following] + run.end() - start if following < len(same) else run.end()


def _hashtag(text: str, start: int) -> tuple[str, int]:
    """The tag that begins here, normalised, or nothing; and where to go on."""
    end = start + 1
    while end < len(text) and _in_tag(text[end]):
        end += 1
    word = text[start + 1 : end].strip("/-")
    before = text[start - 1] if start else " "
    if not word or word.isnumeric() or _in_tag(before) or before in "#&=?:.":
        return "", max(end, start + 1)
    address = text.rfind("://", max(0, start - _LOOK_BACK), start)
    if address >= 0 and not any(char.isspace() for char in text[address:start]):
        return "", end
    tag = normal_tag(word)
    return (tag if len(tag) <= MAX_TAG_CHARACTERS else ""), end


def _in_tag(char: str) -> bool:
    """Letters and digits of every script with their marks, emoji, and - _ /."""
    if char.isalnum() or char in "_-/":
        return True
    return not char.isascii() and (
        unicodedata.category(char) in ("Mn", "Mc", "So", "Sk") or char in "\u200c\u200d"
    )
