import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from data import health
from data.clock import SystemClock
from data.health import MachineHealth
from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from data.loops import LoopFailure, LoopLog
from data.models.store import FileModelStore
from domain.entities.health import Finding
from domain.entities.models import InstalledModel

LOOPS = LoopLog(Path("/nowhere"))


def machine(
    store: FileModelStore, options: EngineOptions, *folders: Path, loops: LoopLog = LOOPS
) -> MachineHealth:
    clock = SystemClock()
    named = {f"folder {at}": path for at, path in enumerate(folders)}
    return MachineHealth(store, EngineRunner(store, options, clock), named, loops, clock)


def findings(machine: MachineHealth) -> list[Finding]:
    async def collect() -> list[Finding]:
        return [finding async for finding in machine.findings()]

    return asyncio.run(collect())


def of(area: str, found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.area == area]


@pytest.fixture
def empty(tmp_path: Path) -> FileModelStore:
    return FileModelStore(tmp_path / "models", SystemClock())


@pytest.fixture
def sound_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of something else: each look would start both."""

    async def sound(engine: str) -> Finding:
        return Finding(area="engine", state="ok", text=engine)

    monkeypatch.setattr(health, "_engine", sound)


def test_a_fresh_machine_has_nothing_broken(empty: FileModelStore, tmp_path: Path) -> None:
    found = findings(machine(empty, EngineOptions(), tmp_path / "not" / "there" / "yet"))
    assert [finding.area for finding in found] == [
        *("Python", "engine", "engine", "engine", "model", "memory", "folder", "background")
    ]
    assert not [finding for finding in found if finding.state == "fail"]
    (model,) = of("model", found)
    assert model.state == "warn"
    assert "uniun models pull" in model.mend


def test_an_engine_that_is_not_installed_or_dies_at_import_is_named(
    empty: FileModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"llama.cpp": ("pydantic", "os; os.abort()"), "mlx": ("no-such-package", "nothing")}
    monkeypatch.setattr(health, "_ENGINES", broken)
    llama, mlx, chosen = of("engine", findings(machine(empty, EngineOptions())))
    assert llama.state == "warn"
    assert "cannot be imported" in llama.text
    assert mlx.state == "warn"
    assert "not installed" in mlx.text
    assert chosen.state == "fail"
    assert chosen.mend


@pytest.mark.usefixtures("sound_engines")
def test_a_folder_that_cannot_be_used_is_named(empty: FileModelStore, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (folder,) = of("folder", findings(machine(empty, EngineOptions(), tmp_path / "file" / "data")))
    assert folder.state == "fail"
    assert str(tmp_path / "file") in folder.text


@pytest.mark.usefixtures("sound_engines")
def test_own_files_that_are_gone_are_not_to_be_pulled(empty: FileModelStore, tmp_path: Path) -> None:
    place = tmp_path / "models" / "models" / "mine"
    place.mkdir(parents=True)
    manifest = {
        "name": "mine",
        "source": "registered",
        "licence": "unknown",
        "added": "2026-01-01T00:00:00Z",
        "context_tokens": 128,
        "gguf": "gone.gguf",
        "registered": str(tmp_path),
        "files": [{"path": "gone.gguf", "size_bytes": 7}],
    }
    (place / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "models" / "settings.json").write_text('{"default": "mine"}')
    for damaged in (False, True):
        if damaged:
            (place / "manifest.json").write_text("{")
        found = findings(machine(empty, EngineOptions()))
        (model,), (memory,) = of("model", found), of("memory", found)
        assert model.state == "fail"
        assert "uniun models add mine PATH" in model.mend
        assert "pull" not in model.mend
        assert "needs" not in memory.text


def test_an_engine_that_init_has_taken_over_works_for_nothing(
    empty: FileModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Init(psutil.Process):
        def name(self) -> str:
            return "systemd"

        def cmdline(self) -> list[str]:
            return ["/sbin/init", "splash"]

    class Orphan(psutil.Process):
        def cmdline(self) -> list[str]:
            return ["python", "-m", health._ENGINE_MODULE]

        def parent(self) -> psutil.Process:
            return Init()

    monkeypatch.setattr(psutil, "process_iter", lambda: iter([Orphan()]))
    (process,) = machine(empty, EngineOptions()).engine_processes()
    assert process.parent == ""


@pytest.mark.model
def test_an_installed_model_is_verified_and_its_engine_named(
    model_store: FileModelStore, smollm2: InstalledModel
) -> None:
    found = findings(machine(model_store, EngineOptions(backend="mlx")))
    (model,) = of("model", found)
    assert model.state == "ok"
    assert smollm2.name in model.text
    assert of("engine", found)[-1].text == "mlx is chosen: UNIUN_ENGINE__BACKEND says so"


@pytest.mark.model
def test_a_running_engine_is_seen(model_store: FileModelStore, smollm2: InstalledModel) -> None:
    async def scenario() -> None:
        clock = SystemClock()
        runner = EngineRunner(model_store, EngineOptions(), clock)
        try:
            await runner.load(smollm2.name)
            seen = MachineHealth(model_store, runner, {}, LOOPS, clock).engine_processes()
            (process,) = [process for process in seen if process.pid == runner.pid]
            assert process.memory_bytes > 50_000_000
            assert process.parent
            assert process.other_folder == ""
        finally:
            await runner.aclose()

    asyncio.run(scenario())


@pytest.mark.usefixtures("sound_engines")
def test_a_loop_that_failed_today_is_told(empty: FileModelStore, tmp_path: Path) -> None:
    loops = LoopLog(tmp_path)
    day = timedelta(days=1)
    loops.add(LoopFailure(SystemClock().now() - 2 * day, "backfill", "ValueError: old"), "")
    (work,) = of("background", findings(machine(empty, EngineOptions(), loops=loops)))
    assert work.state == "ok"
    loops.add(LoopFailure(SystemClock().now() - day / 2, "backfill", "ValueError: new"), "")
    (work,) = of("background", findings(machine(empty, EngineOptions(), loops=loops)))
    assert (work.state, "backfill" in work.text, "ValueError: new" in work.text) == ("warn", True, True)
    assert str(loops.path) in work.mend


@pytest.mark.usefixtures("sound_engines")
def test_errors_of_the_server_that_nobody_foresaw_are_told_for_a_day(
    empty: FileModelStore, tmp_path: Path
) -> None:
    clock = SystemClock()
    runner = EngineRunner(empty, EngineOptions(), clock)
    desk = MachineHealth(empty, runner, {"log": tmp_path}, LOOPS, clock)
    log = tmp_path / "server.log"
    assert [found.state for found in of("server", findings(desk))] == ["ok"]
    log.write_text("2026-11-30 10:00:00,000 WARNING uniun.server: refused: wrong Host\n")
    assert [found.state for found in of("server", findings(desk))] == ["ok"]
    log.write_text("2026-11-30 10:00:00,000 ERROR nicegui: an error in the code\n  File …\n")
    (told,) = of("server", findings(desk))
    assert (told.state, "1" in told.text, str(log) in told.mend) == ("warn", True, True)
    old = clock.now().timestamp() - 2 * 86_400
    os.utime(log, (old, old))
    assert [found.state for found in of("server", findings(desk))] == ["ok"]


def test_a_program_is_named_without_its_folders() -> None:
    for words, shown in (
        (
            ["/x/.venv/bin/python3", "/x/.venv/bin/uniun", "serve", "--port", "9000"],
            "uniun serve --port 9000",
        ),
        (["/usr/bin/python3.11", "-m", "uniun", "chat"], "uniun chat"),
        (["/x/bin/uniun"], "uniun"),
        ([], ""),
    ):
        assert health._program(words) == shown


def test_an_engine_of_another_data_folder_is_told_apart(
    empty: FileModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = iter([str(tmp_path / "ours"), str(tmp_path / "theirs")])

    class Engine(psutil.Process):
        def cmdline(self) -> list[str]:
            return ["python", "-m", health._ENGINE_MODULE]

        def environ(self) -> dict[str, str]:
            return {"UNIUN_DATA_DIR": next(folders)}

    monkeypatch.setattr(psutil, "process_iter", lambda: iter([Engine(), Engine()]))
    looking = machine(empty, EngineOptions())
    monkeypatch.setattr(looking, "_folders", {"data": tmp_path / "ours"})
    assert sorted(each.other_folder for each in looking.engine_processes()) == ["", str(tmp_path / "theirs")]
