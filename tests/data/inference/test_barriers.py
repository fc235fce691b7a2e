"""Short spins beside other programs, long ones on a machine of one's own."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from data.clock import SystemClock
from data.inference.barriers import Barriers, barriers, waits
from data.inference.llama_backend import LlamaBackend
from data.inference.options import EngineOptions
from domain.entities.models import InstalledModel
from tests.memory.clock import HandClock


class Machine:
    """Threads that wait for a core during a share of the time."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.waited_s = 0.0
        self.teams = 0
        self.barriers = Barriers(lambda: self.waited_s, self.sleepers, self.clock)

    def sleepers(self) -> Callable[[], None]:
        self.teams += 1

        def wake() -> None:
            self.teams -= 1

        return wake

    def evaluate(self, share: float, *, each_s: float = 0.01, times: int = 100) -> None:
        for _ in range(times):
            self.barriers.look()
            self.clock.run(each_s)
            self.waited_s += share * each_s


def test_spins_are_short_until_the_cores_are_seen_to_be_free() -> None:
    machine = Machine()
    assert machine.barriers.short
    machine.evaluate(0.01, times=10)
    assert machine.barriers.short
    machine.evaluate(0.01)
    assert not machine.barriers.short
    assert machine.teams == 0


@pytest.mark.parametrize("each_s", [0.01, 0.4, 3.0])
def test_another_program_shortens_them_and_its_end_lengthens_them(each_s: float) -> None:
    machine = Machine()
    for _ in range(3):
        machine.evaluate(0.01, each_s=each_s)
        assert not machine.barriers.short
        machine.evaluate(0.5, each_s=each_s)
        assert machine.barriers.short
        assert machine.teams == 1


def test_they_do_not_change_to_and_fro_where_either_is_as_good() -> None:
    machine = Machine()
    machine.evaluate(0.35)
    assert machine.barriers.short
    machine.evaluate(0.01)
    machine.evaluate(0.35)
    assert not machine.barriers.short


def test_beside_small_work_of_others_they_become_and_stay_long() -> None:
    """As while notes are saved: long spins are a tenth faster then, and what waits is still no more than a quarter."""
    machine = Machine()
    for _ in range(2):
        machine.evaluate(0.25)
        assert not machine.barriers.short


def test_a_pause_says_nothing_of_the_time_after_it() -> None:
    machine = Machine()
    machine.evaluate(0.5)
    for _ in range(20):  # single evaluations, hours apart
        machine.clock.run(3600)
        machine.evaluate(0.5, times=1)
        assert machine.barriers.short


def test_spins_stay_short_where_the_system_does_not_count_what_threads_wait(tmp_path: Path) -> None:
    task = tmp_path / "1"
    task.mkdir()
    clock = HandClock()
    for written in (None, "", "1 none 3"):
        if written is not None:
            (task / "schedstat").write_text(written)
        machine = Barriers(waits(tmp_path, clock), lambda: lambda: None, clock)
        for _ in range(1_000):
            machine.look()
            clock.run(0.01)
        assert machine.short
    (task / "schedstat").write_text("5000000000 2500000000 9\n")
    assert waits(tmp_path, clock)() == 2.5


def test_a_closed_one_leaves_no_team() -> None:
    machine = Machine()
    machine.barriers.close()
    machine.barriers.close()
    assert machine.teams == 0


@pytest.mark.model
def test_the_real_team_is_more_threads_than_cores_and_ends(smollm2: InstalledModel) -> None:
    """Where OpenMP is not libgomp, there is nothing to steer."""
    assert smollm2.gguf_path is not None
    LlamaBackend(smollm2.gguf_path, EngineOptions(threads=1), SystemClock()).close()
    before = psutil.Process().num_threads()
    made = barriers(SystemClock())
    assert (made is not None) == (sys.platform == "linux")
    if made is not None:
        assert psutil.Process().num_threads() - before > (psutil.cpu_count() or 1)
        made.look()
        made.close()
        assert "sleepers" not in {thread.name for thread in threading.enumerate()}
