"""`uniun nataraj`, `uniun gana` and `uniun background` on the command line, over fakes."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from domain.entities.gana import GanaRun
from domain.errors import GanaNotFound, InvalidRequest
from presentation.cli.app import build_app
from presentation.cli.background import status
from presentation.cli.gana import next_run
from tests.fakes import MemoryStore, ScriptedCoordinator, answer, fake_openers
from tests.memory.background import MemoryService, fake_background
from tests.memory.gana_world import GanaWorld


class Terminal:
    """One home; every command is a new program over it."""

    def __init__(self, *answers: str) -> None:
        self.coordinator = ScriptedCoordinator(*(answer(text) for text in answers))
        self._app = build_app(fake_openers(self.coordinator, MemoryStore("tiny")))

    def __call__(self, *arguments: str) -> str:
        result = self.result(*arguments)
        assert result.exit_code == 0, result.exception or result.output
        return result.stdout

    def result(self, *arguments: str) -> Result:
        return CliRunner().invoke(self._app, list(arguments))

    def fails(self, *arguments: str) -> BaseException:
        failed = self.result(*arguments).exception
        assert failed is not None
        return failed


def test_the_life_of_a_gana() -> None:
    uniun = Terminal("The week was quiet.", "NOTHING")
    said = uniun("gana", "create", "my week", "--task", "Sum up.", "--trigger", "every monday at 9:00")
    assert "every monday at 9:00" in said
    assert 'uniun gana enable "my week"' in said
    assert "next on" in uniun("gana", "enable", "my week")
    assert "on" in uniun("gana", "list")
    shown = uniun("gana", "show", "my week")
    assert "every monday at 9:00" in shown
    assert "reads:          nothing\n" in shown
    assert "Sum up." in shown
    assert uniun("gana", "run", "my week") == "The week was quiet.\n"
    assert "nothing to say" in uniun.result("gana", "preview", "my week").stderr
    runs = uniun("gana", "runs")
    assert "succeeded" in runs
    assert "The week was quiet." in runs
    assert "by hand" in uniun("gana", "edit", "my week", "--trigger", "by hand", "--output-tag", "week")
    assert "off" in uniun("gana", "disable", "my week")
    assert "the Gana my week and its log" in str(uniun.fails("gana", "rm", "my week"))
    assert "removed" in uniun("gana", "rm", "my week", "--yes")
    assert "no Gana yet" in uniun("gana", "list")
    assert "Nothing has run" in uniun("gana", "runs")


def test_all_options_of_a_gana_and_a_task_from_a_file(tmp_path: Path) -> None:
    uniun = Terminal()
    (tmp_path / "task.md").write_text("A long task.", encoding="utf-8")
    uniun("notes", "manas", "create", "kitchen")
    uniun(
        *("gana", "create", "g", "--task", f"@{tmp_path}/task.md", "--trigger", "every 30 minutes"),
        *(
            "--description",
            "For me",
            "--input-manas",
            "kitchen",
            "--manas",
            "kitchen",
            "--output-tag",
            "digest",
        ),
        *(
            "--webhook",
            "http://127.0.0.1:9/hook",
            "--model",
            "tiny",
            "--missed",
            "all",
            "--agentic",
            "--enable",
        ),
    )
    shown = uniun("gana", "show", "g")
    for value in (
        "A long task.",
        "every 30 minutes",
        "kitchen",
        "digest",
        "hook",
        "one run for each, one after the other",
        "looks up:       in the notes by itself",
    ):
        assert value in shown
    uniun("gana", "edit", "g", "--webhook", "", "--plain")
    shown = uniun("gana", "show", "g")
    assert "hook" not in shown
    assert "looks up:       nothing by itself" in shown


def test_what_a_reaction_waits_for_is_said() -> None:
    async def watch() -> None:
        world = GanaWorld()
        gana = await world.gana(reactive=True, input_tag="inbox")
        assert await next_run(world.gana_controller(), gana) == "with a new note"
        note = await world.note("text", "inbox", title="Fresh")
        later = note.changed_at + timedelta(seconds=1)
        await world.notes.save([note.model_copy(update={"changed_at": later})])
        world.counting.at = later
        told = await next_run(world.gana_controller(), gana)
        assert told == "when “Fresh” has been left alone for a minute"
        off = gana.model_copy(update={"enabled": False})
        assert await next_run(world.gana_controller(), off) == ""

    asyncio.run(watch())


def test_what_is_wrong_is_said() -> None:
    uniun = Terminal()
    assert isinstance(uniun.fails("gana", "show", "nobody"), GanaNotFound)
    assert isinstance(uniun.fails("gana", "create", "g", "--task", "t", "--trigger", "soon"), InvalidRequest)
    assert isinstance(uniun.fails("gana", "create", "g"), InvalidRequest)
    assert uniun.result("gana", "create", "g", "--task", "@/no/such/file").exit_code == 2
    assert uniun.result("gana", "create", "g", "--task", "t", "--missed", "some").exit_code == 2


def test_the_deck() -> None:
    uniun = Terminal("Both wait.")
    empty = uniun.result("nataraj")
    assert "uniun nataraj fill" in empty.stderr
    for number in range(3):
        uniun("notes", "add", f"Text {number}.", "--title", f"Note {number}")
    assert uniun("nataraj", "fill", "3").count("Both wait.") == 3
    assert uniun("nataraj").count("Both wait.") == 3
    shown = uniun("nataraj", "next")
    assert "from Note" in shown
    first = shown.split()[0]
    assert "Kept as the note" in uniun("nataraj", "keep", first)
    assert "Dropped: Both wait." in uniun("nataraj", "drop")
    assert "1 ready, 1 dropped, 1 kept" in uniun("nataraj")
    assert "Both wait." in uniun("notes", "list")
    with pytest.raises(InvalidRequest, match="no card"):
        raise uniun.fails("nataraj", "keep", "ffff")
    uniun("notes", "manas", "create", "kitchen")
    assert "no combination of notes is left" in uniun.result("nataraj", "fill", "--manas", "kitchen").stderr


def test_the_background() -> None:
    uniun = Terminal()
    assert "installed: no" in uniun("background", "status")
    assert "looks for due Ganas" in uniun.result("background", "run").stderr
    installed = uniun.result("background", "install")
    assert installed.stdout.endswith("uniun-background.service is written.\n")
    assert "systemctl" in installed.stderr
    assert "not installed" in uniun("background", "uninstall")


def test_the_status_names_the_ganas_that_ran(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        world = GanaWorld()
        gana = await world.gana("my week")
        run = GanaRun(
            id="r", gana_id=gana.id, due_at=None, status="succeeded", started_at=world.now, by="background"
        )
        await world.ganas.put_run(run)
        service = MemoryService()
        service.install()
        service.ill = "It was stopped."
        await status(fake_background(world.ganas, service))

    asyncio.run(scenario())
    out = capsys.readouterr().out
    assert "running:   no. It was stopped.\n" in out
    assert "its log:   journalctl\n" in out
    assert out.endswith("  my week  succeeded\n")


@pytest.mark.parametrize("group", ["gana", "nataraj", "background"])
def test_help(group: str) -> None:
    assert "Usage" in Terminal()(group, "--help")
