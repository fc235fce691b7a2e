from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.markdown.parser import MAX_TAGS, MarkdownNoteParser
from domain.entities.note import normal_tag

parser = MarkdownNoteParser()
BS = "\\"

TAGS = {
    "plain": ("about #work and #Work", ["work"]),
    "nested": ("#area/health/sleep", ["area/health/sleep"]),
    "start, brackets, quotes": ('#a (#b) "#c" [#d]', ["a", "b", "c", "d"]),
    "in a list, a quote, a heading": ("- #a\n- [ ] #b\n\n> #c\n\n## About #d", ["a", "b", "c", "d"]),
    "non-Latin": ("#日記 #заметки #ملاحظات #हिन्दी #ไทยภาษา #café", ["café", "заметки", "ملاحظات", "हिन्दी", "ไทยภาษา", "日記"]),
    "decomposed": ("#cafe\u0301", ["caf\u00e9"]),
    "emoji": ("#🎉party #👩‍🚀", ["🎉party", "👩‍🚀"]),
    "digits alone are none": ("#1 #2024 but #2024-plan", ["2024-plan"]),
    "headings are none": ("# Title\n\n## Part\n\n### #\n", []),
    "no heading without a space": ("#tagged\n", ["tagged"]),
    "word and address": ("a#b https://x.org/p#part <https://x.org/#x> http://x.org/(#y) x.org/#z", []),
    "escape": (BS + "#no " + BS + BS + "#yes", ["yes"]),
    "inline code": ("`#no` ``a ` #no`` #yes", ["yes"]),
    "unclosed code": ("`open #yes", ["yes"]),
    "fences": ("```\n#no\n```\n\n~~~py\n#no\n~~~\n#yes", ["yes"]),
    "fence in a list": ("- a\n\n  ```\n  #no\n  ```\n- #yes", ["yes"]),
    "unclosed fence": ("#yes\n\n```\n#no\n", ["yes"]),
    "indented code": ("text\n\n    #no\n", []),
    "HTML": ('<div style="color: #fff">\n#no\n</div>\n\na <b title="#no">#yes</b> <!-- #no --> #too', ["too", "yes"]),
    "no HTML": ("1 < 2 #yes > 1", ["yes"]),
    "in a link's text": ("[see #a](http://x.org/#b)", ["a"]),
    "punctuation ends it": ("#a, #b. #c! (#d) #e:", ["a", "b", "c", "d", "e"]),
    "dangling slashes": ("#a/ #/b #-", ["a", "b"]),
    "entity": ("&#35; &#x27;", []),
    "double": ("##a #b#c", ["b"]),
}  # fmt: skip
LINKS = {
    "plain": ("[[One]] and [[Two Words]]", ["One", "Two Words"]),
    "alias, heading, block": ("[[One|shown]] [[Two#Part]] [[Three#^block|x]] [[#here]]", ["One", "Two", "Three"]),
    "in a table": ("| a |\n|---|\n| [[One" + BS + "|shown]] |", ["One"]),
    "path": ("[[folder/sub/One]] [[One.md]] [[../Two]]", ["folder/sub/One", "One", "Two"]),
    "embed": ("![[Picture note]] ![[image.png]]", ["Picture note", "image.png"]),
    "Markdown": ("[a](One.md) [b](<Two words.md>) [c](sub/Three%20x.md#p) [d](./Four.MD)", ["One", "Two words", "sub/Three x", "Four"]),
    "with a title": ('[a](One.md "title") [b](Two(1).md)', ["One", "Two(1)"]),
    "reference": ("[a][ref]\n\n[ref]: One.md", ["One"]),
    "elsewhere": ("[a](https://x.org/readme.md) [b](mailto:a@b.md) [c](picture.png) [d](#part) [e]()", []),
    "once": ("[[A]] [[A]] [[B]] [[A]]", ["A", "B"]),
    "code": ("`[[no]]`\n\n```\n[[no]] [a](no.md)\n```\n\n[[yes]]", ["yes"]),
    "escaped": (BS + "[[no]]", []),
    "broken": ("[[]] [[ ]] [[a\nb]] [[unclosed", []),
    "non-Latin": ("[[日記 2024]] [[Ünïcode]]", ["日記 2024", "Ünïcode"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TAGS)
def test_tags(name: str) -> None:
    text, tags = TAGS[name]
    parsed = parser.parse(text)
    assert parsed.tags == parsed.text_tags == tuple(sorted(tags))


@pytest.mark.parametrize("name", LINKS)
def test_links(name: str) -> None:
    text, links = LINKS[name]
    assert list(parser.parse(text).links) == links


def test_files_beside_the_notes_are_attachments() -> None:
    text = (
        "![[map.png]] [[v1.2]] ![a](img/my%20photo.JPG) [pdf](../paper.pdf#p2) [web](https://a.b/c.png) [n](n.md)\n\n"
        "[again](../paper.pdf) `![](code.png)` [r]\n\n[r]: sound.mp3\n"
    )
    parsed = parser.parse(text)
    assert set(parsed.attachments) == {"map.png", "img/my photo.JPG", "paper.pdf", "sound.mp3"}
    assert set(parsed.links) == {"map.png", "v1.2", "n"}


def test_front_matter() -> None:
    parsed = parser.parse(
        "---\ntitle: A title: no\n---\nx"  # a colon in a value is a mistake that people make
    )
    assert parsed.text == "---\ntitle: A title: no\n---\nx"
    assert "line 2" in parsed.flaws[0]
    parsed = parser.parse(
        "---\ntitle: Mine\ntags: [Work, area/Home, '#x', two words, 2024]\naliases: [M, 'N']\ncreated: 2024-05-01T10:00:00Z\n"
        "updated: 2024-06-01 10:00:00+00:00\nother: [1, {a: 2}]\n---\n# Heading\n\n#inline\n"
    )
    assert parsed.title == "Mine"
    assert parsed.text == "# Heading\n\n#inline\n"
    assert parsed.tags == ("2024", "area/home", "inline", "two-words", "work", "x")
    assert parsed.text_tags == ("inline",)
    assert parsed.aliases == ("M", "N")
    assert parsed.created_at == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert parsed.updated_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert parsed.flaws == ()


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags: a, b c", ("a", "b", "c")),
        ("tags:\n  - a\n  - b", ("a", "b")),
        ("tag: a", ("a",)),
        ("tags: 2024", ("2024",)),
        ("tags:", ()),
        ("tags: {a: b}", ()),
        ("tags: [[a]]", ()),
        ("TAGS: A", ("a",)),
        (f"tags: {'x' * 101}", ()),
    ],
)
def test_tags_of_the_front_matter(line: str, tags: tuple[str, ...]) -> None:
    assert parser.parse(f"---\n{line}\n---\n").tags == tags


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Front\n---\n# Heading", "Front"),
        ("---\ntitle: 2024\n---\n", "2024"),
        ("---\ntitle: 2024-05-01\n---\n", "2024-05-01"),
        ("---\ntitle: [a]\n---\n# Heading", "Heading"),
        ("---\ntitle: ''\n---\n# Heading", "Heading"),
        ("# **Bold** and [[Note|shown]] and [link](x.md) `code`", "Bold and shown and link code"),
        ("text\n\nHeading\n=======\n", "Heading"),
        ("```\n# no\n```\n## Tasks\n", None),
        ("#\n\n# second", "second"),
        ("", None),
        ('---\ntitle: "a\\nb\\x07"\n---\n', "a b"),
    ],
)
def test_title(text: str, title: str | None) -> None:
    assert parser.parse(text).title == title


@pytest.mark.parametrize(
    "head",
    [
        "a: &x [1]\nb: *x",
        "a: " + "[" * 5_000,
        "a: " + "{b: " * 5_000,
        "!!python/object/apply:os.system ['true']",
        "created: 2024-13-45",
        "a: " + "9" * 10_000,
        "? [a]\n: b",
        "- just\n- a list",
        "just text",
        "\ta: tab",
        "a: 'unclosed",
        "a: \x07",
    ],
)
def test_what_cannot_be_read_stays_in_the_text(head: str) -> None:
    text = f"---\n{head}\n---\n\n# Title #tag\n"
    parsed = parser.parse(text)
    assert parsed.text == text
    assert parsed.tags == ("tag",)
    assert len(parsed.flaws) == 1
    assert len(parsed.flaws[0]) < 400


@pytest.mark.parametrize("created", ["soon", "[2024]", "99999999999", "0001-01-01"])
def test_a_time_that_is_none_is_told(created: str) -> None:
    parsed = parser.parse(f"---\ncreated: {created}\n---\nx")
    assert parsed.created_at is None
    assert "`created`" in parsed.flaws[0]


def test_no_front_matter() -> None:
    for text in (
        "---\nnever closed",
        "a\n---\nb: c\n---",
        "----\na: b\n---\n",
        "---",
        "--- \n",
        "---\n" + "a: b\n" * 20_000 + "---\n",
    ):
        assert parser.parse(text).text == text
    assert parser.parse("---\n---\nx").text == "x"
    assert parser.parse("---\na: b\n...\nx").text == "x"


def test_line_ends_marks_and_zeros() -> None:
    parsed = parser.parse("\ufeff---\r\ntitle: T\r\n---\r\n#a\r\rb\0")
    assert (parsed.title, parsed.text, parsed.tags) == ("T", "#a\n\nb\ufffd", ("a",))


def test_too_much_is_cut_and_told() -> None:
    parsed = parser.parse(" ".join(f"#t{n}" for n in range(300)))
    assert len(parsed.tags) == MAX_TAGS
    assert parsed.flaws


def test_render_is_read_back() -> None:
    at = datetime(2024, 5, 1, tzinfo=UTC)
    front = {
        "title": "a: 'b' #c",
        "tags": ["x", "ü/y"],
        "aliases": [],
        "created": at,
        "updated": at,
    }
    parsed = parser.parse(parser.render(front, "text\n"))
    assert parsed.title == "a: 'b' #c"
    assert parsed.tags == ("x", "ü/y")
    assert parsed.created_at == datetime(2024, 5, 1, tzinfo=UTC)
    assert parsed.text == "\ntext\n"
    assert parser.render({"title": ""}, "text") == "text"


SNIPPETS = [
    *("#", "a", "#a", "[[", "]]", "|", "(", ")", "](", ".md", "`", "``", "```\n", "~~~\n", "\n", "\n\n", "    ", "- ", "> "),
    *("---\n", "title: ", "tags: [", "&x ", "*x", "<", "<!--", "-->", "://", BS, "\r", "\0", "\ufeff", "é", "日", "\u0301", "👩‍🚀"),
    *("1. ", "| ", "[x]: ", "<div>", "{", "}", '"', "'", "!", ": ", "\t", "\u2028", "\x1c"),
]  # fmt: skip
hostile = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=3), max_size=60).map("".join)


@given(hostile)
def test_any_text_is_harmless(text: str) -> None:
    parsed = parser.parse(text)
    for tag in parsed.tags:
        assert tag == normal_tag(tag)
        assert 0 < len(tag) <= 100
        assert not any(char.isspace() for char in tag)
    assert set(parsed.text_tags) <= set(parsed.tags)
    assert all(link.strip() and "\n" not in link for link in parsed.links)
    assert parsed.title is None or (parsed.title.isprintable() and 0 < len(parsed.title) <= 500)
    assert "\r" not in parsed.text
    assert "\0" not in parsed.text


@given(hostile)
def test_the_text_of_a_note_reads_the_same_again(text: str) -> None:
    once = parser.parse(text)
    again = parser.parse(
        "\n" + once.text
    )  # what `edit` does; a line above keeps a rule from being a front matter
    assert (again.text_tags, again.links) == (once.text_tags, once.links)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_nothing_in_code_counts(text: str) -> None:
    fenced = "~~~~~~\n" + text.replace("~", "").replace("\r", "") + "\n~~~~~~"
    parsed = parser.parse(fenced)
    assert parsed.tags == parsed.links == ()


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "[[",
        "[[a|",
        "](",
        "`",
        "``a`b",
        "<",
        "<!--",
        "<a ",
        "#a(",
        "http://#",
        "> ",
        "- ",
        "[a](b.md",
        "](<a",
        "_",
        "*",
    ],
)
def test_the_time_is_proportional_to_the_length(piece: str) -> None:
    parser.parse(piece * (200_000 // len(piece)))  # one that grew with the square would take minutes
