"""`uniun gana …`: what the commands do."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from domain.entities.gana import Gana, GanaProgress, GanaRun
from domain.plain_text import shortened
from presentation.cli.openers import Controllers, Library
from presentation.cli.progress import WaitingLine, ensure
from presentation.cli.tables import Column, Row, print_table
from presentation.cli.terminal import make_sure, out, printable, say, write
from presentation.cli.wrap import write_beside
from presentation.controllers.gana import GanaController
from presentation.counting import counted

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]
OpenControllers = Callable[[], AbstractAsyncContextManager[Controllers]]
_WHAT = 300
_LISTED = (Column("name", folds=True), Column(""), Column("runs", folds=True), Column("next"))
_MISSED = {
    "latest": "one run as soon as possible",
    "skip": "left out",
    "all": "one run for each, one after the other",
}


async def create(open_library: OpenLibrary, fields: dict[str, Any], *, old_notes: bool, enable: bool) -> None:
    """Says when it will run, or how to switch it on."""
    async with open_library() as library:
        ganas = library.ganas()
        gana = await ganas.create(fields, read_old_notes=old_notes)
        if enable:
            gana = await ganas.enable(gana.id, on=True)
        _say_when(ganas, gana, "is written down")


async def edit(open_library: OpenLibrary, reference: str, fields: dict[str, Any]) -> None:
    """Says when it will run now."""
    async with open_library() as library:
        ganas = library.ganas()
        _say_when(ganas, await ganas.change(reference, fields), "is changed")


async def switch(open_library: OpenLibrary, reference: str, *, on: bool) -> None:
    """Says when it will run."""
    async with open_library() as library:
        ganas = library.ganas()
        gana = await ganas.enable(reference, on=on)
        if on:
            _say_when(ganas, gana, "is on")
        else:
            write(f"{gana.draft.name} is off.\n")


async def remove(open_library: OpenLibrary, reference: str, *, sure: bool) -> None:
    """The notes stay."""
    async with open_library() as library:
        ganas = library.ganas()
        known = await ganas.get(reference)
        make_sure(f"remove the Gana {known.draft.name} and its log", sure=sure)
        gana = await ganas.remove(known.id)
    write(f"{gana.draft.name} is removed; the notes that it wrote stay.\n")


async def list_ganas(open_library: OpenLibrary) -> None:
    """A table."""
    async with open_library() as library:
        ganas = library.ganas()
        found = await ganas.list()
        if not found:
            write('There is no Gana yet. Write one down with: uniun gana create NAME --task "…"\n')
            return
        rows = [
            Row(
                (
                    printable(gana.draft.name),
                    "on" if gana.enabled else "off",
                    printable(ganas.describe(gana)),
                    ganas.local(gana.due_at) if gana.due_at is not None else "",
                )
            )
            for gana in found
        ]
        print_table(out(), _LISTED, rows, least=("next",))


async def next_run(ganas: GanaController, gana: Gana) -> str:
    """When it runs, or what a reaction waits for; empty where that is up to the user."""
    if gana.due_at is not None:
        return ganas.local(gana.due_at)
    if not (gana.enabled and gana.draft.reactive):
        return ""
    note = await ganas.writing(gana)
    return (
        "with a new note"
        if note is None
        else f"when “{printable(note) or 'Untitled'}” has been left alone for a minute"
    )


async def show(open_library: OpenLibrary, reference: str) -> None:
    """Field by field, and its last runs."""
    async with open_library() as library:
        ganas = library.ganas()
        gana = await ganas.get(reference)
        manases = {manas.id: manas.name for manas in await library.manases.list()}
        draft = gana.draft
        watched = (
            f"tag {draft.input_tag}"
            if draft.input_tag
            else manases.get(draft.input_manas_id or "", "nothing")
        )
        lines = {
            "name": draft.name,
            "id": gana.id,
            "description": draft.description,
            "state": "on" if gana.enabled else "off",
            "runs": ganas.describe(gana),
            "next": await next_run(ganas, gana),
            "reads": watched,
            "knows": ", ".join(manases.get(each, each) for each in draft.manas_ids),
            "tags its notes": draft.output_tag or "",
            "webhook": str(draft.webhook or ""),
            "model": draft.model or "the default",
            "missed runs": _MISSED[draft.missed_runs],
            "looks up": "in the notes by itself, in up to four rounds"
            if draft.agentic
            else "nothing by itself",
        }
        for name, value in lines.items():
            if value:
                write_beside(f"{name + ':':16}", value)
        write(f"\n{draft.task}\n")
        last = await ganas.runs(gana.id, limit=5)
        if last:
            write("\n")
            _tell_runs(ganas, last, {})


async def runs(open_library: OpenLibrary, reference: str | None, limit: int) -> None:
    """The log."""
    async with open_library() as library:
        ganas = library.ganas()
        found = await ganas.runs(reference, limit=limit)
        if not found:
            write("Nothing has run yet.\n")
            return
        names = {gana.id: gana.draft.name for gana in await ganas.list()}
        _tell_runs(ganas, found, names if reference is None else {})


async def run(open_controllers: OpenControllers, reference: str) -> bool:
    """Prints what it wrote; false if it failed."""
    async with open_controllers() as controllers:
        gana = await controllers.ganas.get(reference)
        await ensure(controllers.models, gana.draft.model)
        with WaitingLine(f"{gana.draft.name} is at work") as waiting:
            done = await controllers.ganas.run(gana.id, _teller(waiting))
        return _tell_run(gana, done)


async def preview(open_controllers: OpenControllers, reference: str) -> bool:
    """Prints what it would write; false if it failed."""
    async with open_controllers() as controllers:
        gana = await controllers.ganas.get(reference)
        await ensure(controllers.models, gana.draft.model)
        with (
            controllers.ganas.form(gana.id) as form,
            WaitingLine(f"{gana.draft.name} is at work") as waiting,
        ):
            done = await form.preview(watch=_teller(waiting))
        return _tell_run(gana, done)


def _teller(waiting: WaitingLine) -> Callable[[GanaProgress], None]:
    def tell(progress: GanaProgress) -> None:
        if progress.tool:
            waiting.show(f"round {progress.round}, after {progress.tool}")
        waiting.tell(progress.event)

    return tell


def _tell_run(gana: Gana, done: GanaRun) -> bool:
    if done.output:
        write(f"{done.output}\n")
    if done.status == "failed":
        say(f"{gana.draft.name} failed. {done.detail}")
    elif done.status == "skipped":
        say(f"{gana.draft.name} wrote nothing ({_reason(done)}). {done.detail}".rstrip())
    elif done.detail:
        say(done.detail)
    return done.status != "failed"


def _say_when(ganas: GanaController, gana: Gana, what: str) -> None:
    name, words = gana.draft.name, ganas.describe(gana)
    if not gana.enabled:
        write(f"{name} {what}: {words}. It is off; switch it on with: uniun gana enable {_shell(name)}\n")
    elif gana.due_at is not None:
        write(f"{name} {what}: {words}, next on {ganas.local(gana.due_at)}.\n")
    else:
        write(f"{name} {what}: {words}.\n")


def _tell_runs(ganas: GanaController, runs: tuple[GanaRun, ...], names: dict[str, str]) -> None:
    """Two lines each: figures, then what came of it, cut to a line or two."""
    for run in runs:
        status = run.status if run.reason in (None, "error") else f"{run.status}, {_reason(run)}"
        figures = [status, f"{run.seconds:.1f} s", counted(run.tokens, "token")]
        if run.preemptions:
            figures.append(f"gave way {counted(run.preemptions, 'time')}")
        if run.by == "background":
            figures.append("in the background")
        name = f"{names.get(run.gana_id, run.gana_id[:12])}  " if names else ""
        write_beside(f"{ganas.local(run.started_at)}  ", f"{name}{'  '.join(figures)}")
        what = " ".join((run.output or run.detail).split())
        if what:
            write_beside("    ", shortened(what, _WHAT))


def _reason(run: GanaRun) -> str:
    return (run.reason or "").replace("_", " ")


def _shell(name: str) -> str:
    return name if name.isalnum() else f'"{name}"'
