"""Folders of Markdown as people have them, and as nobody should."""

import codecs
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
_WORDS = [
    "river",
    "garden",
    "energy",
    "memory",
    "market",
    "engine",
    "light",
    "history",
    "theory",
    "practice",
    "market",
    "teacher",
    "harbour",
    "winter",
    "signal",
    "Straße",
    "café",
    "naïve",
    "Ωmega",
    "журнал",
    "заметка",
    "память",
    "日記",
    "記憶",
    "知識",
    "ملاحظة",
    "मन",
    "ไทย",
    "🎉",
    "🧠",
]
_TAGS = [
    "work",
    "work/meetings",
    "home",
    "idea",
    "project/uniun",
    "journal",
    "日記",
    "заметки",
    "reading/books",
]


@dataclass(frozen=True)
class Vault:
    """A generated folder: how many of its files can be imported, and which cannot, wholly or at all."""

    root: Path
    good: int
    flawed: frozenset[str]
    """Imported and reported; paths below the root."""
    refused: frozenset[str]
    """Reported and not imported."""

    @property
    def imported(self) -> int:
        return self.good + len(self.flawed)


def make_vault(root: Path, count: int, *, seed: int = 1, odd: bool = True) -> Vault:
    """`count` ordinary notes in nested folders, and one of every oddity."""
    chance = random.Random(seed)
    root.mkdir(parents=True, exist_ok=True)
    folders = [root / f"area {n}" / f"topic {m}" for n in range(5) for m in range(4)]
    for folder in folders:
        folder.mkdir(parents=True)
    for number in range(count):
        name = f"Note {number}" if number % 7 else f"メモ {number}"
        text = _note(chance, number, count)
        path = chance.choice(folders) / f"{name}.md"
        path.write_bytes(text.replace("\n", "\r\n").encode() if number % 5 == 0 else text.encode())
    if not odd:
        return Vault(root, count, frozenset(), frozenset())
    return _add_oddities(root, count)


def _note(chance: random.Random, number: int, count: int) -> str:
    def words(n: int) -> str:
        return " ".join(chance.choices(_WORDS, k=n))

    front = ""
    if number % 2:
        front = f"---\ntitle: {words(3)} {number}\ntags: [{', '.join(chance.sample(_TAGS, 2))}]\n"
        front += f"aliases:\n  - Alias {number}\ncreated: 2024-0{number % 9 + 1}-11\n---\n"
    paragraphs = "\n\n".join(
        f"{words(20)} [[Note {chance.randrange(count)}|shown]] #{chance.choice(_TAGS)} {words(10)} `#code [[no]]`."
        for _ in range(chance.randrange(1, 8))
    )
    code = f"\n\n```python\n# {words(4)}\nprint('#no [[link]]')\n```\n"
    table = f"\n| {words(1)} | [[Alias {chance.randrange(count)}\\|there]] |\n|---|---|\n| a | b |\n"
    return f"{front}# {words(4)} {number}\n\n{paragraphs}{code}{table}- [ ] {words(3)}\n- [x] [file](Note%20{number}.md)\n"


def _add_oddities(root: Path, count: int) -> Vault:
    def write(name: str, data: bytes) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    good = {
        "odd/empty.md": b"",
        "odd/mark.md": b"\xef\xbb\xbf---\ntitle: Marked\n---\nx",
        "odd/utf-16.md": "# UTF-16 ü 日\n#wide".encode("utf-16"),
        "odd/large.md": ("# Large\n\n" + "Words about [[Note 1]] and #large things.\n\n" * 125_000).encode(),
        "odd/UPPER.MD": b"# Upper",
        "odd/long.markdown": b"# Markdown",
        "odd/one line.md": b"x " * 50_000,
        "odd/" + "n" * 200 + ".md": b"long name",
    }
    flawed = {
        "odd/latin-1.md": "# Café\n\nnaïve".encode("latin-1"),
        "odd/broken front matter.md": b"---\ntitle: a: b: [\ntags: x\n---\n# Broken\n\n#kept",
        "odd/bomb.md": b"---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n# Bomb",
        "odd/strange time.md": b"---\ncreated: yesterday\n---\ntext",
    }
    refused = {
        "odd/picture.md": b"\x89PNG\r\n\x1a\n\0\0\0\r",
        "odd/huge.md": b"x" * 10_000_001,
        "odd/closed.md": b"nobody may read this",
    }
    hidden = (
        ".obsidian/workspace.md",
        ".git/readme.md",
        ".trash/old.md",
        "area 0/.hidden/x.md",
        "odd/.draft.md",
        "odd/x.txt",
    )
    for name, data in {**good, **flawed, **refused, **dict.fromkeys(hidden, b"# Hidden")}.items():
        write(name, data)
    (root / "odd" / "closed.md").chmod(0)
    (root / "odd" / "loop").symlink_to(root / "odd", target_is_directory=True)
    (root / "odd" / "up").symlink_to("..", target_is_directory=True)
    (root / "odd" / "same").symlink_to(root / "area 1", target_is_directory=True)
    (root / "odd" / "same.md").symlink_to(root / "odd" / "empty.md")
    (root / "odd" / "nowhere.md").symlink_to(root / "odd" / "absent.md")
    (root / "odd" / "itself.md").symlink_to(root / "odd" / "itself.md")
    os.mkfifo(root / "odd" / "pipe.md")
    more = ("odd/loop", "odd/up", "odd/nowhere.md", "odd/itself.md", "odd/pipe.md")
    return Vault(root, count + len(good), frozenset(flawed), frozenset((*refused, *more)))


@contextmanager
def unprivileged(*folders: Path) -> Iterator[None]:
    """Root may read everything; here it is nobody for a while, and owns what is below the folders."""
    if os.geteuid() != 0:
        yield
        return
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for encoding in ("utf-16-le", "utf-16-be"):  # loaded when first used, from where nobody may read
        codecs.lookup(encoding)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
