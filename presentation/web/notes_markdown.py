"""Markdown of a note: as any other, and links to notes lead to them."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

from markdown_it.common.utils import escapeHtml
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from domain.entities.note import names_file
from presentation.web.markdown import SafeRenderer, open_link, safe_parser

LONGEST = 100_000
"""Characters that are rendered."""
FIND = "/notes/find?name="
_WIKILINK = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PICTURE = re.compile(r"\.(avif|bmp|gif|heic|ico|jpe?g|png|svg|tiff?|webp)$", re.IGNORECASE)
_SIZE = re.compile(r"\d+(x\d+)?")
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_FILE_OPEN = '<span class="u-muted">'
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|[/\\#?]")


def note_html(text: str, title: str = "") -> str:
    """HTML that can do nothing. A link to a note leads to the page that finds it. A heading at the beginning that says the
    title again, which stands above, is left out."""
    environment: dict[str, Any] = {"sources": {}}
    tokens = _PARSER.parse(text[:LONGEST], environment)
    if title and tokens and tokens[0].type == "heading_open" and tokens[1].content.strip() == title.strip():
        tokens = tokens[3:]
    html: str = _PARSER.renderer.render(tokens, _PARSER.options, environment)
    if len(text) > LONGEST:
        html += f"<p>… and {len(text) - LONGEST:,} more characters, which are not shown here.</p>"
    return html


class _NoteRenderer(SafeRenderer):
    """A file beside the notes is named and leads nowhere: it is not here."""

    def link_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        target = str(tokens[at].attrGet("href") or "")
        env["file"] = not tokens[at].meta.get("note") and _is_local(target) and names_file(_path(target))
        if env["file"]:
            return _FILE_OPEN
        if tokens[at].meta.get("note") or not _ELSEWHERE.match(target):
            name = unquote(target).partition("#")[0]
            return f'<a href="{escapeHtml(FIND + quote(name, safe=""))}">'
        return open_link(target)

    def link_close(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return (
            f"{_file_close('')}" if env.pop("file", False) else super().link_close(tokens, at, options, env)
        )

    def image(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        source = str(tokens[at].attrGet("src") or "")
        if not _is_local(source):
            return super().image(tokens, at, options, env)
        name = self.renderInlineAsText(tokens[at].children or [], options, env) or _last(_path(source))
        return f"{_FILE_OPEN}{escapeHtml(name)}{_file_close('.png')}"

    def embedded_file(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return f"{_FILE_OPEN}{escapeHtml(tokens[at].content)}{_file_close(tokens[at].info)}"

    def task(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        done = tokens[at].content == "x"
        return f'<span role="img" aria-label="{"Done" if done else "To do"}">{"☑" if done else "☐"}</span> '


def _is_local(target: str) -> bool:
    return not _SCHEME.match(target) and not target.startswith("//")


def _path(target: str) -> str:
    return unquote(target).partition("#")[0].partition("?")[0]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _file_close(name: str) -> str:
    return f" ({'picture' if _PICTURE.search(name) else 'file'}, not kept in UNIUN)</span>"


def _wikilink(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "[!":
        return False
    match = _WIKILINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    name = match[1].strip()
    if not silent and match[0].startswith("!") and names_file(_path(name)):
        file = state.push("embedded_file", "", 0)
        label = (match[2] or "").strip()
        file.info = _path(name)
        file.content = label if label and not _SIZE.fullmatch(label) else _last(file.info)
    elif not silent:
        link = state.push("link_open", "a", 1)
        link.attrs, link.meta = {"href": quote(name, safe="#")}, {"note": True}
        state.push("text", "", 0).content = (match[2] or name).strip()
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _tasks(state: StateCore) -> None:
    """Of a list whose items begin with [ ] or [x]."""
    for item, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if item.type != "list_item_open" or paragraph.type != "paragraph_open" or not inline.children:
            continue
        first = inline.children[0]
        if first.type == "text" and (mark := _TASK.match(first.content)):
            item.attrJoin("class", "u-task")
            first.content = first.content[mark.end() :]
            inline.children.insert(0, Token("task", "", 0, content=mark[1].lower()))


_PARSER = safe_parser(_NoteRenderer)
_PARSER.core.ruler.push("tasks", _tasks)
_PARSER.inline.ruler.before("link", "wikilink", _wikilink)
