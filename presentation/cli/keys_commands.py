"""What can be typed after `uniun keys`."""

from typing import Annotated, Literal

import typer

from presentation.cli.command_line import CommandLine, YesOption
from presentation.cli.openers import Openers
from presentation.cli.run import run_async


def keys_app(openers: Openers) -> CommandLine:
    """Needs the database only."""
    keys = CommandLine("Keys for other programs that use the API. On this machine none is needed.")

    @keys.callback(invoke_without_command=True)
    def top(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    @keys.command()
    def create(
        name: Annotated[
            str, typer.Argument(help="What the program is called in lists and in the scheduler.")
        ],
        kind: Annotated[
            Literal["chat", "extract", "nataraj", "gana", "api"],
            typer.Option(help="What its requests are when they do not say."),
        ] = "api",
        weight: Annotated[
            float,
            typer.Option(
                min=0.01, max=100, metavar="NUMBER", help="Its share of the fair pool, relative to others."
            ),
        ] = 1.0,
        per_minute: Annotated[
            int | None,
            typer.Option(
                min=1,
                max=100_000,
                metavar="N",
                help="Requests that it may make in a minute; any number if absent.",
            ),
        ] = None,
    ) -> None:
        """Make a key and print it, and nothing else, on stdout. It is not shown again."""
        from presentation.cli.keys import create as make

        run_async(make(openers.library, name, kind, weight, per_minute))

    @keys.command("list")
    def list_keys() -> None:
        """The keys that are valid, without their text."""
        from presentation.cli.keys import list_keys as show

        run_async(show(openers.library))

    @keys.command()
    def revoke(
        name: Annotated[str, typer.Argument(help="Its name, or the beginning of its id.")],
        yes: YesOption = False,
    ) -> None:
        """Make a key worthless at once, also for a server that runs."""
        from presentation.cli.keys import revoke as withdraw

        run_async(withdraw(openers.library, name, sure=yes))

    return keys
