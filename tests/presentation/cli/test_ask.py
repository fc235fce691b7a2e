import asyncio
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from domain.errors import (
    EngineError,
    InvalidRequest,
    InvalidSchema,
    ManasNotFound,
    ModelUnavailable,
    UniunError,
)
from presentation.cli import ask
from presentation.cli.app import build_app
from tests.fakes import MemoryStore, ScriptedCoordinator, answer, fake_openers
from tests.memory.library import MemoryLibrary

runner = CliRunner()


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.TextIOWrapper]:
    """A real pipe in place of stdin; what is yielded writes into it."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, encoding="utf-8") as reader, os.fdopen(write_end, "wb", 0) as raw:
        monkeypatch.setattr("sys.stdin", reader)
        yield io.TextIOWrapper(raw, encoding="utf-8", write_through=True)


def test_only_the_answer_is_on_stdout() -> None:
    coordinator = ScriptedCoordinator(answer("[bold]42[/bold]", "\x1b[2J."))
    result = runner.invoke(
        build_app(fake_openers(coordinator)), ["ask", "What?", "--seed", "7", "-s", "Be brief."]
    )
    assert result.exit_code == 0
    assert result.stdout == "[bold]42[/bold][2J.\n"
    assert result.stderr == ""
    request = coordinator.requests[0]
    assert [m.content for m in request.messages] == ["Be brief.", "What?"]
    assert request.sampling.seed == 7


def test_what_is_thought_before_it_is_not_on_stdout() -> None:
    coordinator = ScriptedCoordinator(answer("<thi", "nk>Six times ", "seven.</think>\n\n", "42", "."))
    result = runner.invoke(build_app(fake_openers(coordinator)), ["ask", "What?"])
    assert (result.stdout, result.stderr) == ("42.\n", "")


def test_kind_schema_and_limits_are_handed_on(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object"}')
    coordinator = ScriptedCoordinator(answer("{}"))
    arguments = ["ask", "x", "--kind", "gana", "--schema", str(schema), "--max-tokens", "9"]
    assert runner.invoke(build_app(fake_openers(coordinator)), arguments).exit_code == 0
    request = coordinator.requests[0]
    assert (request.kind, request.json_schema, request.max_tokens) == ("gana", {"type": "object"}, 9)


def test_an_answer_from_the_notes_cites_them() -> None:
    library = MemoryLibrary()
    manas = asyncio.run(library.manases.create("Drinks"))
    asyncio.run(library.write("n1", "Green tea", "Green tea steeps two minutes."))
    asyncio.run(library.write("n2", "Black tea", "Black tea steeps four minutes, and tastes of smoke."))
    asyncio.run(library.manases.add(manas.id, ["n2"]))
    coordinator = ScriptedCoordinator(answer("Two minutes [1]."), answer("Four."), answer("{}"))
    app = build_app(fake_openers(coordinator, library=library))
    cited = runner.invoke(app, ["ask", "How long does green tea steep?", "--notes", "-s", "Be brief."])
    assert cited.stdout == "Two minutes [1].\n\n[1] Green tea\n"
    scoped = runner.invoke(app, ["ask", "How long does green tea steep?", "--manas", "Drinks"])
    assert scoped.stdout == "Four.\n\nLooked at, not cited: Black tea\n"
    structured = runner.invoke(app, ["ask", "green tea", "--notes", "--schema", '{"type": "object"}'])
    assert structured.stdout == "{}\n"
    assert coordinator.requests[0].messages[0].content.endswith("Be brief.")
    assert "Green" not in coordinator.requests[1].messages[1].content.split("Question")[0]
    unknown = runner.invoke(app, ["ask", "x", "--manas", "nonsense"])
    assert isinstance(unknown.exception, ManasNotFound)


def test_what_hinders_the_search_is_told_on_stderr() -> None:
    library = MemoryLibrary()
    asyncio.run(library.write("n1", "Green tea", "Green tea steeps two minutes."))
    library.embedder.error = ModelUnavailable("The index cannot be reached.")
    result = runner.invoke(build_app(fake_openers(library=library)), ["ask", "green tea?", "--notes"])
    assert result.stderr == "uniun: the notes were searched by words alone: The index cannot be reached.\n"
    assert result.stdout.endswith("Looked at, not cited: Green tea\n")


def test_a_cut_answer_is_told_on_stderr() -> None:
    app = build_app(fake_openers(ScriptedCoordinator(answer("so ", "far", reason="length"))))
    result = runner.invoke(app, ["ask", "x"])
    assert result.stdout == "so far\n"
    assert "--max-tokens" in result.stderr


@pytest.mark.parametrize(("text", "reason"), [('{"name": "An', "length"), ("", "length"), ("[1, 2", "stop")])
def test_json_that_is_not_complete_is_a_failure(text: str, reason: str) -> None:
    app = build_app(fake_openers(ScriptedCoordinator(answer(text, reason=reason))))
    result = runner.invoke(app, ["ask", "x", "--schema", '{"type": "object"}', "--max-tokens", "7"])
    assert type(result.exception) is UniunError
    assert "not complete JSON" in str(result.exception)
    assert "--max-tokens; it was 7" in str(result.exception)
    assert result.stderr == ""


def test_complete_json_is_none_though_it_is_cut() -> None:
    app = build_app(fake_openers(ScriptedCoordinator(answer('{"a": 1}', reason="length"))))
    result = runner.invoke(app, ["ask", "x", "--schema", '{"type": "object"}'])
    assert (result.exit_code, result.stdout) == (0, '{"a": 1}\n')


def test_the_default_model_is_fetched_on_first_use() -> None:
    store = MemoryStore()
    result = runner.invoke(build_app(fake_openers(store=store)), ["ask", "x"])
    assert store.pulled == ["tiny"]
    assert result.stdout == "Hello there.\n"
    assert "fetching the model" in result.stderr


def test_an_error_is_an_error() -> None:
    app = build_app(fake_openers(ScriptedCoordinator([EngineError("It broke.")])))
    assert isinstance(runner.invoke(app, ["ask", "x"]).exception, EngineError)


@pytest.mark.parametrize("arguments", [["ask"], ["ask", "-"]])
def test_stdin_is_the_question(arguments: list[str]) -> None:
    coordinator = ScriptedCoordinator()
    assert runner.invoke(build_app(fake_openers(coordinator)), arguments, input="piped").exit_code == 0
    assert coordinator.requests[0].messages[0].content == "piped"


def test_what_is_piped_in_follows_what_was_typed(stdin: io.TextIOWrapper) -> None:
    stdin.write("the note")
    stdin.close()
    assert ask.read_question("Summarise:") == "Summarise:\n\nthe note"


def test_nothing_is_read_from_what_is_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert ask.read_question("Hello?") == "Hello?"


def test_an_empty_question_is_refused(stdin: io.TextIOWrapper) -> None:
    stdin.write("  \n")
    stdin.close()
    with pytest.raises(InvalidRequest, match="empty"):
        ask.read_question(None)


def test_piped_bytes_that_are_no_text_are_refused(stdin: io.TextIOWrapper) -> None:
    stdin.buffer.write("für\nab".encode() + b"\xff\xfe\x00")
    stdin.close()
    with pytest.raises(InvalidRequest, match="not UTF-8 text: byte 3 of line 2"):
        ask.read_question(None)


def test_an_empty_pipe_beside_a_question_is_told(
    stdin: io.TextIOWrapper, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin.close()
    assert ask.read_question("Summarise:") == "Summarise:"
    assert capsys.readouterr().err == "uniun: nothing was piped in; the question is what was typed.\n"


def test_words_are_one_question() -> None:
    coordinator = ScriptedCoordinator()
    assert runner.invoke(build_app(fake_openers(coordinator)), ["ask", "hi", "there"]).exit_code == 0
    assert coordinator.requests[0].messages[0].content == "hi there"


def test_too_much_is_refused(stdin: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "INPUT_LIMIT", 10)
    stdin.write("x" * 11)
    stdin.close()
    with pytest.raises(InvalidRequest, match="More than 10"):
        ask.read_question(None)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("{", "not JSON"),
        *((none, "takes a JSON object") for none in ("", "[]", '"x"', "true", "/no/such/file", "/")),
        ("{" * 100_000, "not JSON"),
    ],
)
def test_a_schema_that_is_none_is_refused(given: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        ask.read_schema(given)


def test_a_schema_must_be_an_object(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text("[1]")
    with pytest.raises(InvalidSchema, match="must be a JSON object"):
        ask.read_schema(str(path))
