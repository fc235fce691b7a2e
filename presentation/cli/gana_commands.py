"""`uniun gana …`: what can be typed."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from presentation.cli.command_line import CommandLine, YesOption
from presentation.cli.openers import Openers
from presentation.cli.run import run_async

GanaArgument = Annotated[str, typer.Argument(help="A Gana: its name or id.", show_default=False)]
Given = dict[str, Any]

_FIELDS: Mapping[str, Any] = {
    "task": Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What it is to do: the prompt; @FILE reads it from a file."),
    ],
    "trigger": Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help='When it runs, in words: "every morning", "every 30 minutes", "when a note tagged inbox is added", '
            '"tomorrow at noon", "by hand".',
        ),
    ],
    "description": Annotated[str | None, typer.Option(metavar="TEXT", help="For yourself.")],
    "input_tag": Annotated[str | None, typer.Option(metavar="TAG", help="It reads new notes with this tag.")],
    "input_manas_id": Annotated[
        str | None, typer.Option("--input-manas", metavar="NAME", help="It reads new notes of this Manas.")
    ],
    "manas_ids": Annotated[
        list[str] | None,
        typer.Option("--manas", metavar="NAME", help="Knowledge that it may draw on; may be repeated."),
    ],
    "output_tag": Annotated[str | None, typer.Option(metavar="TAG", help="Its notes get this tag.")],
    "webhook": Annotated[
        str | None, typer.Option(metavar="URL", help="What it writes is also posted to this address.")
    ],
    "model": Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="A model of its own.")],
    "missed_runs": Annotated[
        Literal["skip", "latest", "all"] | None,
        typer.Option(
            "--missed",
            help="Runs that were missed: leave them out (skip), run once for all of them (latest), or for each (all).",
        ),
    ],
    "agentic": Annotated[
        bool | None,
        typer.Option(
            "--agentic/--plain", help="It may search and read notes itself, in at most four rounds."
        ),
    ],
}


_OF_NEW: Mapping[str, str] = {"trigger": "by hand", "missed_runs": "latest", "agentic": "plain"}
"""What a new Gana has where nothing is said; an old one keeps what it has."""


def _with_fields(command: Callable[..., None], defaults: Mapping[str, str]) -> Callable[..., None]:
    """Adds an option for every field of a Gana; the command gets those that were given, as `fields`."""
    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != "fields"]
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_told(option, defaults.get(name))
        )
        for name, option in _FIELDS.items()
    ]

    @functools.wraps(command)
    def with_fields(**given: Any) -> None:
        fields = {name: given.pop(name) for name in _FIELDS}
        command(**given, fields=_fields(**(fields | {"task": _text(fields["task"])})))

    with_fields.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *options)]
    )
    return with_fields


def _told(option: Any, default: str | None) -> Any:
    """With the default in its help."""
    kind, info = get_args(option)
    info = copy.copy(info)
    info.show_default = default or False
    return Annotated[kind, info]


def gana_app(openers: Openers) -> CommandLine:
    """The group of commands."""
    gana = CommandLine("Agents that work over your notes, at their times.")

    @gana.callback(invoke_without_command=True)
    def top(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    _add_writing(gana, openers)
    _add_looking(gana, openers)
    _add_running(gana, openers)
    return gana


def _add_writing(gana: CommandLine, openers: Openers) -> None:
    @gana.command()
    @functools.partial(_with_fields, defaults=_OF_NEW)
    def create(
        name: Annotated[str, typer.Argument(help="What it is called.", show_default=False)],
        old_notes: Annotated[
            bool, typer.Option("--old-notes", help="Notes that are there already are new to it.")
        ] = False,
        enable: Annotated[bool, typer.Option("--enable", help="Switch it on at once.")] = False,
        *,
        fields: Given,
    ) -> None:
        """Write down a new Gana. It is off until you enable it."""
        from presentation.cli.gana import create as write_down

        run_async(write_down(openers.library, {"name": name, **fields}, old_notes=old_notes, enable=enable))

    @gana.command()
    @functools.partial(_with_fields, defaults={})
    def edit(
        gana: GanaArgument,
        name: Annotated[str | None, typer.Option(metavar="NAME", help="A new name.")] = None,
        *,
        fields: Given,
    ) -> None:
        """Change what is given; an empty text takes a field away."""
        from presentation.cli.gana import edit as change

        run_async(change(openers.library, gana, {**_fields(name=name), **fields}))

    @gana.command()
    def enable(gana: GanaArgument) -> None:
        """Switch it on."""
        from presentation.cli.gana import switch

        run_async(switch(openers.library, gana, on=True))

    @gana.command()
    def disable(gana: GanaArgument) -> None:
        """Switch it off."""
        from presentation.cli.gana import switch

        run_async(switch(openers.library, gana, on=False))

    @gana.command()
    def rm(gana: GanaArgument, yes: YesOption = False) -> None:
        """Remove a Gana and its log. The notes that it wrote stay."""
        from presentation.cli.gana import remove

        run_async(remove(openers.library, gana, sure=yes))


def _add_looking(gana: CommandLine, openers: Openers) -> None:
    @gana.command("list")
    def list_ganas() -> None:
        """All of them, and when they run next."""
        from presentation.cli.gana import list_ganas as show_all

        run_async(show_all(openers.library))

    @gana.command()
    def show(gana: GanaArgument) -> None:
        """Everything about one."""
        from presentation.cli.gana import show as show_one

        run_async(show_one(openers.library, gana))

    @gana.command()
    def runs(
        gana: Annotated[str | None, typer.Argument(help="Of one Gana; of all if absent.")] = None,
        limit: Annotated[
            int, typer.Option("--limit", "-n", min=1, max=1_000, metavar="N", help="How many, at most.")
        ] = 20,
    ) -> None:
        """What they did, newest first."""
        from presentation.cli.gana import runs as show_runs

        run_async(show_runs(openers.library, gana, limit))


def _add_running(gana: CommandLine, openers: Openers) -> None:
    @gana.command()
    def run(gana: GanaArgument) -> None:
        """Run it now."""
        from presentation.cli.gana import run as run_now

        if not run_async(run_now(openers.controllers, gana)):
            raise typer.Exit(1)

    @gana.command()
    def preview(gana: GanaArgument) -> None:
        """Show what it would write. Nothing is kept."""
        from presentation.cli.gana import preview as try_out

        if not run_async(try_out(openers.controllers, gana)):
            raise typer.Exit(1)


def _fields(**given: Any) -> dict[str, Any]:
    """What was given; an empty text means none."""
    told = {name: value for name, value in given.items() if value is not None}
    return {
        name: None if value == "" and name not in ("name", "task", "description", "trigger") else value
        for name, value in told.items()
    }


def _text(task: str | None) -> str | None:
    if task is None or not task.startswith("@"):
        return task
    try:
        return Path(task[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{task[1:]} cannot be read: {error}") from None
