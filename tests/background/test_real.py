"""The real program with the real model: `uniun background run` writes one note, and ends when it is told."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from data.models.store import FileModelStore
from tests.background.desk import Desk

TEST_STORE = Path(__file__).resolve().parents[2] / "build" / "test-store"
PATIENCE_S = 240


def start(data_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "uniun", "background", "run"],
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "UNIUN_DATA_DIR": str(data_dir),
            "UNIUN_LOG_DIR": str(data_dir / "logs"),
            "UNIUN_BACKGROUND_INTERVAL_S": "0.5",
        },
    )


@pytest.mark.model
def test_the_background_process_publishes_once_and_leaves_no_engine(
    model_store: FileModelStore, tmp_path: Path
) -> None:
    (tmp_path / "models").symlink_to(TEST_STORE / "models")

    async def scenario() -> None:
        async with Desk(tmp_path) as desk:
            await desk.gana("g", input_tag="inbox", task="Say in one sentence what is new.")
            await desk.note("The mill reopened on Monday; flour is cheaper.", "inbox", title="Mill")
            program = start(tmp_path)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while not [run for run in await desk.runs() if run.status != "running"]:  # noqa: ASYNC110
                        await asyncio.sleep(0.2)
                children = psutil.Process(program.pid).children(recursive=True)
                program.send_signal(signal.SIGTERM)
                _, told = program.communicate(timeout=PATIENCE_S)
            finally:
                program.kill()
            assert program.returncode == 0, told
            assert psutil.wait_procs(children, timeout=120)[1] == []
            (run,) = await desk.runs()
            assert (run.status, run.by) in (("succeeded", "background"), ("skipped", "background")), told
            assert await desk.published() == (run.status == "succeeded")
            assert run.tokens > 0

    asyncio.run(scenario())
