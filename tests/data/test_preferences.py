import asyncio
import os
from pathlib import Path

import pytest

from data.desktop import DesktopFolders
from data.inference.options import EngineOptions
from data.preference_store import FilePreferences, ReadingWanted
from data.preferences import FILE_NAME, PLACES, read_preferences, write_preferences
from data.scheduling.config import SchedulerConfig
from data.settings import load_settings
from domain.entities.preferences import Preferences
from domain.errors import InvalidRequest, UniunError


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in [name for name in os.environ if name.startswith("UNIUN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UNIUN_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


CHOSEN = Preferences(
    context_tokens=4096,
    kv_budget_bytes=100 << 20,
    threads=3,
    read_notes=False,
    extract_share=0.3,
    linger_s=60,
    fair_slice_s=10,
    background_interval_s=30,
)


def test_every_preference_has_a_place() -> None:
    assert set(PLACES) == set(Preferences.model_fields)


def nobody(choice: object) -> None:
    """No scheduler and no engine runs."""


def test_what_is_chosen_holds_at_once(home: Path) -> None:
    told: list[SchedulerConfig] = []
    engine: list[EngineOptions] = []
    before = FilePreferences(load_settings(), told.append, engine.append)
    before.write(Preferences(extract_share=0.3))
    assert engine == []  # what the model is loaded with stayed as it was
    before.write(CHOSEN)
    assert before.look().chosen == before.look().in_force == CHOSEN
    assert (told[-1].extract_share, told[-1].fair_slice_s, told[-1].linger_surface_s) == (0.3, 10, 60)
    assert [(one.context_tokens, one.threads) for one in engine] == [(CHOSEN.context_tokens, CHOSEN.threads)]
    after = FilePreferences(load_settings(), nobody, nobody).look()
    assert after.in_force == CHOSEN
    assert after.defaults == before.look().defaults
    assert after.defaults.context_tokens == 8192
    assert after.fixed == {}
    settings = load_settings()
    assert settings.scheduler.extract_resume_share < settings.scheduler.extract_share == 0.3
    assert settings.data_dir == home


def test_whether_notes_are_read_holds_in_every_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[bool] = []
    wanted = ReadingWanted(home)
    here = FilePreferences(load_settings(), nobody, nobody, lambda: woken.append(wanted()))
    assert wanted()
    here.write(Preferences(read_notes=False))
    assert woken == [False]
    write_preferences(home, Preferences(read_notes=True))  # by another process
    assert wanted()
    (home / FILE_NAME).write_text("{")
    assert wanted()
    monkeypatch.setenv("UNIUN_READ_NOTES", "false")
    assert not ReadingWanted(home)()


def test_the_environment_goes_before_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_preferences(home, CHOSEN)
    monkeypatch.setenv("UNIUN_ENGINE__THREADS", "1")
    monkeypatch.setenv("UNIUN_BACKGROUND_INTERVAL_S", "7")
    settings = load_settings()
    assert (settings.engine.threads, settings.engine.context_tokens) == (1, 4096)
    assert settings.background_interval_s == 7
    assert FilePreferences(settings, nobody, nobody).look().fixed == {
        "threads": "UNIUN_ENGINE__THREADS",
        "background_interval_s": "UNIUN_BACKGROUND_INTERVAL_S",
    }
    monkeypatch.setenv("UNIUN_SCHEDULER__EXTRACT_RESUME_SHARE", "0.5")
    with pytest.raises(InvalidRequest, match="does not go with the environment"):
        load_settings()
    write_preferences(home, Preferences())
    with pytest.raises(InvalidRequest, match="does not go with the environment"):
        FilePreferences(settings, nobody, nobody).write(CHOSEN)
    assert read_preferences(home) == Preferences()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        "null",
        '{"threads": "many"}',
        '{"nonsense": 1}',
        '{"threads": 0}',
        "\xff",
        "[" * 90_000,
    ],
)
def test_a_damaged_file_is_named(home: Path, text: str) -> None:
    home.mkdir()
    (home / FILE_NAME).write_text(text, encoding="latin-1")
    with pytest.raises(InvalidRequest, match=r"preferences\.json cannot be used") as refused:
        load_settings()
    assert "delete it" in str(refused.value)


@pytest.mark.parametrize("below", ["", "sub/folder"])
def test_a_data_folder_that_is_a_file_is_told_with_its_variable(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("UNIUN_DATA_DIR", str(tmp_path / "file" / below))
    with pytest.raises(InvalidRequest, match=r"is no folder\. Set UNIUN_DATA_DIR to one"):
        load_settings()


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UniunError, match="cannot be written"):
        write_preferences(tmp_path / "file", CHOSEN)
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_preferences(tmp_path)


def test_a_folder_opens_on_a_desktop_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    folders = DesktopFolders(tmp_path / "data")
    with pytest.raises(InvalidRequest, match="no desktop here"):
        asyncio.run(folders.open_data_folder())
    monkeypatch.setenv("DISPLAY", ":0")
    asyncio.run(folders.open_data_folder())
    assert (tmp_path / "opened").read_text().strip() == str(tmp_path / "data")
    opener.write_text("#!/bin/sh\nexit 4\n")
    with pytest.raises(InvalidRequest, match="did not open"):
        asyncio.run(folders.open_data_folder())
