"""No page tells a reader to type what only a terminal understands without saying so."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from presentation.web.page_words import page_words

ROOT = Path(__file__).parents[3]
COMMAND = re.compile(r"\buniun [a-z]+")


def sentences() -> Iterator[str]:
    """Every text in what pages may show that names a command, with its blanks filled; docstrings are none."""
    for folder in ("domain", "data", "presentation/controllers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            inside = {
                id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
            }
            for node in ast.walk(tree):
                if id(node) in docs | inside:
                    continue
                said = ""
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    said = node.value
                elif isinstance(node, ast.JoinedStr):
                    parts = [
                        part.value if isinstance(part, ast.Constant) else "thing" for part in node.values
                    ]
                    said = "".join(map(str, parts))
                if COMMAND.search(said):
                    yield said


def test_every_command_that_an_error_names_is_said_in_the_words_of_a_page() -> None:
    found = list(sentences())
    assert len(found) > 25
    for said in found:
        shown = page_words(said)
        assert "`" not in shown
        assert not COMMAND.search(re.sub(r"uniun [^()]*? \(in a terminal\)", "", shown)), shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "There is no note x1. List them with: uniun notes list",
            "There is no note x1. The notes page lists them.",
        ),
        (
            "The model tiny is not installed. Fetch it with: uniun models pull tiny",
            "The model tiny is not installed. Fetch it on the models page.",
        ),
        (
            "a/b could not be fetched: the hub cannot be reached. Pulling again resumes it. `smollm2-135m` does not need "
            "the hub: it comes from the Python package index.",
            "a/b could not be fetched: the hub cannot be reached. Fetching it again goes on where it stopped. smollm2-135m "
            "does not need the hub: it comes from the Python package index.",
        ),
        (
            "Put a backup in its place with `uniun restore FILE`, or name another file in UNIUN_DATABASE_URL.",
            "Put a backup in its place with uniun restore FILE (in a terminal), or name another file in UNIUN_DATABASE_URL.",
        ),
        ("Nothing to type here.", "Nothing to type here."),
    ],
)
def test_words(said: str, shown: str) -> None:
    assert page_words(said) == shown
