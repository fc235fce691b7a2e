import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.text import Text
from typer.testing import CliRunner, Result

from domain.entities.health import EngineProcess
from domain.errors import InvalidRequest, UnknownModel
from presentation.cli.app import build_app
from presentation.cli.models import list_models
from tests.fakes import FixedHealth, MemoryStore, fake_openers


def models(*arguments: str, store: MemoryStore, health: FixedHealth | None = None) -> Result:
    app = build_app(fake_openers(store=store, health=health))
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, ["models", *arguments])


def test_list_shows_what_there_is_and_what_there_could_be() -> None:
    shown = models("list", store=MemoryStore("[bold]mine")).stdout
    assert "[bold]mine" in shown
    assert "tiny" in shown
    assert "Apache-2.0" in shown
    assert (
        "No model is installed. tiny, the default, is fetched when a command needs it"
        in models("list", store=MemoryStore()).stdout
    )


def test_pull_use_rm_add(tmp_path: Path) -> None:
    store = MemoryStore()
    pulled = models("pull", "tiny", store=store)
    assert pulled.stdout == "tiny (1.5 MB) is ready.\n"
    assert "ready" not in pulled.stderr
    assert models("add", "mine", str(tmp_path), store=store).stdout == "mine (1.5 MB) is registered.\n"
    assert models("use", "mine", store=store).stdout == "mine is the default from now on.\n"
    assert models("rm", "tiny", store=store).stdout == "tiny is removed, 1.5 MB freed.\n"
    assert store.names == ["mine"]
    assert store.default == "mine"
    assert isinstance(models("rm", "tiny", store=store).exception, UnknownModel)


def test_what_answers_without_the_removed_model_is_said() -> None:
    last = models("rm", "tiny", store=MemoryStore("tiny")).stdout
    assert (
        last
        == "tiny is removed, 1.5 MB freed. It is fetched again when a command next needs it, as uniun ask does.\n"
    )
    chosen = MemoryStore("tiny", "mine")
    chosen.default = "mine"
    assert models("rm", "mine", store=chosen).stdout.endswith(" The default now is tiny.\n")
    lacking = models("rm", "tiny", store=MemoryStore("tiny", "mine")).stdout
    assert lacking.endswith(" as uniun ask does, unless you choose another now: uniun models use NAME.\n")
    own = MemoryStore("mine")
    own.default, own.offered = "mine", []
    assert "Nothing answers now until a model is fetched." in models("rm", "mine", store=own).stdout
    assert (
        models("rm", "mine", store=MemoryStore("tiny", "mine")).stdout == "mine is removed, 1.5 MB freed.\n"
    )


def test_it_is_asked_about_with_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scheduler:
        def snapshot(self) -> Any:
            return SimpleNamespace(resident="tiny")

    @asynccontextmanager
    async def running() -> AsyncIterator[Any]:
        yield Scheduler()

    asked: list[str] = []
    monkeypatch.setattr("presentation.cli.models.ask_first", lambda deed, *, sure: asked.append(deed))
    app = build_app(replace(fake_openers(store=MemoryStore("tiny")), servers_scheduler=running))
    assert CliRunner().invoke(app, ["models", "rm", "tiny"]).exit_code == 0
    assert asked == [
        "remove the model tiny (it is fetched again when a command next needs it, as uniun ask does; the UNIUN that runs "
        "has it in memory, and only ends what it is writing)"
    ]


def test_ps_shows_engines_and_does_not_claim_to_know_more() -> None:
    process = EngineProcess(pid=4711, parent="uniun chat", memory_bytes=300_000_000, running_s=75)
    shown = models("ps", store=MemoryStore(), health=FixedHealth(processes=(process,))).stdout
    for words in ("4711", "300.0 MB", "1 min 15 s", "uniun chat"):
        assert words in shown
    assert "No engine is running" in models("ps", store=MemoryStore()).stdout


def test_engines_of_other_data_folders_stand_apart() -> None:
    ours = EngineProcess(pid=4711, parent="uniun chat", memory_bytes=1, running_s=1)
    theirs = EngineProcess(
        pid=4712, parent="uniun serve", memory_bytes=1, running_s=1, other_folder="/other/data"
    )
    health = FixedHealth(processes=(ours, theirs))
    own, others = models("ps", store=MemoryStore(), health=health).stdout.split(
        "Engines of other data folders:"
    )
    assert "4711" in own
    assert "4712" not in own
    assert "/other/data" in others
    alone = models("ps", store=MemoryStore(), health=FixedHealth(processes=(theirs,))).stdout
    assert alone.startswith("No engine of this data folder is running.")


def test_an_engine_whose_program_is_gone_is_an_orphan() -> None:
    process = EngineProcess(pid=4711, parent="", memory_bytes=1, running_s=1)
    shown = models("ps", store=MemoryStore(), health=FixedHealth(processes=(process,))).stdout
    assert "an orphan; end it with: kill 4711" in shown


def test_a_remote_model_is_added_and_its_server_told_of() -> None:
    store = MemoryStore()
    added = models("add", "team", "--url", "http://gpu:8000", "--model", "m", store=store)
    assert "http://gpu:8000/v1 cannot be reached." in added.stdout
    assert "team is registered" in added.stdout
    for arguments in (
        ("add", "x"),
        ("add", "x", "/tmp", "--url", "http://gpu"),
        ("add", "x", "--model", "m"),
    ):
        assert isinstance(models(*arguments, store=store).exception, InvalidRequest)


def test_what_can_be_fetched_folds_beside_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    list_models(fake_openers(store=MemoryStore()).models())
    lines = Text.from_ansi(capsys.readouterr().out).plain.splitlines()
    assert all(len(line.rstrip()) <= 60 for line in lines)
    [at] = [at for at, line in enumerate(lines) if line.startswith("* tiny")]
    assert lines[at + 1].startswith(" " * 17)
    assert "Apache-2.0" in lines[at + 1]
