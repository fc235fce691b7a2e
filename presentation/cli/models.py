"""`uniun models …`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from domain.entities.health import EngineProcess
from domain.entities.llm import Sampling
from domain.entities.models import InstalledModel
from domain.errors import UniunError
from domain.usecases.models import ModelShelf
from presentation.cli import progress
from presentation.cli.run import run_async
from presentation.cli.tables import Column, Row, print_table
from presentation.cli.terminal import ask_first, out, printable, size, write
from presentation.cli.top import OpenServersScheduler
from presentation.cli.wrap import folded
from presentation.controllers.models import ModelsController
from presentation.counting import counted

_SHELF = (
    Column(""),
    Column("installed", folds=True),
    Column("size", right=True),
    Column("context", right=True),
    Column("licence"),
    Column("from", folds=True),
)
_ENGINES = (
    Column("engine"),
    Column("memory", right=True),
    Column("since"),
    Column("works for", folds=True),
)


def list_models(models: ModelsController) -> None:
    """A table of what is installed, then what can be fetched."""
    shelf = models.shelf()
    console = out()
    if shelf.installed:
        rows = [
            Row(
                (
                    "*" if model.name == shelf.default else "",
                    printable(model.name),
                    "remote" if model.remote is not None else size(model.size_bytes),
                    str(model.context_tokens or "?"),
                    printable(model.licence),
                    printable(model.source),
                )
            )
            for model in shelf.installed
        ]
        print_table(console, _SHELF, rows, least=("licence", "from", "context", "size"))
    else:
        default = printable(shelf.default)
        words = f"No model is installed. {default}, the default, is fetched when a command needs it, as uniun ask does."
        console.print(folded(words), soft_wrap=True)
    if shelf.available:
        console.print("To fetch:", style="bold")
    for entry in shelf.available:
        figures = f"{size(entry.download_bytes)}, {size(entry.memory_bytes)} of memory, context {entry.context_tokens}"
        mark = "*" if entry.name == shelf.default else " "
        label = f"{mark} {printable(entry.name):14} "
        console.print(label + folded(f"{figures}, {entry.licence}", len(label)), soft_wrap=True)
        console.print(Padding(Text(entry.good_for, style="dim"), (0, 0, 0, 17)))
    console.print("* is the default. Fetch with: uniun models pull NAME", style="dim")


async def pull(models: ModelsController, name: str) -> None:
    """Fetches, with a bar."""
    model = await progress.pull(models, name)
    write(f"{_described(model)} is ready.\n")


def use(models: ModelsController, name: str) -> None:
    """Chooses the default."""
    write(f"{models.use(name).name} is the default from now on.\n")


def remove(models: ModelsController, name: str, *, sure: bool, open_scheduler: OpenServersScheduler) -> None:
    """Removes, and says what that freed and what answers now. What is not there is told by the removal itself."""
    shelf = models.shelf()
    if any(model.name == name for model in shelf.installed):
        told = "; ".join([*_heir(shelf, name, "then"), *run_async(_in_use(open_scheduler, name))])
        ask_first(f"remove the model {printable(name)}{f' ({told})' if told else ''}", sure=sure)
    freed = models.remove(name)
    write(f"{name} is removed, {size(freed)} freed." if freed else f"{name} is forgotten; its files stay.")
    write("".join(f" {words[:1].upper()}{words[1:]}." for words in _heir(shelf, name, "now")) + "\n")


def _heir(shelf: ModelShelf, name: str, when: str) -> list[str]:
    """What answers without this model; nothing to say if it was not the default, and that one is there."""
    left = {model.name for model in shelf.installed} - {name}
    heir = shelf.fallback if shelf.default == name else shelf.default
    if heir in left:
        return [f"the default {when} is {heir}"] if heir != shelf.default else []
    choose = f", unless you choose another {when}: uniun models use NAME" if left else ""
    if heir not in shelf.memory:  # not of the catalogue
        return [f"nothing answers {when} until a model is fetched{choose}"]
    it = "it" if heir == name else f"the default {when} is {heir}, which"
    again = " again" if heir == name else ""
    return [f"{it} is fetched{again} when a command next needs it, as uniun ask does{choose}"]


async def _in_use(open_scheduler: OpenServersScheduler, name: str) -> list[str]:
    try:
        async with open_scheduler() as scheduler:
            used = scheduler is not None and scheduler.snapshot().resident == name
    except UniunError:
        return []  # a server that does not answer is no reason not to ask
    return ["the UNIUN that runs has it in memory, and only ends what it is writing"] if used else []


def add(models: ModelsController, name: str, path: Path) -> None:
    """Registers a folder or a file."""
    write(f"{_described(models.add(name, path))} is registered.\n")


@dataclass(frozen=True)
class RemoteWish:
    """What was said on the command line of a model that servers run."""

    urls: tuple[str, ...]
    model: str
    key_variable: str | None
    jobs: int | None
    context_tokens: int | None
    priority: bool
    temperature: float | None
    top_p: float | None

    @property
    def empty(self) -> bool:
        return self == RemoteWish((), "", None, None, None, False, None, None)

    @property
    def sampling(self) -> Sampling | None:
        said = {"temperature": self.temperature, "top_p": self.top_p}
        given = {name: value for name, value in said.items() if value is not None}
        return Sampling(**given) if given else None


async def add_remote(models: ModelsController, name: str, wish: RemoteWish) -> None:
    """Registers servers, and says how they are."""
    added = await models.add_remote(
        name,
        wish.urls,
        wish.model,
        key_variable=wish.key_variable,
        jobs=wish.jobs,
        context_tokens=wish.context_tokens,
        priority=wish.priority,
        sampling=wish.sampling,
    )
    for server in added.servers:
        write(f"{printable(server.error) if server.error else f'{printable(server.url)} answers.'}\n")
    remote = added.model.remote
    slots = remote.slots if remote is not None else 1
    context = added.model.context_tokens
    write(
        f"{name} is registered: {'one job' if slots == 1 else f'{slots} jobs'} at once, "
        f"{'a context of ' + counted(context, 'token') if context else 'a context of unknown size'}.\n"
    )


def show_processes(models: ModelsController) -> None:
    """Engine processes; which model one holds is known only to the program that started it."""
    processes = models.processes()
    if not processes:
        write("No engine is running, so no model is loaded.\n")
        return
    console = out()
    own = [process for process in processes if not process.other_folder]
    others = [process for process in processes if process.other_folder]
    if own:
        _print_engines(console, own)
    else:
        write("No engine of this data folder is running.\n")
    if others:
        write("\nEngines of other data folders:\n")
        _print_engines(console, others)
    console.print(
        "An engine holds at most one model; only the program that it works for knows which. `uniun ps` asks a running UNIUN.",
        style="dim",
    )


def _print_engines(console: Console, processes: Sequence[EngineProcess]) -> None:
    elsewhere = any(process.other_folder for process in processes)
    columns = (*_ENGINES, *([Column("data folder", folds=True)] if elsewhere else []))
    rows = [
        Row(
            (
                str(process.pid),
                size(process.memory_bytes),
                _duration(process.running_s),
                printable(process.parent) or f"nothing: an orphan; end it with: kill {process.pid}",
                *([printable(process.other_folder)] if elsewhere else []),
            )
        )
        for process in processes
    ]
    print_table(console, columns, rows, least=("since", "memory"))


def _described(model: InstalledModel) -> str:
    return f"{model.name} ({size(model.size_bytes)})"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
