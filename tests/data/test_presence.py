"""Locks of real processes. What is here holds within one process too, since each opening of the file is its own."""

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from data.presence import Presence
from domain.errors import InvalidRequest, ServerRuns, UniunError

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import asyncio, sys
from pathlib import Path
from data.presence import Presence
async def hold():
    async with Presence(Path(sys.argv[1])).app():
        child = await asyncio.create_subprocess_exec("sleep", "600", stdout=asyncio.subprocess.DEVNULL)
        sys.stdout.write(f"{child.pid}\\n"); sys.stdout.flush()
        await asyncio.Event().wait()
asyncio.run(hold())
"""


def test_nobody_is_open_where_nobody_ever_was(tmp_path: Path) -> None:
    presence = Presence(tmp_path / "absent")
    assert not presence.app_is_open()
    assert presence.background_pid() is None
    assert not (tmp_path / "absent").exists()


def test_a_full_disk_is_told_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def announce() -> None:
        async with Presence(tmp_path).server() as seat:
            seat.announce("http://127.0.0.1:1")

    async def run() -> None:
        async with Presence(tmp_path).background():
            raise AssertionError("it entered")

    monkeypatch.setattr("data.presence.os.pwrite", full)
    for deed in (announce, run):
        with pytest.raises(UniunError) as told:
            asyncio.run(deed())
        assert str(told.value) == (
            f"The data folder {tmp_path} cannot be written: No space left on device. Free some disk space, and start again."
        )


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    presence = Presence(tmp_path / "data")

    async def scenario() -> None:
        for enter in (presence.app, presence.server, presence.background, presence.nobody, presence.turn):
            with pytest.raises(InvalidRequest, match=r"data folder .* cannot be written.*See: uniun doctor"):
                async with enter():
                    pass

    asyncio.run(scenario())
    (tmp_path / "locks" / "server.lock").mkdir(
        parents=True
    )  # cannot be opened, as on a disk for reading only
    assert Presence(tmp_path / "locks").server_address() is None


def test_several_apps_may_be_open_and_the_last_one_closes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Presence(tmp_path).app():
            async with Presence(tmp_path).app():
                assert Presence(tmp_path).app_is_open()
            assert Presence(tmp_path).app_is_open()
        assert not Presence(tmp_path).app_is_open()

    asyncio.run(scenario())


def test_asking_disturbs_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        presence = Presence(tmp_path)

        async def ask() -> None:
            for _ in range(200):
                presence.app_is_open()
                presence.background_pid()
                await asyncio.sleep(0)

        async def come_and_go() -> None:
            for _ in range(20):
                async with presence.app(), presence.background():
                    assert presence.app_is_open()
                    await asyncio.sleep(0)

        await asyncio.gather(ask(), come_and_go(), ask())

    asyncio.run(scenario())


def test_a_second_background_process_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Presence(tmp_path).background():
            with pytest.raises(InvalidRequest, match="runs already"):
                async with Presence(tmp_path).background():
                    pass

    asyncio.run(scenario())


def test_a_killed_app_is_closed_although_its_child_lives_on(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert program.stdout is not None
    child = int(program.stdout.readline())
    try:
        assert Presence(tmp_path).app_is_open()
        program.kill()
        program.wait(60)
        assert not Presence(tmp_path).app_is_open()
    finally:
        subprocess.run(["kill", str(child)], check=False)
        program.stdout.close()


def test_an_app_knows_whether_another_one_is_open_on_its_database(tmp_path: Path) -> None:
    async def scenario() -> None:
        elsewhere = Presence(tmp_path, "postgresql://elsewhere/x")
        async with (
            Presence(tmp_path).app() as first,
            Presence(tmp_path).app() as second,
            elsewhere.app() as third,
        ):
            assert (first, second, third) == (True, False, True)
        async with Presence(tmp_path).app() as again:
            assert again

    asyncio.run(scenario())


def test_one_app_at_a_time_has_the_turn_and_the_next_one_gets_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = Presence(tmp_path).turn()
        await first.__aenter__()
        got = asyncio.Event()

        async def wait() -> None:
            async with Presence(tmp_path).turn():
                got.set()

        waiting = asyncio.create_task(wait())
        async with Presence(tmp_path, "postgresql://elsewhere/x").turn():
            assert not got.is_set()
        await first.__aexit__(None, None, None)
        await asyncio.wait_for(waiting, 10)
        assert got.is_set()

    asyncio.run(scenario())


def test_a_server_is_found_once_it_is_announced_and_until_it_withdraws(tmp_path: Path) -> None:
    async def scenario() -> None:
        assert await Presence(tmp_path).find_server() is None
        assert not (tmp_path / "server.lock").exists()
        async with Presence(tmp_path).server() as seat:
            assert Presence(tmp_path).server_address() is None
            finding = asyncio.create_task(Presence(tmp_path).find_server())
            await asyncio.sleep(0)
            seat.announce("http://127.0.0.1:1")
            found = await finding
            assert found is not None
            assert (found.url, found.secret) == ("http://127.0.0.1:1", seat.secret)
            with pytest.raises(ServerRuns) as runs:
                async with Presence(tmp_path).server():
                    pass
            assert runs.value.url == "http://127.0.0.1:1"
            seat.withdraw()
            assert Presence(tmp_path).server_address() is None
        assert await Presence(tmp_path).find_server() is None

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text",
    [
        "xx}",
        "[]}",
        "{}",
        '{"url":5}',
        '{"url":5,"pid":"a","secret":null}',
        '{"url":"http://127.0.0.1:1","pid":1,"secret":"x","new":1}',
    ],
)
def test_what_another_version_wrote_into_the_seat_is_one_sentence(tmp_path: Path, text: str) -> None:
    async def scenario() -> None:
        async with Presence(tmp_path).server():
            (tmp_path / "server.lock").write_text(text)
            with pytest.raises(InvalidRequest, match="of another version"):
                await Presence(tmp_path).find_server()

    asyncio.run(scenario())
