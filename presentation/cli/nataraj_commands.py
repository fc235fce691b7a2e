"""`uniun nataraj …`: what can be typed."""

from typing import Annotated

import typer

from presentation.cli.command_line import CommandLine
from presentation.cli.openers import Openers
from presentation.cli.run import run_async

ManasOption = Annotated[
    str | None,
    typer.Option(
        "--manas", metavar="NAME", help="The deck of this Manas: its name or id. Else that of all notes."
    ),
]
CardArgument = Annotated[
    str | None, typer.Argument(help="The beginning of a card's id; the next card if absent.")
]


def nataraj_app(openers: Openers) -> CommandLine:
    """The group of commands."""
    nataraj = CommandLine("A deck of cards that join your notes.")

    @nataraj.callback(invoke_without_command=True)
    def top(context: typer.Context, manas: ManasOption = None) -> None:
        """Show the deck."""
        if context.invoked_subcommand is None:
            from presentation.cli.nataraj import show

            run_async(show(openers.library, manas))

    @nataraj.command("next")
    def next_card(manas: ManasOption = None) -> None:
        """Show the next card, with its notes."""
        from presentation.cli.nataraj import next_card as show_next

        run_async(show_next(openers.library, manas))

    @nataraj.command()
    def keep(card: CardArgument = None, manas: ManasOption = None) -> None:
        """Make a note of a card."""
        from presentation.cli.nataraj import keep as keep_card

        run_async(keep_card(openers.library, card, manas))

    @nataraj.command()
    def drop(card: CardArgument = None, manas: ManasOption = None) -> None:
        """Put a card away. It comes back when every combination of notes has been used."""
        from presentation.cli.nataraj import drop as drop_card

        run_async(drop_card(openers.library, card, manas))

    @nataraj.command()
    def fill(
        count: Annotated[int, typer.Argument(min=1, max=50, help="How many cards.")] = 5,
        manas: ManasOption = None,
    ) -> None:
        """Write new cards now."""
        from presentation.cli.nataraj import fill as write_cards

        run_async(write_cards(openers.controllers, count, manas))

    return nataraj
