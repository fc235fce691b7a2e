"""The composition root, and the real program as a process."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from dependency_injector import providers

from data.models.store import FileModelStore
from data.settings import Settings, load_settings
from domain.errors import InvalidRequest
from tests.memory.embedder import WordEmbedder
from uniun import build_container

TEST_STORE = Path(__file__).resolve().parents[1] / "build" / "test-store"
LIMIT_S = 240
"""For a machine that does much else at the same time."""
HEAVY = (
    *(
        "asyncio.base_events",
        "apscheduler",
        "cyllama",
        "data.inference",
        "data.models",
        "dependency_injector",
    ),
    *(
        "httpx",
        "huggingface_hub",
        "llguidance",
        "mlx",
        "mlx_lm",
        "numpy",
        "prompt_toolkit",
        "psutil",
        "pydantic",
    ),
    *("pydantic_settings", "safetensors", "sqlmodel", "tokenizers", "transformers"),
)
TYPER_USES = ("pydantic",)
SIMULATE_MAY = ("asyncio.base_events", "pydantic")


def uniun(
    *arguments: str, home: Path, text: str | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "uniun", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "UNIUN_DATA_DIR": str(home / "data"), "UNIUN_LOG_DIR": str(home / "logs"), **env},
    )


def test_every_provider_builds(tmp_path: Path) -> None:
    container = build_container(Settings(data_dir=tmp_path / "data", log_dir=tmp_path / "logs"))
    assert len(container.providers) > 10
    for name, provider in container.providers.items():
        assert provider() is not None, name
    assert container.dispatcher() is container.dispatcher()
    assert container.chat_controller() is not container.chat_controller()


def test_vectors_that_somebody_waits_for_are_made_at_normal_priority(tmp_path: Path) -> None:
    """By the embedder that searches use. The backlog's process takes what cores nobody else wants."""

    async def scenario() -> None:
        container = build_container(Settings(data_dir=tmp_path / "data", log_dir=tmp_path / "logs"))
        words = WordEmbedder()
        container.embedder.override(providers.Object(words))
        async with container.database():
            notes = container.notes_controller()
            await notes.add("about the sea", title="Sea")
            assert await notes.embed() == 1
        assert words.asked == ["Sea\nabout the sea"]

    asyncio.run(scenario())


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNIUN_DATA_DIR", "~/notes")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UNIUN_ENGINE__BACKEND", "mlx")
    monkeypatch.setenv("UNIUN_SCHEDULER__FAIR_SLICE_S", "5")
    monkeypatch.delenv("UNIUN_LOG_DIR", raising=False)
    settings = load_settings()
    assert settings.data_dir == tmp_path / "notes"
    assert settings.log_dir == tmp_path / "notes" / "log"
    assert settings.engine.backend == "mlx"
    assert settings.scheduler.fair_slice_s == 5
    monkeypatch.setenv("UNIUN_LOG_DIR", "~/elsewhere")
    assert load_settings().log_dir == tmp_path / "elsewhere"
    monkeypatch.delenv("UNIUN_LOG_DIR")
    monkeypatch.delenv("UNIUN_DATA_DIR")
    assert load_settings().data_dir not in load_settings().log_dir.parents


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("UNIUN_ENGINE__BACKEND", "magic"),
        ("UNIUN_ENGINE__THREADS", "-1"),
        ("UNIUN_SCHEDULER__NO_SUCH_THING", "1"),
        ("UNIUN_SCHEDULER__EXTRACT_SHARE", "0.1"),
        ("UNIUN_ENGINE", "{"),
        ("UNIUN_ENGINE", "5"),
        ("UNIUN_ENGINE__THREADS", "x"),
        ("UNIUN_DATA_DIR", "~nobody-of-this-name/x"),
        ("UNIUN_LOG_DIR", "~nobody-of-this-name/x"),
    ],
)
def test_a_wrong_setting_is_named(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidRequest) as refused:
        load_settings()
    message = str(refused.value)
    assert not re.search(
        r"Input should|Value error|EnvSettings|valid dictionary|instance of|Extra inputs", message
    )
    assert "UNIUN_" in message
    assert variable.split("__")[0].removeprefix("UNIUN_").lower() in message.lower()
    assert "\n" not in message


def imported(home: Path, *arguments: str) -> set[str]:
    """Modules that a command has loaded when it ends."""
    code = (
        "import sys, json, uniun; sys.argv = ['uniun', *sys.argv[1:]]\n"
        "try: uniun.main()\n"
        "except SystemExit: pass\n"
        "print(json.dumps(list(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=home,
        check=True,
        env={**os.environ, "UNIUN_DATA_DIR": str(home / "data")},
    )
    return set(json.loads(ran.stdout.splitlines()[-1]))


def heavy(modules: set[str], allowed: tuple[str, ...] = ()) -> list[str]:
    return [name for name in HEAVY if name in modules and name not in allowed]


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    assert heavy(imported(tmp_path, "--help")) == []
    assert heavy(imported(tmp_path, "chat", "--help"), TYPER_USES) == []


def test_simulate_imports_no_engine(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"models": {"X": {"load_s": 1}}, "events": []}))
    assert heavy(imported(tmp_path, "simulate", str(scenario)), SIMULATE_MAY) == []


def test_small_commands_import_what_they_use(tmp_path: Path) -> None:
    """No numerics, no engine, no calendar for a list of notes; no database for one of models."""
    never = {
        "alembic",
        "apscheduler",
        "numpy",
        "tokenizers",
        "data.scheduling.dispatcher",
        "data.demo.play",
    }
    assert uniun("notes", "list", home=tmp_path).returncode == 0  # the first one makes the tables
    listed = imported(tmp_path, "notes", "list")
    assert "sqlmodel" in listed
    assert listed & (never | {"httpx", "data.inference.supervisor", "rich.progress", "watchfiles"}) == set()
    assert imported(tmp_path, "models", "list") & (never | {"sqlalchemy"}) == set()


SCENARIO = """
models:
  X: {load_s: 10, prefill_tps: 500, decode_tps: 20}
loaded: X
events:
  - {at: 0, submit: {id: n1, kind: nataraj, flow: deck, model: X, prompt_tokens: 200, output_tokens: 400}}
  - {at: 5, submit: {id: c1, kind: chat, flow: conv, model: X, prompt_tokens: 50, output_tokens: 40}}
"""


def test_simulate(tmp_path: Path) -> None:
    ran = uniun("simulate", "-", "--json", home=tmp_path, text=SCENARIO)
    assert ran.returncode == 0, ran.stderr
    trace = [json.loads(line) for line in ran.stdout.splitlines()]
    assert trace[-1]["event"] == "summary"
    assert trace[-1]["preemptions"] == 1
    for option in ([], ["--gantt"]):
        shown = uniun("simulate", "-", *option, home=tmp_path, text=SCENARIO, COLUMNS="200")
        assert shown.returncode == 0
        assert "chat" in shown.stdout


@pytest.mark.parametrize("text", ["", "events: [", "events: 5", "[]", "events:\n  - {at: -1, cancel: x}\n"])
def test_a_malformed_scenario_is_2_with_file_line_and_reason(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    ran = uniun("simulate", str(path), home=tmp_path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "bad.yaml" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_errors_of_the_real_program(tmp_path: Path) -> None:
    absent = uniun("ask", "hello", "--model", "nonsense", home=tmp_path)
    assert (absent.returncode, absent.stdout) == (2, "")
    assert "nonsense" in absent.stderr
    wrong = uniun("models", "list", home=tmp_path, UNIUN_ENGINE__BACKEND="magic")
    assert wrong.returncode == 2
    assert "UNIUN_ENGINE__BACKEND" in wrong.stderr


def test_a_wrong_folder_is_one_sentence_and_2(tmp_path: Path) -> None:
    wrong = uniun("models", "list", home=tmp_path, UNIUN_DATA_DIR="~nobody-of-this-name/x")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("uniun: The environment variable UNIUN_DATA_DIR is wrong")
    assert wrong.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["typer", "rich", "yaml"])
def test_a_package_that_is_not_there_is_named(module: str, tmp_path: Path) -> None:
    program = f"import sys; sys.modules[{module!r}] = None; import uniun; uniun.main()"
    ran = subprocess.run(
        [sys.executable, "-c", program, "notes", "search", "x"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "UNIUN_DATA_DIR": str(tmp_path)},
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("uniun: The Python package ")
    assert "pip install" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_disaster_and_notices_stay_off_stdout(closed: str, tmp_path: Path) -> None:
    for command, status in (("ask hi -m nonsense", 2), ("ask", 2), ("ask --no-such", 2), ("--version", 0)):
        ran = subprocess.run(
            ["sh", "-c", f'exec "{sys.executable}" -m uniun {command} {closed}'],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, "UNIUN_DATA_DIR": str(tmp_path)},
        )
        assert ran.returncode == status, (command, ran)
        assert "Traceback" not in ran.stderr
        assert "uniun: " not in ran.stdout


INTERRUPTED_IMPORT = """
import builtins, os, signal
load = builtins.__import__
def interrupted(name, *rest):
    if name == "presentation.cli.app":
        os.kill(os.getpid(), signal.SIGINT)
    return load(name, *rest)
builtins.__import__ = interrupted
import uniun
uniun.main()
"""
INTERRUPTED_EXIT = """
import atexit, os, signal, sys, uniun
sys.argv = ["uniun", "--version"]
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
uniun.main()
"""


@pytest.mark.parametrize("code", [INTERRUPTED_IMPORT, INTERRUPTED_EXIT])
def test_ctrl_c_in_the_first_and_last_moment_is_1_without_a_traceback(code: str) -> None:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert (ran.returncode, ran.stderr) == (1, "uniun: stopped.\n")


INTERRUPTED_BEFORE_MAIN = """
import os, sys
import presentation.cli.first
moment = 0
while True:
    moment += 1
    said, stderr = os.pipe()
    if os.fork() == 0:
        os.dup2(stderr, 2)
        left = moment
        def interrupt(event, arguments):
            global left
            if event == "import" and arguments[0] not in ("uniun", "__future__"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), 2)
        sys.addaudithook(interrupt)
        import uniun
        os._exit(0)
    os.close(stderr)
    words = open(said, "rb").read()
    code = os.waitstatus_to_exitcode(os.wait()[1])
    if code == 0:
        break
    assert (code, words) == (1, b"uniun: stopped.\\n"), (moment, code, words)
print(moment - 1)
"""


def test_ctrl_c_at_any_import_before_main_is_1_without_a_traceback() -> None:
    """In a fork of an interpreter that has loaded nothing else, so that each import is seen."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_BEFORE_MAIN], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) > 10


def test_importing_the_program_leaves_ctrl_c_as_it_was() -> None:
    code = "import signal, uniun; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT_S)


def test_a_reader_that_leaves_is_no_disaster(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "uniun", "simulate", "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    program.stdout.close()
    program.stdout = None
    _, err = program.communicate(SCENARIO, timeout=LIMIT_S)
    assert err == ""
    assert program.returncode == 1


@pytest.mark.model
def test_a_real_answer_comes_through_the_real_program(model_store: FileModelStore, tmp_path: Path) -> None:
    data = {"UNIUN_DATA_DIR": str(TEST_STORE), "UNIUN_DATABASE_URL": f"sqlite:///{tmp_path}/uniun.db"}
    question = "What is the capital of France? One word."
    asked = uniun("ask", question, home=tmp_path, **data)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.strip()
    talked = uniun("chat", home=tmp_path, text=f"{question}\n", **data)
    assert talked.returncode == 0, talked.stderr
    assert talked.stdout == asked.stdout
    too_long = uniun("ask", "-", home=tmp_path, text="word " * 20_000, **data)
    assert too_long.returncode == 2
    assert "8192" in too_long.stderr


@pytest.mark.model
def test_a_killed_chat_keeps_the_question_and_what_was_answered(
    model_store: FileModelStore, tmp_path: Path
) -> None:
    data = {"UNIUN_DATA_DIR": str(TEST_STORE), "UNIUN_DATABASE_URL": f"sqlite:///{tmp_path}/uniun.db"}
    program = subprocess.Popen(
        [sys.executable, "-m", "uniun", "chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **data},
    )
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(b"Count to one thousand.\n")
    program.stdin.close()
    seen = program.stdout.read(40).decode()
    program.kill()
    program.wait(LIMIT_S)
    program.stdout.close()
    shown = uniun("chat", "--last", home=tmp_path, text="/show\n", **data)
    assert shown.returncode == 0, shown.stderr
    title, question, answer = shown.stdout.splitlines()
    assert (title, question) == ("Count to one thousand.", "  1 you: Count to one thousand.")
    assert answer.startswith("  2 smollm2-135m (stopped): ")
    kept = answer.split(": ", 1)[1]
    assert " ".join(seen.split()).startswith(kept[:20])


@pytest.mark.model
def test_ctrl_c_ends_a_real_answer_and_its_engine(model_store: FileModelStore, tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "uniun", "ask", "Count to one thousand.", "--max-tokens", "5000"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "UNIUN_DATA_DIR": str(TEST_STORE)},
    )
    assert program.stdout is not None
    assert program.stdout.read(1)
    engines = psutil.Process(program.pid).children()
    assert engines
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=LIMIT_S)
    assert (program.returncode, err) == (1, b"uniun: stopped.\n")
    assert psutil.wait_procs(engines, timeout=120)[1] == []
