"""Neither side of the pipe trusts the other: nonsense ends the engine process, never the application."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from data.clock import SystemClock
from data.inference import supervisor
from data.inference.process import ENGINE as REAL_ENGINE
from data.inference.supervisor import EngineRunner
from domain.entities.models import InstalledModel
from domain.errors import EngineLost
from domain.repositories.inference_runner import RunnerJob
from tests.data.inference.engines import GREEDY, Shelf, options

ENGINE = [sys.executable, "-m", "data.inference.start", str(os.getpid())]
LOADED = '{"id":1,"done":{"engine":"llama.cpp","context_tokens":9,"load_s":0,"memory_bytes":0}}'


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b"[]\n",
        b"{}\n",
        b'{"do":"fly","id":1}\n',
        b'{"do":"run","id":1}\n',
        b'{"do":"load","id":1,"model":"m","options":{"backend":7}}\n',
        b'{"do":"unload"',
        b"\xff\xfe\n",
        b'{"do":' + b"[" * 100_000 + b"\n",
    ],
)
def test_the_engine_ends_on_a_line_that_makes_no_sense(line: bytes) -> None:
    with subprocess.Popen(
        ENGINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        child.stdin.write(line)
        child.stdin.flush()
        if not line.endswith(b"\n"):
            child.stdin.close()
            child.stdin = None
        # With the pipe still open, so that it is the line that ends the process.
        assert child.wait(timeout=240) == 2
        said, complained = child.communicate()
    assert said == b""
    assert b"makes no sense" in complained


def test_the_engine_ends_quietly_when_its_parent_has_gone() -> None:
    done = subprocess.run(ENGINE, input=b"", capture_output=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_an_idle_engine_gives_a_sign_of_life() -> None:
    asked = b'{"do":"ping","id":3}\n{"do":"ping","id":4}\n'
    with subprocess.Popen(ENGINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(asked)
        child.stdin.flush()
        answers = [json.loads(child.stdout.readline()) for _ in range(2)]
        child.stdin.close()
    assert answers == [{"id": 3, "done": {}}, {"id": 4, "done": {}}]


def test_errors_come_back_as_lines(tmp_path: Path) -> None:
    load = {
        "do": "load",
        "id": 7,
        "model": "m",
        "backend": "llama.cpp",
        "path": str(tmp_path / "none.gguf"),
        "options": {},
    }
    job = RunnerJob(id="j", cache_key="j", prompt="Hi", max_tokens=1, sampling=GREEDY)
    run = {
        "do": "run",
        "id": 8,
        "job": job.model_dump(mode="json"),
        "produced": [],
        "batches": [],
        "since": "2026-01-01T12:00:00+00:00",
        "stop": False,
    }
    with subprocess.Popen(ENGINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for line in (load, run):
            child.stdin.write(json.dumps(line).encode() + b"\n")
        child.stdin.flush()
        answers = [json.loads(child.stdout.readline()) for _ in range(2)]
        child.stdin.close()
    assert [(answer["id"], answer["error"]["kind"]) for answer in answers] == [
        (7, "ModelLoadFailed"),
        (8, "EngineError"),
    ]
    assert "none.gguf" in answers[0]["error"]["message"]


def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *answers: str, last: str = "") -> str:
    """A child that gives these lines to whatever it is asked and then ends; what the runner raises."""
    script = (
        f"import sys\nfor answer in {answers!r}:\n sys.stdin.readline()\n print(answer, flush=True)\n{last}"
    )
    monkeypatch.setattr(supervisor, "ENGINE", replace(REAL_ENGINE, arguments=("-c", script)))
    model = InstalledModel(name="one", source="test", size_bytes=1, gguf_path=tmp_path / "x.gguf")
    runner = EngineRunner(Shelf(model), options("llama.cpp"), SystemClock())

    job = RunnerJob(id="j", cache_key="j", prompt="Hi", max_tokens=4, sampling=GREEDY)

    async def use() -> str:
        try:
            await runner.load("one")
            await runner.run(job, lambda progress: None)
        except EngineLost as lost:
            assert runner.pid is None
            return str(lost)
        finally:
            await runner.aclose()
        raise AssertionError("nothing was lost")

    return asyncio.run(use())


@pytest.mark.parametrize(
    "answers",
    [
        ["Segfault soon"],
        ["[1, 2]"],
        ['{"id":99,"done":{}}'],
        ['{"id":1,"done":7}'],
        ['{"id":1,"done":{"engine":"llama.cpp"}}'],
        ['{"id":1,"error":{"kind":"X"}}'],
        [LOADED, '{"id":2,"at":[1,2]}'],
        [LOADED, '{"id":2,"at":[1,1,1,"one","text"]}'],
        [LOADED, '{"id":2,"at":[1,1,7,7,"text"]}'],
        [LOADED, '{"id":2,"at":[1,1,0,null,""],"batches":[[0,1]]}'],
        [LOADED, '{"id":2,"at":[1,1,0,null,""],"batches":[7]}'],
        [LOADED, '{"id":2,"done":{"status":"finished"}}'],
        [LOADED, '{"id":2,"at":[1,1,7,null,"text"],"done":{}}'],
        [LOADED, "\x00\x01"],
        [LOADED, "[" * 20_000],
    ],
)
def test_the_runner_drops_an_engine_that_speaks_nonsense(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: list[str]
) -> None:
    assert "makes no sense" in play(monkeypatch, tmp_path, *answers)


def test_the_cause_of_death_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = play(monkeypatch, tmp_path, LOADED, last="print('out of paper', file=sys.stderr)\nsys.exit(3)")
    assert "exit code 3" in said
    assert "out of paper" in said


def test_much_said_on_stderr_neither_blocks_nor_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = play(monkeypatch, tmp_path, LOADED, last="sys.stderr.write('x' * 5_000_000)\nsys.exit(4)")
    assert "exit code 4" in said
    assert len(said) < 2000
