"""Text of a model or of a stranger's note, as HTML."""

import re

import pytest

from presentation.web.markdown import GrowingMarkdown, html_of

_TEXT = """# Bread

Flour *and* water[1].

- one
- two

  two and a half

| a | b |
|---|---|
| 1 | 2 |

```python
print("<b>")

print(2)
```

> quoted
still quoted

The end
===

1. first
2. second
"""


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "[click](JaVaScRiPt:alert(1))",
        "[click](data:text/html,<script>alert(1)</script>)",
        "[click](vbscript:x)",
        "[click](/settings)",
        "<svg/onload=alert(1)>",
        "![tracking](http://evil.example/pixel.png)",
        '![x](x" onerror="alert(1))',
        '[x](http://e.example/"onmouseover="alert(1))',
        '```" onclick=alert(1)\nx\n```',
        "<iframe src=//evil.example>",
        "<a href=javascript:alert(1)>x</a>",
        "[x]: javascript:alert(1)\n\n[x]",
        "<style>*{background:url(//evil.example)}</style>",
    ],
)
def test_nothing_in_it_can_act(hostile: str) -> None:
    html = html_of(hostile)
    tags = re.findall(r"<(/?[a-z0-9]+)([^>]*)>", html)
    assert {name.strip("/") for name, _ in tags} <= {"p", "a", "div", "span", "button", "pre", "code"}
    for _, attributes in tags:
        names = re.findall(r'([a-z-]+)="', re.sub(r'="[^"]*"', '="', attributes))
        assert set(names) <= {"href", "rel", "class", "type", "tabindex", "aria-label"}
        for target in re.findall(r'href="([^"]*)"', attributes):
            assert target.startswith(("http://", "https://", "mailto:"))


def test_a_picture_is_a_link_to_it() -> None:
    html = html_of("![a bee](https://pictures.example/bee.png)")
    assert '<a href="https://pictures.example/bee.png" rel="noopener nofollow">a bee (picture)</a>' in html
    assert "<img" not in html


def test_a_citation_leads_to_its_note() -> None:
    html = html_of("Bees fly[1, 3] at noon [2] or [9].", {1: "/notes/a", 2: "/notes/b", 3: "/notes/c"})
    assert html.count('class="u-cite"') == 3
    assert 'href="/notes/c"' in html
    assert "[9]" in html


def test_a_number_in_code_is_no_citation() -> None:
    assert "u-cite" not in html_of("`a[1]`\n\n```\nb[1]\n```", {1: "/notes/a"})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_what_grows_ends_as_the_whole_would(size: int) -> None:
    growing = GrowingMarkdown({1: "/notes/a"})
    for at in range(0, len(_TEXT), size):
        growing.feed(_TEXT[at : at + size])
    assert "".join(growing.blocks) == html_of(_TEXT, {1: "/notes/a"})


def test_only_the_last_block_is_rendered_again() -> None:
    growing = GrowingMarkdown()
    growing.feed("one\n\ntwo\n\nthr")
    assert growing.feed("ee") == 2
    assert growing.feed("\n\nfour") == 2
    assert growing.feed(" five") == 3
    assert len(growing.blocks) == 4
