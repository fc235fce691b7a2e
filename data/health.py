"""Looking at the machine and the installation, for `doctor` and `ps`."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import psutil

from data.clock import Clock
from data.inference.supervisor import EngineRunner, mlx_is_accelerated
from data.loops import LoopLog
from data.models.store import FileModelStore
from data.presence import Presence
from data.server_health import examine_server
from domain.counting import counted
from domain.entities.health import EngineProcess, Finding
from domain.entities.models import Memory, RemoteModel, ServerState
from domain.errors import EngineError, ModelError, ModelLoadFailed, UniunError, UnknownModel
from domain.repositories.model_servers import ModelServers

if TYPE_CHECKING:
    from data.database.session import Database

_ENGINES = {"llama.cpp": ("cyllama", "cyllama.llama.llama_cpp"), "mlx": ("mlx-lm", "mlx.core, mlx_lm")}
"""Engine to its package and to what must be importable."""
_IMPORT_LIMIT_S = 60.0
_ENGINE_MODULE = "data.inference.start"
_FREE_BYTES = 2_000_000_000
"""Less free disk than this is worth a warning: a small model and its conversion need about half of it."""
_COMMAND_CHARS = 60
_RECENT = timedelta(days=1)
_LOG_TAIL_BYTES = 64_000
_UNFORESEEN = b": an error in the code\n"
"""How the server's log begins the entry of an error that nobody foresaw."""
_ADOPTERS = ("init", "systemd", "launchd", "tini", "dumb-init", "docker-init")
"""What takes over processes whose parent has ended."""


class MachineHealth:
    """Implements `Health`."""

    def __init__(
        self,
        store: FileModelStore,
        runner: EngineRunner,
        folders: Mapping[str, Path],
        loops: LoopLog,
        clock: Clock,
        servers: ModelServers | None = None,
        presence: Presence | None = None,
        database: Callable[[], Database] | None = None,
        reading_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """The database is made, with all that it imports, when it is looked at: `models list` does not."""
        self._database = database
        self._reading_wanted = reading_wanted
        self._presence = presence
        self._servers = servers
        self._store = store
        self._runner = runner
        self._folders = folders
        self._loops = loops
        self._clock = clock

    async def findings(self) -> AsyncIterator[Finding]:
        yield _python()
        works = {}
        for engine in _ENGINES:
            finding = await _engine(engine)
            works[engine] = finding.state == "ok"
            yield finding
        yield self._chosen(works)
        yield await self._model()
        async for finding in self._remote_models():
            yield finding
        yield self._memory()
        for name, path in self._folders.items():
            yield _folder(name, path)
        if self._database is not None:
            from data.database_health import examine_database
            from data.reading_health import examine_reading

            database = self._database()
            yield await examine_database(database)
            if (reading := await examine_reading(database, self._reading_wanted)) is not None:
                yield reading
        if self._presence is not None:
            yield await examine_server(self._presence)
        yield self._background_work()
        if "log" in self._folders:
            yield self._server_log(self._folders["log"] / "server.log")

    def engine_processes(self) -> tuple[EngineProcess, ...]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.uids().real != os.getuid() or _ENGINE_MODULE not in process.cmdline():
                    continue
                parent = process.parent()
                served = parent.cmdline() if parent else []
                adopted = parent and (parent.pid == 1 or parent.name() in _ADOPTERS)
                if adopted and not any("uniun" in word for word in served):
                    served = []  # its own parent is gone
                found.append(
                    EngineProcess(
                        pid=process.pid,
                        parent=_program(served),
                        other_folder=self._other_folder(process),
                        memory_bytes=process.memory_info().rss,
                        running_s=max(0.0, self._clock.now().timestamp() - process.create_time()),
                    )
                )
            except psutil.Error:
                continue  # it ended meanwhile, or is not ours to look at
        return tuple(sorted(found, key=lambda process: -process.running_s))

    def _other_folder(self, process: psutil.Process) -> str:
        ours = self._folders.get("data")
        try:
            told = process.environ().get("UNIUN_DATA_DIR")
        except (psutil.Error, OSError):
            return ""
        theirs = Path(told).expanduser() if told else platformdirs.user_data_path("uniun", appauthor=False)
        return "" if ours is None or theirs.resolve() == ours.resolve() else str(theirs)

    def memory(self) -> Memory:
        memory = psutil.virtual_memory()
        return Memory(total_bytes=memory.total, free_bytes=memory.available, accelerated=mlx_is_accelerated())

    def _chosen(self, works: Mapping[str, bool]) -> Finding:
        """Which engine runs the default model, by the runner's own rule."""
        if not any(works.values()):
            mend = "Set up again: delete .venv, then make check."
            return Finding(area="engine", state="fail", text="no engine can be used", mend=mend)
        try:
            default = self._store.get(self._store.default_name())
            if default.remote is not None:
                return Finding(
                    area="engine", state="ok", text=f"{default.name}, the default, needs none here"
                )
            engine, _ = self._runner._choose(default)
        except (EngineError, ModelLoadFailed) as error:
            return Finding(
                area="engine",
                state="fail",
                text=str(error),
                mend="Unset UNIUN_ENGINE__BACKEND to choose automatically.",
            )
        except ModelError:
            names = " or ".join(engine for engine, usable in works.items() if usable)
            return Finding(area="engine", state="ok", text=f"{names} will be chosen when there is a model")
        if not works[engine]:
            return Finding(
                area="engine",
                state="fail",
                text=f"{engine} is chosen and cannot be used",
                mend="Mend it as said above.",
            )
        return Finding(area="engine", state="ok", text=f"{engine} is chosen: {self._reason()}")

    def _reason(self) -> str:
        if self._runner._options.backend != "auto":
            return "UNIUN_ENGINE__BACKEND says so"
        return "MLX where it has a GPU, llama.cpp for GGUF files elsewhere, MLX for the rest"

    async def _model(self) -> Finding:
        name = self._store.default_name()
        try:
            model = await self._store.verify(name)
        except UnknownModel:
            return Finding(
                area="model",
                state="warn",
                text=f"{name}, the default, is not installed",
                mend=f"It is fetched when a command needs it, as uniun ask does, or now with: uniun models pull {name}",
            )
        except ModelError as error:
            return Finding(
                area="model",
                state="fail",
                text=str(error),
                mend=self._repair(name),
            )
        if model.remote is not None:
            return Finding(
                area="model", state="ok", text=f"{name}, the default, is a remote one: see its servers"
            )
        return Finding(
            area="model",
            state="ok",
            text=f"{name}, the default: every file is as it should be ({model.size_bytes / 1e6:.0f} MB)",
        )

    async def _remote_models(self) -> AsyncIterator[Finding]:
        """Whether each server of each remote model answers, and knows the model."""
        for model in self._store.installed():
            if model.remote is None or self._servers is None:
                continue
            for state in await self._servers.states(model.remote):
                yield _server(model.name, model.remote, state)

    def _repair(self, name: str) -> str:
        """The user's own files cannot be fetched."""
        if self._store.is_registered(name):
            return f"Put its files back, or register it again: uniun models add {name} PATH"
        if self._store.can_be_pulled(name):
            return f"uniun models rm {name}, then uniun models pull {name}"
        return f"uniun models rm {name}, then uniun models add {name} PATH"

    def _background_work(self) -> Finding:
        """Of the app: a loop that failed goes on after a pause, but what failed is a bug."""
        area = "background"
        last = self._loops.last()
        if last is None or self._clock.now() - last.at > _RECENT:
            return Finding(area=area, state="ok", text="the work beside the app has had no unexpected error")
        text = f"{last.loop} ended with an unexpected error at {last.at:%Y-%m-%d %H:%M} UTC and was started again: "
        mend = f"Please report it, with {self._loops.path}."
        return Finding(area=area, state="warn", text=text + last.error, mend=mend)

    def _server_log(self, path: Path) -> Finding:
        """Of the pages and the API; what was refused or foreseen is no error of the code."""
        try:
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            with path.open("rb") as log:
                log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
                errors = log.read().count(_UNFORESEEN)
        except OSError:
            errors = 0
        if not errors or self._clock.now() - changed > _RECENT:
            return Finding(area="server", state="ok", text="the server has had no unexpected error")
        text = f"unexpected errors of the server are in its log: {errors}"
        return Finding(area="server", state="warn", text=text, mend=f"Please report them, with {path}.")

    def _memory(self) -> Finding:
        memory = self.memory()
        try:
            name = self._store.default_name()
            entry = next((e for e in self._store.catalogue() if e.name == name), None)
            needed = entry.memory_bytes if entry else self._store.get(name).size_bytes
        except UniunError:
            needed = 0
        cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
        text = f"{memory.free_bytes / 1e9:.1f} GB free of {memory.total_bytes / 1e9:.1f} GB, {counted(cores, 'core')}"
        if needed:
            text += f"; the default model needs {needed / 1e9:.1f} GB"
        if memory.free_bytes < needed:
            return Finding(
                area="memory", state="warn", text=text, mend="Close other programs, or use a smaller model."
            )
        return Finding(area="memory", state="ok", text=text)


def _python() -> Finding:
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()} ({sys.executable})"
    return Finding(area="Python", state="ok", text=text)


async def _engine(engine: str) -> Finding:
    """Imports it in a process of its own: a library built for another CPU kills the process that imports it."""
    package, modules = _ENGINES[engine]
    try:
        release = version(package)
    except PackageNotFoundError:
        return Finding(
            area="engine",
            state="warn",
            text=f"{engine} is not installed",
            mend=f"pip install {package}, if there is a build of it for this machine.",
        )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        f"import {modules}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_IMPORT_LIMIT_S):
            _, errors = await process.communicate()
    except TimeoutError:
        errors = f"no answer for {_IMPORT_LIMIT_S:.0f} s".encode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return Finding(area="engine", state="ok", text=f"{engine} can be used ({package} {release})")
    last = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
    return Finding(
        area="engine",
        state="warn",
        text=f"{engine} cannot be imported ({package} {release}): {last[0]}",
        mend=f"pip install --force-reinstall {package}",
    )


def _program(words: Sequence[str]) -> str:
    """A command line without its interpreter and without folders: `uniun serve --port 8118`."""
    named = [word for word in words if word != "-m"]
    if len(named) > 1 and Path(named[0]).name.startswith(("python", "Python")):
        named = named[1:]
    line = " ".join([Path(named[0]).name, *named[1:]]) if named else ""
    return line if len(line) <= _COMMAND_CHARS else f"{line[: _COMMAND_CHARS - 1]}…"


def _server(name: str, remote: RemoteModel, state: ServerState) -> Finding:
    if state.error is not None:
        mend = "Mend that, or give other addresses: uniun models add --help"
        return Finding(area="server", state="warn", text=f"{name}: {state.error}", mend=mend)
    text = f"{name}: {state.url} answers; {counted(remote.jobs, 'job')} at once"
    if state.models and remote.model not in state.models and state.kind != "llama.cpp":
        known = ", ".join(state.models[:5])
        return Finding(
            area="server",
            state="warn",
            text=f"{text}, but it does not list {remote.model}",
            mend=f"It lists {known}. Register it again with one of these: uniun models add {name} --url … --model …",
        )
    return Finding(area="server", state="ok", text=text)


def _folder(name: str, path: Path) -> Finding:
    area = "folder"
    place = next(p for p in (path, *path.parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        return Finding(
            area=area,
            state="fail",
            text=f"{name}: {place} cannot be written to: {error.strerror}",
            mend=f"chown or chmod it, or set UNIUN_{name.upper()}_DIR.",
        )
    free = shutil.disk_usage(place).free
    text = f"{name}: {path}, {free / 1e9:.1f} GB free on its disk"
    if free < _FREE_BYTES:
        return Finding(
            area=area,
            state="warn",
            text=text,
            mend="Free some disk space, or set UNIUN_DATA_DIR to another disk.",
        )
    return Finding(area=area, state="ok", text=text)
