import re

import pytest

from presentation.web.notes_markdown import LONGEST, note_html

ALLOWED = re.compile(r"<(?!/?(?:h[1-6]|p|a|div|span|em|strong|ul|ol|li|code|pre|button)\b)")


def test_links_to_notes_lead_to_them() -> None:
    html = note_html("[[Rye bread|rye]], [[A & B#part]], ![[pic.png]], [other](Other%20note.md#x)")
    assert 'href="/notes/find?name=Rye%20bread">rye<' in html
    assert 'href="/notes/find?name=A%20%26%20B">' in html
    assert "pic.png (picture, not kept in UNIUN)" in html
    assert 'href="/notes/find?name=Other%20note.md"' in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![[maps/h4.png]]", "h4.png (picture, not kept in UNIUN)"),
        ("![[h4.png|300]]", "h4.png (picture, not kept in UNIUN)"),
        ("![[h4.png|the <map>]]", "the &lt;map&gt; (picture, not kept in UNIUN)"),
        ("![[plan.pdf#page=2]]", "plan.pdf (file, not kept in UNIUN)"),
        ("![map](attachments/map.png)", "map (picture, not kept in UNIUN)"),
        ("![](attachments/old%20map.png)", "old map.png (picture, not kept in UNIUN)"),
        ("[the plan](docs/plan.pdf)", "the plan (file, not kept in UNIUN)"),
    ],
)
def test_a_file_beside_the_notes_is_named_and_is_no_link(text: str, shown: str) -> None:
    assert note_html(text).strip() == f'<p><span class="u-muted">{shown}</span></p>'
    assert "<a href" in note_html(f"{text} [[Rye]]")


def test_boxes_of_tasks_are_boxes() -> None:
    html = note_html("- [x] *fed*, twice\n- [ ] water\n- plain [x]\n\n[x] no list")
    assert '<li class="u-task"><span role="img" aria-label="Done">☑</span> <em>fed</em>, twice</li>' in html
    assert '<li class="u-task"><span role="img" aria-label="To do">☐</span> water</li>' in html
    assert "<li>plain [x]</li>" in html
    assert "<p>[x] no list</p>" in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)><script>1</script></svg>",
        "[a](javascript:alert(1)) [b](JaVaScRiPt:x) [c](data:text/html,x) [d](vbscript:x) <javascript:x>",
        '[[javascript:alert(1)]] [[x" onmouseover="alert(1)]] [[<script>]]',
        "![p](https://evil.example/x.png) ![q](data:image/svg+xml,<svg onload=x>)",
        '[a](https://x.example/"onclick="alert(1))',
        "[a](//evil.example) [b](\\\\evil.example)",
        "```js\n</code></pre><script>alert(1)</script>\n```",
    ],
)
def test_what_a_note_says_does_nothing(text: str) -> None:
    html = note_html(text)
    assert not ALLOWED.search(html), html
    assert not re.search(r"<[^>]*\son\w+=", html), html
    for target in re.findall(r'href="([^"]*)"', html):
        assert target.startswith(("https://", "/notes/find?name=")), target


@pytest.mark.parametrize("piece", ["[", "*a_ ", "[[a", "![a](", "`", "<a ", "> ", "- "])
def test_no_text_takes_long(piece: str) -> None:
    note_html(piece * (2 * LONGEST // len(piece)))


def test_a_very_long_note_is_cut_and_says_so() -> None:
    assert "and 7 more characters" in note_html("x" * (LONGEST + 7))


@pytest.mark.parametrize("text", ["# Rye  \n\nBread.", "Rye\n===\nBread.", "\n## Rye ##\nBread."])
def test_a_heading_that_says_the_title_again_is_left_out(text: str) -> None:
    assert note_html(text, "Rye").strip() == "<p>Bread.</p>"
    assert "Rye" in note_html(text, "Wheat")
    assert "Rye" in note_html(text)
    assert "Rye" in note_html(f"First.\n\n{text}", "Rye")
