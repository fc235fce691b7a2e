"""`uniun background install` with a real systemd: what it starts, starts again, hands over and takes away."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from background.service import UNIT
from data.models.store import FileModelStore
from data.presence import Presence
from domain.entities.gana import GanaRun
from tests.background.desk import Desk
from tests.background.user_manager import UserManager, available
from tests.conftest import TEST_STORE

ODD = 'a "b" \\c %d $e ü'
PATIENCE_S = 240


def restart_after(manager: UserManager, time: str) -> None:
    override = manager.home / ".config" / "systemd" / "user" / f"{UNIT}.d" / "soon.conf"
    override.parent.mkdir(parents=True, exist_ok=True)
    override.write_text(f"[Service]\nRestartSec={time}\n")
    manager.systemctl("daemon-reload")


def pid_of(status: str) -> int:
    """0: it does not run."""
    found = re.search(r"^running: +yes, process (\d+)$", status, re.MULTILINE)
    return int(found[1]) if found else 0


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await happened():  # noqa: ASYNC110 - other processes tell nobody
            await asyncio.sleep(0.2)


if available():

    @pytest.fixture
    def manager(tmp_path: Path) -> Iterator[UserManager]:
        home = tmp_path / "home"
        # A service starts in the home folder, which may hold anything.
        (home / "data").mkdir(parents=True)
        (home / "typer.py").write_text("raise SystemExit('this is not meant for you')")
        folders = {"UNIUN_DATA_DIR": str(tmp_path / ODD), "UNIUN_LOG_DIR": str(tmp_path / ODD / "logs")}
        with UserManager(home, {**folders, "UNIUN_BACKGROUND_INTERVAL_S": "0.5"}) as manager:
            yield manager

    def test_it_runs_from_the_start_to_the_end(manager: UserManager, tmp_path: Path) -> None:
        assert "installed: no\nrunning:   no\n" in manager.uniun("background", "status")
        told = manager.uniun("background", "install")
        assert "The background process runs, and starts again whenever you log in." in told
        assert "loginctl enable-linger" in told
        assert manager.systemctl("is-enabled", UNIT) == "enabled"
        assert manager.systemctl("is-active", UNIT) == "active"
        first = pid_of(manager.uniun("background", "status"))
        assert psutil.Process(first).environ()["UNIUN_DATA_DIR"] == str(tmp_path / ODD)
        elsewhere = manager.uniun("background", "status", UNIUN_DATA_DIR=str(tmp_path / "other"))
        assert "running:   no. It runs for another data folder." in elsewhere

        psutil.Process(first).kill()
        manager.wait_for(UNIT, "SubState", "auto-restart")
        status = manager.uniun("background", "status")
        assert "running:   no. It was killed by signal 9. It is started again after 60 s.\n" in status
        assert f"its log:   journalctl --user -u {UNIT} -e\n" in status
        restart_after(manager, "100ms")
        manager.systemctl("restart", UNIT)
        first = pid_of(manager.uniun("background", "status"))
        psutil.Process(first).kill()
        manager.wait_for(UNIT, "NRestarts", "1")
        manager.wait_for(UNIT, "ActiveState", "active")
        process = psutil.Process(pid_of(manager.uniun("background", "status")))
        assert process.pid != first
        manager.systemctl("disable", UNIT)
        # Not booted with systemd, systemctl changes the links and does not tell the manager.
        manager.systemctl("daemon-reload")
        assert "It does not start when you log in." in manager.uniun("background", "status")
        manager.systemctl("stop", UNIT)
        assert "running:   no. It was stopped." in manager.uniun("background", "status")
        assert not process.is_running()
        manager.uniun("background", "install")
        process = psutil.Process(pid_of(manager.uniun("background", "status")))
        assert "is removed." in manager.uniun("background", "uninstall")
        assert not process.is_running()
        assert manager.systemctl("list-units", "--all", "--plain", "--no-legend", "uniun*") == ""
        assert [path.name for path in (manager.home / ".config").rglob("*") if path.is_file()] == [
            "soon.conf"
        ]
        assert "is not installed" in manager.uniun("background", "uninstall")

    def test_one_that_ends_at_once_is_told(manager: UserManager) -> None:
        override = manager.home / ".config" / "systemd" / "user" / f"{UNIT}.d" / "wrong.conf"
        override.parent.mkdir(parents=True)
        override.write_text("[Service]\nEnvironment=UNIUN_DATABASE_URL=nonsense\n")
        told = manager.uniun("background", "install")
        assert "whenever you log in" not in told
        assert "It ended with exit status" in told
        assert "It is started again after 60 s." in told
        assert "What it said: journalctl" in told
        assert "is removed." in manager.uniun("background", "uninstall")
        assert manager.systemctl("list-units", "--all", "--plain", "--no-legend", "uniun*") == ""

    @pytest.mark.model
    def test_a_due_gana_runs_in_it_and_gives_way_to_the_app(
        manager: UserManager, model_store: FileModelStore, tmp_path: Path
    ) -> None:
        data_dir = tmp_path / ODD
        data_dir.mkdir()
        (data_dir / "models").symlink_to(TEST_STORE / "models")

        async def scenario() -> None:
            async with Desk(data_dir) as desk:

                async def last(gana: str) -> GanaRun | None:
                    return next((run for run in reversed(await desk.runs()) if run.gana_id == gana), None)

                async def done() -> bool:
                    run = await last("id-short")
                    return run is not None and run.status != "running"

                async def running() -> bool:
                    run = await last("id-long")
                    return run is not None and run.status == "running"

                async def given_up() -> bool:
                    return not await running()

                await desk.gana("short", input_tag="inbox", task="Say in one sentence what is new.")
                await desk.note("The mill reopened on Monday; flour is cheaper.", "inbox", title="Mill")
                manager.uniun("background", "install")
                process = psutil.Process(pid_of(manager.uniun("background", "status")))
                await until(done)
                run = await last("id-short")
                assert run is not None
                assert (run.status, run.by) in (("succeeded", "background"), ("skipped", "background"))
                assert run.tokens > 0
                await desk.gana("long", input_tag="inbox", task="Write a long story of all that happened.")
                await desk.note("The bakery closed. " * 200, "inbox", title="Bakery")
                await until(running)
                async with Presence(data_dir).app():
                    await until(given_up)
                    run = await last("id-long")
                    assert run is not None
                    assert run.reason == "cancelled"
                    assert "long" in await desk.due()
                    assert "open, so it does nothing" in manager.uniun("background", "status")
                await until(running)
                children = process.children(recursive=True)
                manager.uniun("background", "uninstall")
                assert psutil.wait_procs([process, *children], timeout=120)[1] == []
                run = await last("id-long")
                assert run is not None
                assert run.reason == "cancelled"
                assert "long" in await desk.due()

        asyncio.run(scenario())
