"""What is only true of a scheduler in another process: it may go away, and so may its users."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest

from data.clock import SystemClock
from data.presence import ServerAddress
from data.remote_app import connection
from data.remote_app.scheduler import RemoteScheduler
from domain.entities.llm import LlmTaskKind, TextDelta
from domain.entities.scheduler import TraceRecord
from domain.errors import ServerLost
from tests.data.remote_app.served import SECRET, Desk, play, request, server

CHAT, NATARAJ, GANA = LlmTaskKind.CHAT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA


def test_a_server_that_ends_in_mid_answer_ends_it_with_what_to_do_and_the_part_stays(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        seen: list[str] = []

        async def read() -> None:
            async for event in desk.scheduler.submit(request(CHAT)).events():
                if isinstance(event, TextDelta):
                    seen.append(event.text)

        reader = asyncio.create_task(read())
        await desk.running(CHAT)
        await desk.runner.step(4)
        await desk.until(lambda: bool(seen))
        desk.stop.set()
        with pytest.raises(ServerLost, match="uniun serve"):
            await reader
        assert "".join(seen)
        with pytest.raises(ServerLost):
            await desk.scheduler.submit(request(CHAT)).result()
        with pytest.raises(ServerLost):
            await desk.scheduler.switch_model("Y")
        with pytest.raises(ServerLost):
            await asyncio.to_thread(desk.scheduler.snapshot)

    play("server", tmp_path, scene)


def test_the_server_that_takes_its_place_is_found(tmp_path: Path) -> None:
    async def main() -> None:
        old, new = Desk(stepped=False), Desk(stepped=False)
        async with old.dispatcher, new.dispatcher:
            async with server(old, tmp_path):
                assert old.address is not None
                remote = RemoteScheduler(old.address, lambda: new.address, old.store, SystemClock())
                await remote.submit(request(CHAT)).result()
            async with server(new, tmp_path), remote:
                with pytest.raises(ServerLost):
                    await remote.submit(request(CHAT)).result()
                assert (await remote.submit(request(CHAT)).result()).text
                assert new.runner.calls

    asyncio.run(main())


def test_a_process_that_dies_leaves_no_job_and_no_surface(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        assert desk.address is not None
        other = RemoteScheduler(desk.address, lambda: None, desk.store, SystemClock())
        desk.scheduler.set_foreground(NATARAJ, "deck")
        await desk.until(lambda: desk.dispatcher.snapshot().foreground == (NATARAJ, "deck"))
        other.set_foreground(GANA, "g")
        other.submit(request(GANA))
        await desk.until(lambda: desk.dispatcher.snapshot().foreground == (GANA, "g"))
        await desk.running(GANA)
        await other.__aexit__(None, None, None)
        await desk.until(lambda: desk.dispatcher.snapshot().foreground == (NATARAJ, "deck"))
        await desk.runner.step(1)
        await desk.until(lambda: desk.runner.running is None)

    play("server", tmp_path, scene)


def test_history_counters_and_the_trace_come_over(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        changes = desk.remote.watch()
        first = asyncio.ensure_future(anext(changes))
        job = desk.scheduler.submit(request(CHAT))
        await desk.running(CHAT)
        await desk.runner.step(7)
        await job.result()
        desk.dispatcher.set_foreground(CHAT, "f")
        assert isinstance(await first, TraceRecord)
        await changes.aclose()  # type: ignore[attr-defined]
        history = await asyncio.to_thread(desk.remote.recent)
        assert [run.kind for run in history.runs] == [CHAT]
        assert (await asyncio.to_thread(desk.remote.export))[:-1] == desk.history.export()[:-1]
        metrics = await asyncio.to_thread(desk.remote.metrics)
        assert [kind.submitted for kind in metrics.kinds if kind.kind is CHAT] == [1]

    play("server", tmp_path, scene)


def test_nobody_gets_in_without_the_secret_and_no_page_ever(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        assert desk.address is not None
        url = f"{desk.address.url}/internal/snapshot"
        async with httpx.AsyncClient(trust_env=False) as client:
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": f"Bearer {SECRET}", "Origin": desk.address.url},
                {
                    "Authorization": f"Bearer {SECRET}",
                    "Sec-Fetch-Site": "cross-site",
                    "Sec-Fetch-Mode": "navigate",
                },
            ):
                assert (await client.get(url, headers=headers)).status_code == 403
        wrong = ServerAddress(desk.address.url, 1, "wrong")
        async with RemoteScheduler(wrong, lambda: None, desk.store, SystemClock()) as remote:
            with pytest.raises(Exception, match="403"):
                await remote.submit(request(CHAT)).result()

    play("server", tmp_path, scene)


def test_a_server_that_says_nothing_is_named_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a stopped process does: the kernel takes the connection, and nobody reads."""
    monkeypatch.setattr(connection, "GREETING_S", 0.05)

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            address = ServerAddress(f"http://127.0.0.1:{port}", 4711, SECRET)
            remote = RemoteScheduler(address, lambda: address, Desk().store, SystemClock())
            with pytest.raises(
                ServerLost, match=rf":{port} \(process 4711\) does not answer.*kill -CONT 4711"
            ):
                async with remote:
                    raise AssertionError("it was let in")

    asyncio.run(main())
