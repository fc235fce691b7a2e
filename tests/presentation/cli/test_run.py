import errno
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from domain.errors import EngineLost, NotFound, PromptTooLong, UniunError, UnknownModel
from presentation.cli.app import build_app
from presentation.cli.run import run
from tests.fakes import fake_openers


def failing(error: BaseException) -> typer.Typer:
    app = typer.Typer()

    @app.command()
    def fail() -> None:
        raise error

    return app


@pytest.fixture
def log_file(tmp_path: Path) -> Callable[[], Path]:
    return lambda: tmp_path / "logs" / "last-error.txt"


def test_a_failure_is_one_sentence_and_1(
    capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    assert run(failing(EngineLost("The engine died. Ask again.")), [], log_file) == 1
    assert capsys.readouterr() == ("", "uniun: The engine died. Ask again.\n")


@pytest.mark.parametrize("kind", [UnknownModel, *NotFound.__subclasses__()])
def test_a_name_that_nothing_has_is_2(kind: type[UniunError], log_file: Callable[[], Path]) -> None:
    assert run(failing(kind("There is no such thing.")), [], log_file) == 2


def test_a_wrong_request_is_2(capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]) -> None:
    assert run(failing(PromptTooLong(5000, 2048)), [], log_file) == 2
    err = capsys.readouterr().err
    assert "5000" in err
    assert "2048" in err


def test_ctrl_c_is_1(capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]) -> None:
    assert run(failing(KeyboardInterrupt()), [], log_file) == 1
    assert capsys.readouterr().err == "uniun: stopped.\n"


@pytest.mark.parametrize(
    ("module", "package"),
    [("watchfiles", "watchfiles"), ("yaml", "pyyaml"), ("apscheduler.triggers", "apscheduler")],
)
def test_a_package_that_is_missing_is_named(
    module: str, package: str, capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    missing = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert run(failing(missing), [], log_file) == 1
    assert capsys.readouterr().err == (
        f"uniun: The Python package {package} is missing or broken (No module named {module!r}). Set up again: delete "
        f".venv, then make run. Or: pip install --force-reinstall {package}\n"
    )
    assert not log_file().exists()


@pytest.mark.parametrize("module", ["data.gone", None])
def test_a_module_of_ours_that_is_missing_is_to_be_reported(
    module: str | None, capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    assert run(failing(ImportError("cannot import", name=module)), [], log_file) == 1
    assert "please report" in capsys.readouterr().err


def test_the_unexpected_goes_to_a_log(
    capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    assert run(failing(ZeroDivisionError("by zero\nand more")), [], log_file) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "ZeroDivisionError: by zero)" in err
    assert str(log_file()) in err
    assert "Traceback" in log_file().read_text()


def test_a_full_disk_is_nothing_to_report(
    capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    assert run(failing(OSError(errno.ENOSPC, "No space left on device")), [], log_file) == 1
    assert "could not be written: No space left on device. Free" in capsys.readouterr().err
    assert not log_file().exists()


def test_a_program_that_gets_no_thread_says_which_limit_it_met(
    capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    assert run(failing(RuntimeError("can't start new thread")), [], log_file) == 1
    assert "ulimit -u" in capsys.readouterr().err
    assert not log_file().exists()


def test_a_log_that_cannot_be_written_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run(failing(ZeroDivisionError()), [], lambda: tmp_path / "file" / "log") == 1
    assert "could not be written" in capsys.readouterr().err


def test_the_last_handler_raises_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def no_log() -> Path:
        raise RuntimeError("no home")

    assert run(failing(ZeroDivisionError()), [], no_log) == 1
    assert "could not be written (no home)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["aks"], "Did you mean 'ask'? See: uniun --help"),
        (["ask", "x", "--kind", "model_switch"], "model_switch"),
        (["ask", "x", "--max-tokens", "0"], "--max-tokens"),
        *(
            (["ask", "x", "--temperature", t], "it should be a number from 0 to 5")
            for t in ("nan", "6", "-1")
        ),
        (
            ["ask", "x", "--temperature", "hot"],
            "'--temperature': it should be a number. See: uniun ask --help",
        ),
        (["ask", "x", "--seed", str(2**63)], "'--seed': it should be less than"),
        (["ask", "x", "--seed", "x"], "it should be a whole number. See: uniun ask --help"),
        (["ask", "x", "--model", ""], "it is empty; leave the option out"),
        (["chat", "-m", " "], "it is empty; leave the option out"),
        (["models", "use"], "See: uniun models use --help"),
        (["simulate", "x", "--json", "--gantt"], "not both"),
        (["simulate", "/no/such/file"], "cannot be read"),
    ],
)
def test_bad_usage_is_one_line_and_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    assert run(build_app(fake_openers()), arguments, log_file) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words.lower() in err.lower()
    assert err.startswith("uniun: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["models"], ["models", "--help"], ["ask", "-h"]])
def test_help_is_0(
    arguments: list[str], capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]
) -> None:
    assert run(build_app(fake_openers()), arguments, log_file) == 0
    assert "Usage: " in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str], log_file: Callable[[], Path]) -> None:
    assert run(build_app(fake_openers()), ["--version"], log_file) == 0
    assert capsys.readouterr().out == "uniun 1.2.3\n"
