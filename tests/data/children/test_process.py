"""A child that the system is slow to take away."""

import asyncio
import dataclasses
import errno
import os
from types import SimpleNamespace

import pytest

from data.children import process
from data.children.process import Child, ChildProcess
from domain.errors import EngineLost

ECHO = Child(
    ("-c", "import sys; print(sys.stdin.readline(), end='', flush=True)"),
    "echo",
    EngineLost,
    "Start it again.",
)
SLEEPER = Child(("-c", "import sys; sys.stdin.read()"), "sleeping", EngineLost, "Start it again.")


def test_a_child_that_was_not_reaped_in_time_can_be_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        child = await ChildProcess.start(SLEEPER)
        with monkeypatch.context() as patch:
            patch.setattr(process, "_REAP_S", 0.0)
            await child.close()
        await asyncio.gather(child._listening, return_exceptions=True)
        assert child._listening.cancelled()
        await child.close()
        assert not child.alive

    asyncio.run(main())


def test_the_loss_of_a_child_is_told_though_it_was_not_reaped_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        child = await ChildProcess.start(SLEEPER)
        with monkeypatch.context() as patch:
            patch.setattr(process, "_REAP_S", 0.0)
            await child.close()
            for _ in range(2):
                with pytest.raises(EngineLost, match="while it was asked"):
                    await child.receive(0.0, "it was asked")
        await child.close()

    asyncio.run(main())


NO_THREADS = (
    "RuntimeError: can't start new thread",
    "libgomp: Thread creation failed: Resource temporarily unavailable",
    "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 2: Resource temporarily unavailable\nKeyboardInterrupt",
)


@pytest.mark.parametrize("words", NO_THREADS)
def test_a_child_that_gets_no_threads_says_which_limit_it_met(words: str) -> None:
    async def main() -> None:
        dying = ("-c", f"import sys; sys.stderr.write({words!r}); sys.exit(1)")
        child = await ChildProcess.start(dataclasses.replace(ECHO, arguments=dying))
        try:
            with pytest.raises(EngineLost, match=r"exit code 1.*ulimit -u.*Start it again") as lost:
                await child.receive(120.0, "it was asked")
            assert words.splitlines()[-1] not in str(lost.value)
        finally:
            await child.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "error", [BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), RuntimeError(NO_THREADS[0])]
)
def test_a_child_that_cannot_be_started_says_which_limit_it_met(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    with pytest.raises(EngineLost, match=r"echo process could not be started: .*ulimit -u"):
        asyncio.run(ChildProcess.start(ECHO))


class Looks:
    """What is seen of a silent child: so much more CPU at each look. At the last of them it is told to answer."""

    def __init__(self, cpu_s: float, answers_at: int = 0) -> None:
        self.cpu_s = cpu_s
        self.answers_at = answers_at
        self.count = 0

    def at(self, child: ChildProcess) -> tuple[object, ...]:
        self.count += 1
        if self.count == self.answers_at:
            child.send({"said": "at last"})
        return (SimpleNamespace(user=self.count * self.cpu_s, system=0.0), (), "running")


def silent(looks: Looks, limit_s: float, monkeypatch: pytest.MonkeyPatch) -> object:
    async def main() -> object:
        child = await ChildProcess.start(ECHO)
        monkeypatch.setattr(ChildProcess, "_vital_signs", lambda child: looks.at(child))
        try:
            return await child.receive(limit_s, "it was asked")
        finally:
            await child.close()

    return asyncio.run(main())


def test_a_child_that_gets_little_cpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(cpu_s=1e-6, answers_at=15)
    monkeypatch.setattr(process, "_PATIENCE", 1_000)
    assert silent(looks, 0.4, monkeypatch) == {"said": "at last"}


@pytest.mark.parametrize(("cpu_s", "looks_at_it"), [(0.0, 4), (10.0, 4), (0.001, 24)])
def test_a_child_that_uses_no_cpu_or_enough_of_it_is_hung_and_patience_ends(
    cpu_s: float, looks_at_it: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(cpu_s)
    with pytest.raises(EngineLost, match=f"no sign of life for {0.2 * looks_at_it / 4:g} s"):
        silent(looks, 0.2, monkeypatch)
    assert looks.count == looks_at_it


def test_nothing_of_a_closed_child_is_left_to_the_end_of_the_event_loop() -> None:
    """The transport would be closed by the garbage collector, which prints a traceback."""

    async def main() -> None:
        chatty = ("-c", "import sys; print('x' * 50_000, flush=True); sys.stdin.read()")
        for _ in range(5):
            child = await ChildProcess.start(dataclasses.replace(SLEEPER, arguments=chatty))
            assert child._process.stdout is not None
            await child._process.stdout.read(1)
            await child.close()
            assert child._process.stdout.at_eof()
            assert child._process._transport.is_closing()  # type: ignore[attr-defined]

    asyncio.run(main())
