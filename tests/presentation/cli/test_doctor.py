from typer.testing import CliRunner

from domain.entities.health import Finding
from domain.errors import EngineMissing
from presentation.cli.app import build_app
from tests.fakes import FixedHealth, ScriptedCoordinator, answer, fake_openers

FINE = Finding(area="Python", state="ok", text="3.11")
SO_SO = Finding(area="model", state="warn", text="tiny is absent", mend="uniun models pull tiny")
BROKEN = Finding(area="engine", state="fail", text="[red]none", mend="install one")


def test_a_warning_is_no_failure_and_says_how_to_mend_it() -> None:
    result = CliRunner().invoke(build_app(fake_openers(health=FixedHealth(FINE, SO_SO))), ["doctor"])
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == ["ok Python 3.11", "warn model tiny is absent", "→ uniun models pull tiny"]


def test_something_broken_is_1() -> None:
    result = CliRunner().invoke(build_app(fake_openers(health=FixedHealth(FINE, BROKEN))), ["doctor"])
    assert result.exit_code == 1
    assert "[red]none" in result.stdout


def test_run_generates() -> None:
    fine = fake_openers(ScriptedCoordinator(answer("Hello", "!")))
    result = CliRunner().invoke(build_app(fine), ["doctor", "--run"])
    assert result.exit_code == 0
    assert "generation" in result.stdout
    broken = fake_openers(ScriptedCoordinator([EngineMissing("No engine.")]))
    result = CliRunner().invoke(build_app(broken), ["doctor", "--run"])
    assert result.exit_code == 1
    assert "No engine." in result.stdout


def test_a_model_that_says_nothing_is_not_ok() -> None:
    silent = fake_openers(ScriptedCoordinator(answer()))
    result = CliRunner().invoke(build_app(silent), ["doctor", "--run"])
    assert result.exit_code == 1
    assert "before the first token" in result.stdout
