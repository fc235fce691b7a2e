"""Markdown that somebody else wrote, made into HTML that can do nothing.

Raw HTML is shown as text. Links go to the web or to a mail program, nowhere else; a picture becomes a link to it, so that
nothing is fetched by looking. What comes out is sanitised once more in the browser.
"""

import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

_WEB = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_CITED = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\](?!\()")
_LONGEST_LANGUAGE = 20
_SPECIAL = re.compile(r"[\[\]*_`<!~]")
_MOST_SPECIAL = 400
"""In one block."""


def html_of(text: str, sources: Mapping[int, str] | None = None) -> str:
    """`sources`: where the number of a citation leads, a path of this site."""
    return _html(_PARSER.parse(text), sources)


class GrowingMarkdown:
    """A text that comes piece by piece: only its last block is rendered again."""

    def __init__(self, sources: Mapping[int, str] | None = None) -> None:
        self.blocks: list[str] = []
        """HTML, one for each top-level block."""
        self._sources = sources
        self._done = 0
        """Blocks that cannot change any more."""
        self._tail = ""

    def feed(self, text: str) -> int:
        """The index of the first block that is new or has changed."""
        first = self._done
        self._tail += text.replace("\r", "")
        tokens = _PARSER.parse(self._tail)
        groups = _groups(tokens)
        self.blocks[first:] = [_html(group, self._sources) for group in groups]
        if len(groups) > 1:
            start = groups[-1][0].map
            if start is not None:
                self._tail = "\n".join(self._tail.split("\n")[start[0] :])
                self._done += len(groups) - 1
        return first


def _groups(tokens: Sequence[Token]) -> list[list[Token]]:
    """Top-level blocks."""
    groups: list[list[Token]] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            groups.append([])
        groups[-1].append(token)
    return groups


def _html(tokens: Sequence[Token], sources: Mapping[int, str] | None) -> str:
    environment: MutableMapping[str, Any] = {"sources": sources or {}}
    return str(_PARSER.renderer.render(tokens, _PARSER.options, environment))


class SafeRenderer(RendererHTML):
    """Every tag that it writes is one of these."""

    def text(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        sources: Mapping[int, str] = env["sources"]
        if not sources:
            return escapeHtml(tokens[at].content)
        parts: list[str] = []
        end = 0
        for found in _CITED.finditer(tokens[at].content):
            numbers = [int(number) for number in found[1].split(",")]
            links = [_citation(number, sources[number]) for number in numbers if number in sources]
            if links:
                parts += [escapeHtml(tokens[at].content[end : found.start()]), "".join(links)]
                end = found.end()
        return "".join([*parts, escapeHtml(tokens[at].content[end:])])

    def link_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return open_link(str(tokens[at].attrGet("href") or ""))

    def link_close(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return "</a>"

    def image(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        source = str(tokens[at].attrGet("src") or "")
        name = self.renderInlineAsText(tokens[at].children or [], options, env) or source
        return f"{open_link(source)}{escapeHtml(name)} (picture)</a>"

    def fence(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return _code(tokens[at].content, tokens[at].info.strip().split(" ")[0])

    def code_block(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return _code(tokens[at].content, "")

    def table_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return '<div class="u-scroll" tabindex="0" role="group" aria-label="Table"><table>'

    def table_close(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return "</table></div>"


def open_link(target: str) -> str:
    """Without a target where it may not lead anywhere."""
    return f'<a href="{escapeHtml(target)}" rel="noopener nofollow">' if _WEB.match(target) else "<a>"


def _citation(number: int, path: str) -> str:
    return f'<a class="u-cite" href="{escapeHtml(path)}" aria-label="Source {number}">{number}</a>'


def _code(code: str, language: str) -> str:
    label = escapeHtml(language[:_LONGEST_LANGUAGE]) or "code"
    return (
        f'<div class="u-code"><div class="u-code-head"><span>{label}</span>'
        '<button type="button" class="u-copy">Copy</button></div>'
        f'<pre tabindex="0" aria-label="{label}"><code>{escapeHtml(code)}</code></pre></div>'
    )


def _inline(state: StateCore) -> None:
    """The library's own rule takes time that grows with the square of these characters: beyond a number the block's text
    is plain."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        if len(_SPECIAL.findall(token.content)) > _MOST_SPECIAL:
            token.children = [Token("text", "", 0, content=token.content)]
        else:
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def safe_parser(renderer: type[SafeRenderer] = SafeRenderer) -> MarkdownIt:
    """For any text: raw HTML is text, and no text takes long."""
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=renderer).enable(
        ["table", "strikethrough"]
    )
    parser.core.ruler.at("inline", _inline)
    return parser


_PARSER = safe_parser()
