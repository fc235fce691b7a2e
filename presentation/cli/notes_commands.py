"""`uniun notes …`, `uniun export` and `uniun backup`: what can be typed."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from domain.errors import InvalidRequest
from presentation.cli.command_line import CommandLine, YesOption
from presentation.cli.openers import Openers
from presentation.cli.run import run_async

NoteArgument = Annotated[
    str, typer.Argument(help="A note: its id, the beginning of that, or its title.", show_default=False)
]
ManasArgument = Annotated[str, typer.Argument(help="A Manas: its name or id.", show_default=False)]
NotesArgument = Annotated[list[str] | None, typer.Argument(help="Notes, by id or title.")]
ScopeOption = Annotated[
    str | None, typer.Option("--manas", metavar="NAME", help="Only notes of this Manas: its name or id.")
]
TagOption = Annotated[
    str | None, typer.Option("--tag", "-t", metavar="TAG", help="Notes with this tag, or one below it.")
]
FindOption = Annotated[
    str | None, typer.Option("--search", metavar="WORDS", help="Notes that have these words.")
]
Mode = Literal["words", "meaning", "both"]


def notes_app(openers: Openers) -> CommandLine:
    """The group of commands."""
    notes = CommandLine("Write, import, find and gather notes.")

    @notes.callback(invoke_without_command=True)
    def top(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    _add_import(notes, openers)
    _add_writing(notes, openers)
    _add_finding(notes, openers)
    notes.add_typer(_manas_app(openers), name="manas")
    return notes


def add_archive_commands(app: CommandLine, openers: Openers) -> None:
    """Export and backup, at the top level."""

    @app.command()
    def export(
        folder: Annotated[Path, typer.Argument(help="An empty folder, or one to be made.")],
        force: Annotated[
            bool, typer.Option("--force", help="Write into a folder that is not empty.")
        ] = False,
    ) -> None:
        """Write everything as Markdown and JSON."""
        from presentation.cli.archive import export as write

        run_async(write(openers.library, folder, force=force))

    @app.command()
    def backup(
        file: Annotated[Path, typer.Argument(help="A file that does not exist yet.")],
    ) -> None:
        """Copy the database, while it is used, and check the copy."""
        from presentation.cli.archive import back_up

        run_async(back_up(openers.library, file))

    @app.command()
    def restore(
        file: Annotated[Path, typer.Argument(help="What `uniun backup` wrote.")],
        yes: YesOption = False,
    ) -> None:
        """Go back to a backup, while UNIUN is closed. What is there now is kept beside the other backups."""
        from presentation.cli.archive import restore as go_back

        run_async(go_back(openers.library, file, sure=yes))


def _add_import(notes: CommandLine, openers: Openers) -> None:
    @notes.command("import")
    def import_folder(
        folder: Annotated[
            Path, typer.Argument(help="A folder of Markdown files, such as an Obsidian vault.")
        ],
        watch: Annotated[bool, typer.Option("--watch", help="Stay, and follow what changes.")] = False,
        deleted: Annotated[
            bool, typer.Option("--deleted", help="Also files whose notes you have deleted.")
        ] = False,
        undo: Annotated[
            bool,
            typer.Option("--undo", help="Delete what came from the folder, except what you have changed."),
        ] = False,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before that.")] = False,
    ) -> None:
        """Take the Markdown files of a folder as notes, or bring those up to date. No file is changed."""
        if undo:
            from presentation.cli.importing import take_back

            if watch or deleted:
                raise InvalidRequest("--undo goes with neither --watch nor --deleted.")
            if not run_async(take_back(openers.library, folder, sure=yes)):
                raise typer.Exit(1)
            return
        from presentation.cli.importing import import_folder as take

        if not run_async(take(openers.library, folder, watch=watch, deleted_too=deleted)):
            raise typer.Exit(1)


def _add_writing(notes: CommandLine, openers: Openers) -> None:
    @notes.command()
    def add(
        text: Annotated[
            str | None, typer.Argument(help="The text; `-` reads stdin. Without it, an editor opens.")
        ] = None,
        title: Annotated[str, typer.Option(metavar="TITLE", help="Taken from the text if absent.")] = "",
        tag: Annotated[
            list[str] | None,
            typer.Option("--tag", "-t", metavar="TAG", help="A tag for it; may be repeated."),
        ] = None,
    ) -> None:
        """Write a note."""
        from presentation.cli.notes import add as write

        write(openers.library, text, title, tag or ())

    @notes.command()
    def edit(note: NoteArgument) -> None:
        """Change a note in $VISUAL or $EDITOR."""
        from presentation.cli.notes import edit as change

        change(openers.library, note)

    @notes.command()
    def rm(note: NoteArgument, yes: YesOption = False) -> None:
        """Delete a note. A file that it came from stays."""
        from presentation.cli.notes import remove

        remove(openers.library, note, sure=yes)

    @notes.command()
    def tag(
        note: NoteArgument,
        tags: Annotated[list[str] | None, typer.Argument(help="Tags to add.")] = None,
        remove: Annotated[
            list[str] | None,
            typer.Option("--remove", "-r", metavar="TAG", help="A tag to remove; may be repeated."),
        ] = None,
    ) -> None:
        """Add and remove tags."""
        from presentation.cli.notes import tag as change

        run_async(change(openers.library, note, tags or (), remove or ()))


def _add_finding(notes: CommandLine, openers: Openers) -> None:
    @notes.command()
    def show(
        note: NoteArgument,
        raw: Annotated[bool, typer.Option("--raw", help="The text and nothing else.")] = False,
    ) -> None:
        """A note, its links and what was read in it."""
        from presentation.cli.notes import show as print_note

        run_async(print_note(openers.library, note, raw=raw))

    @notes.command("list")
    def list_notes(
        tag: TagOption = None,
        manas: ScopeOption = None,
        limit: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="How many, at most.")] = 50,
    ) -> None:
        """The notes that changed last."""
        from presentation.cli.notes import list_notes as print_list

        run_async(print_list(openers.library, tag, manas, limit))

    @notes.command()
    def search(
        words: Annotated[list[str], typer.Argument(help="What to look for.")],
        mode: Annotated[Mode, typer.Option(help="Compare words, meaning, or both.")] = "words",
        tag: TagOption = None,
        manas: ScopeOption = None,
        limit: Annotated[int, typer.Option(min=1, max=1_000, metavar="N", help="How many, at most.")] = 20,
    ) -> None:
        """Find notes."""
        from presentation.cli.notes import search as print_hits

        run_async(print_hits(openers.library, " ".join(words), mode, tag, manas, limit))

    @notes.command()
    def tags() -> None:
        """All tags, and how many notes have them."""
        from presentation.cli.notes import list_tags

        run_async(list_tags(openers.library))

    @notes.command()
    def embed() -> None:
        """Make new notes findable by meaning now; an open chat does it by itself."""
        from presentation.cli.notes import embed as work_off

        run_async(work_off(openers.library))

    @notes.command()
    def read() -> None:
        """Read into the knowledge graph what was written or changed. Ctrl-C stops; nothing is lost."""
        from presentation.cli.knowledge import read_notes

        if not run_async(read_notes(openers.controllers)):
            raise typer.Exit(1)

    @notes.command()
    def status() -> None:
        """How many notes have been read into the knowledge graph."""
        from presentation.cli.notes import show_status

        run_async(show_status(openers.library))

    @notes.command()
    def failures(
        retry: Annotated[bool, typer.Option("--retry", help="Let them be read again.")] = False,
    ) -> None:
        """Notes that the model could not read, and why."""
        from presentation.cli.notes import show_failures

        run_async(show_failures(openers.library, retry=retry))

    @notes.command()
    def graph(
        concept: Annotated[str | None, typer.Argument(help="Only what is around this one.")] = None,
        limit: Annotated[
            int, typer.Option(min=1, max=10_000, metavar="N", help="How many sentences, at most.")
        ] = 100,
    ) -> None:
        """What the notes say, as sentences."""
        from presentation.cli.notes import show_graph

        run_async(show_graph(openers.library, concept, limit))


def _manas_app(openers: Openers) -> CommandLine:
    manas = CommandLine("Named sets of notes.")

    @manas.callback(invoke_without_command=True)
    def top(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    @manas.command()
    def create(name: Annotated[str, typer.Argument(help="Its name.")]) -> None:
        """Make an empty one."""
        from presentation.cli.manases import create as make

        run_async(make(openers.library, name))

    @manas.command("list")
    def list_manases() -> None:
        """All of them."""
        from presentation.cli.manases import list_manases as print_list

        run_async(print_list(openers.library))

    @manas.command()
    def rm(manas: ManasArgument, yes: YesOption = False) -> None:
        """Delete one; its notes stay."""
        from presentation.cli.manases import remove as delete

        run_async(delete(openers.library, manas, sure=yes))

    @manas.command()
    def add(
        manas: ManasArgument, notes: NotesArgument = None, tag: TagOption = None, search: FindOption = None
    ) -> None:
        """Put notes in."""
        from presentation.cli.manases import change

        run_async(change(openers.library, manas, notes or (), tag, search, add=True))

    @manas.command()
    def remove(
        manas: ManasArgument, notes: NotesArgument = None, tag: TagOption = None, search: FindOption = None
    ) -> None:
        """Take notes out."""
        from presentation.cli.manases import change

        run_async(change(openers.library, manas, notes or (), tag, search, add=False))

    return manas
