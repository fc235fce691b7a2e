import asyncio

import pytest

from data.models.child import run_module

WAIT_S = 120.0


def test_lines_arrive_and_the_exit_code_too() -> None:
    lines: list[str] = []

    result = asyncio.run(run_module("json.tool", "--no-such-option", on_line=lines.append))

    assert result.code == 2
    assert "no-such-option" in result.tail
    assert any("no-such-option" in line for line in lines)


def test_a_module_that_does_not_exist_fails() -> None:
    result = asyncio.run(run_module("no_such_module_anywhere"))

    assert result.code != 0
    assert "no_such_module_anywhere" in result.tail


def test_cancelling_kills_a_child_that_would_run_for_ever() -> None:
    async def scenario() -> None:
        started = asyncio.Event()
        # http.server says that it serves, and then serves until it is killed.
        running = asyncio.create_task(
            run_module(
                "http.server",
                "--bind=127.0.0.1",
                "0",
                on_line=lambda line: started.set(),
                env={"PYTHONUNBUFFERED": "1"},
            )
        )
        await asyncio.wait_for(started.wait(), WAIT_S)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, WAIT_S)

    asyncio.run(scenario())


def test_a_listener_that_raises_kills_the_child() -> None:
    def refuse(line: str) -> None:
        raise LookupError(line)

    with pytest.raises(LookupError, match="Serving"):
        asyncio.run(
            run_module("http.server", "--bind=127.0.0.1", "0", on_line=refuse, env={"PYTHONUNBUFFERED": "1"})
        )
