"""`uniun background …`: what can be typed."""

import typer

from presentation.cli.command_line import CommandLine
from presentation.cli.openers import Openers
from presentation.cli.run import run_async


def background_app(openers: Openers) -> CommandLine:
    """The group of commands."""
    background = CommandLine("Ganas run on time while the app is closed.")

    @background.callback(invoke_without_command=True)
    def top(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    @background.command()
    def run() -> None:
        """Run due Ganas until told to stop, whenever the app is closed."""
        from presentation.cli.background import run as stay

        run_async(stay(openers.background_process))

    @background.command()
    def install() -> None:
        """Start it at login, from now on."""
        from presentation.cli.background import install as set_up

        set_up(openers.background())

    @background.command()
    def uninstall() -> None:
        """Start it no more."""
        from presentation.cli.background import uninstall as take_down

        take_down(openers.background())

    @background.command()
    def status() -> None:
        """Whether it is installed, whether it runs, and what it did."""
        from presentation.cli.background import status as tell

        run_async(tell(openers.background()))

    return background
