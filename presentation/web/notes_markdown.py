"""Markdown of a note: as any other, and links to notes lead to them."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

from markdown_it.common.utils import escapeHtml
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from presentation.web.markdown import SafeRenderer, open_link, safe_parser

LONGEST = 100_000
"""Characters that are rendered."""
FIND = "/notes/find?name="
_WIKILINK = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")
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
    def link_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        target = str(tokens[at].attrGet("href") or "")
        if tokens[at].meta.get("note") or not _ELSEWHERE.match(target):
            name = unquote(target).partition("#")[0]
            return f'<a href="{escapeHtml(FIND + quote(name, safe=""))}">'
        return open_link(target)


def _wikilink(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "[!":
        return False
    match = _WIKILINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        name = match[1].strip()
        link = state.push("link_open", "a", 1)
        link.attrs, link.meta = {"href": quote(name, safe="#")}, {"note": True}
        state.push("text", "", 0).content = (match[2] or name).strip()
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


_PARSER = safe_parser(_NoteRenderer)
_PARSER.inline.ruler.before("link", "wikilink", _wikilink)
