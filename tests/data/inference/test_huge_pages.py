"""Weights are copied into memory where there is room for them, and mapped elsewhere, with the same bits."""

import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from data.clock import SystemClock
from data.inference import huge_pages
from data.inference.huge_pages import ENVIRONMENT, worth_a_copy
from data.inference.llama_backend import LlamaBackend
from data.inference.options import EngineOptions
from data.inference.process import ENGINE
from domain.entities.models import InstalledModel

LINUX = sys.platform == "linux"


def free_memory(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=size))


def test_a_copy_takes_half_of_the_free_memory_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "weights.gguf"
    weights.write_bytes(bytes(1000))
    free_memory(monkeypatch, 2000)
    assert worth_a_copy(weights) == LINUX
    free_memory(monkeypatch, 1999)
    assert not worth_a_copy(weights)


@pytest.mark.parametrize(
    ("own", "limits", "copied"),
    [
        ("0::/", {"": "2000"}, True),
        ("0::/", {"": "1999"}, False),
        ("7:cpu:/x\n0::/app/engine", {"app": "1999", "app/engine": "max"}, False),
        ("0::/app/engine", {"app": "max", "app/engine": "5000"}, True),
        ("0::/app/engine", {"app/engine": "nonsense"}, True),
        ("0::/../app", {}, True),
        ("", {}, True),
    ],
)
def test_a_container_has_less_memory_than_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, limits: dict[str, str], copied: bool
) -> None:
    weights = tmp_path / "weights.gguf"
    weights.write_bytes(bytes(900))
    free_memory(monkeypatch, 1 << 40)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(huge_pages, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(huge_pages, "_OWN_GROUP", tmp_path / "own")
    for group, limit in limits.items():
        folder = tmp_path / "groups" / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text("200\n")
    assert worth_a_copy(weights) == (copied and LINUX)


def test_elsewhere_than_on_linux_nothing_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_pages, "sys", SimpleNamespace(platform="darwin"))
    assert not worth_a_copy(tmp_path)


def test_the_engine_process_asks_for_huge_pages() -> None:
    assert ENGINE.environment.items() >= ENVIRONMENT.items()


@pytest.mark.model
def test_the_logits_are_the_same_bits_from_a_copy_and_from_a_mapped_file(
    smollm2: InstalledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = smollm2.gguf_path
    assert path is not None
    options = EngineOptions(threads=2, context_tokens=512)
    seen = []
    for free in (0, 1 << 40):
        free_memory(monkeypatch, free)
        backend = LlamaBackend(path, options, SystemClock())
        mapped = LINUX and str(path.resolve()) in Path("/proc/self/maps").read_text()
        backend.evaluate(0, [504, 2365, 282, 4649, 314], 0, want_logits=True)
        seen.append((mapped, backend.logits().tobytes()))
        backend.close()
    (mapped, one), (copied_is_mapped, other) = seen
    assert one == other
    assert mapped == LINUX
    assert not copied_is_mapped
