"""The command line: what can be typed. What the commands do, and the imports for it, are in their own modules."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from domain.errors import InvalidRequest
from presentation.cli.background_commands import background_app
from presentation.cli.command_line import CommandLine, YesOption
from presentation.cli.gana_commands import gana_app
from presentation.cli.keys_commands import keys_app
from presentation.cli.nataraj_commands import nataraj_app
from presentation.cli.notes_commands import add_archive_commands, notes_app
from presentation.cli.openers import Openers
from presentation.cli.run import run_async


def _model_name(value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise typer.BadParameter("it is empty; leave the option out for the default model")
    return value


def _temperature(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= 5:  # so that "nan" is refused for what it is
        raise typer.BadParameter("it should be a number from 0 to 5")
    return value


def _top_p(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter("it should be a number above 0, at most 1")
    return value


Kind = Literal["chat", "extract", "nataraj", "gana", "api"]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        callback=_model_name,
        help="A model from `uniun models list`; the default one if absent.",
    ),
]
SystemOption = Annotated[
    str | None, typer.Option("--system", "-s", metavar="TEXT", help="Instructions for the model.")
]
ManasOption = Annotated[
    str | None,
    typer.Option("--manas", metavar="NAME", help="Draw on the notes of this Manas only: its name or id."),
]
NameArgument = Annotated[str, typer.Argument(help="A model's name.", show_default=False)]


def build_app(openers: Openers) -> CommandLine:
    """The whole command line; a command opens what it needs when it runs."""
    app = CommandLine(
        "A private assistant on your own machine: one language model, and a chat that never waits.",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def top(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    ) -> None:
        if version:
            print(f"uniun {openers.version()}")
        elif context.invoked_subcommand is None:
            from presentation.cli.serve import serve

            run_async(serve(openers.server, None, None, show=True))

    _add_server(app, openers)
    _add_conversation(app, openers)
    app.add_typer(notes_app(openers), name="notes")
    add_archive_commands(app, openers)
    app.add_typer(nataraj_app(openers), name="nataraj")
    app.add_typer(gana_app(openers), name="gana")
    app.add_typer(background_app(openers), name="background")
    app.add_typer(_models(openers), name="models")
    app.add_typer(keys_app(openers), name="keys")
    _add_inspection(app, openers)
    return app


def _add_server(app: CommandLine, openers: Openers) -> None:
    @app.command()
    def serve(
        host: Annotated[
            str | None,
            typer.Option(
                help="Where to listen; on anything but loopback a token is asked for.", metavar="ADDRESS"
            ),
        ] = None,
        port: Annotated[
            int | None,
            typer.Option(
                min=0,
                max=65535,
                metavar="N",
                help="The port; 0 takes any that is free, none that of the settings.",
            ),
        ] = None,
        show: Annotated[bool, typer.Option("--open/--no-open", help="Open the browser.")] = False,
    ) -> None:
        """The web app and the API on this machine, until Ctrl-C. `uniun` alone does it and opens the browser."""
        from presentation.cli.serve import serve as answer

        run_async(answer(openers.server, host, port, show=show))


def _add_conversation(app: CommandLine, openers: Openers) -> None:
    @app.command()
    def chat(
        model: ModelOption = None,
        system: SystemOption = None,
        manas: ManasOption = None,
        conversation: Annotated[
            str | None,
            typer.Option(metavar="ID", help="Go on with this one; the beginning of its id is enough."),
        ] = None,
        last: Annotated[bool, typer.Option("--last", help="Go on with the last conversation.")] = False,
    ) -> None:
        """Talk with the model about your notes. Ctrl-C stops an answer; Ctrl-D leaves."""
        from presentation.cli.chat import Wanted
        from presentation.cli.chat import chat as talk

        if last and conversation is not None:
            raise typer.BadParameter("give --conversation or --last, not both")
        run_async(talk(openers.app, Wanted(model, system, manas, conversation, last)))

    @app.command()
    def ask(
        text: Annotated[
            list[str] | None,
            typer.Argument(help="The question; `-` or nothing reads stdin. Piped text is appended."),
        ] = None,
        model: ModelOption = None,
        system: SystemOption = None,
        kind: Annotated[Kind, typer.Option(help="Who asks; the scheduler ranks by it.")] = "chat",
        schema: Annotated[
            str | None,
            typer.Option(
                metavar="JSON", help="A JSON schema that the answer must follow: JSON text or a file."
            ),
        ] = None,
        max_tokens: Annotated[
            int, typer.Option(min=1, max=1_000_000, metavar="N", help="Longest answer, in tokens.")
        ] = 512,
        temperature: Annotated[
            float | None,
            typer.Option(
                callback=_temperature,
                metavar="NUMBER",
                show_default="what the model's makers recommend, else 0",
                help="From 0, always the likeliest token, to 5, nearly any.",
            ),
        ] = None,
        seed: Annotated[
            int | None,
            typer.Option(min=0, max=2**63 - 1, metavar="N", help="The same seed gives the same answer."),
        ] = None,
        notes: Annotated[bool, typer.Option("--notes", help="Answer from the notes, and cite them.")] = False,
        manas: ManasOption = None,
    ) -> None:
        """Ask one question and print the answer, and nothing else, on stdout."""
        from presentation.cli.ask import Question
        from presentation.cli.ask import ask as answer

        run_async(
            answer(
                openers.controllers,
                Question(
                    " ".join(text) if text else None,
                    kind,
                    model,
                    system,
                    schema,
                    max_tokens,
                    temperature,
                    seed,
                    notes or manas is not None,
                    manas,
                ),
            )
        )


def _models(openers: Openers) -> CommandLine:
    models = CommandLine("Fetch, choose and remove models.")

    @models.callback(invoke_without_command=True)
    def top(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    @models.command("list")
    def list_models() -> None:
        """What is installed and what can be fetched."""
        from presentation.cli.models import list_models as show

        show(openers.models())

    @models.command()
    def pull(
        name: Annotated[str, typer.Argument(help="A catalogue name, or OWNER/NAME on the Hugging Face hub.")],
    ) -> None:
        """Fetch a model."""
        from presentation.cli.models import pull as fetch

        run_async(fetch(openers.models(), name))

    @models.command()
    def use(name: NameArgument) -> None:
        """Make an installed model the default."""
        from presentation.cli.models import use as choose

        choose(openers.models(), name)

    @models.command()
    def rm(name: NameArgument, yes: YesOption = False) -> None:
        """Remove a model. Files that UNIUN did not fetch stay where they are."""
        from presentation.cli.models import remove

        remove(openers.models(), name, sure=yes, open_scheduler=openers.servers_scheduler)

    @models.command()
    def add(
        name: NameArgument,
        path: Annotated[
            Path | None, typer.Argument(help="An MLX folder or a GGUF file; it is not copied.")
        ] = None,
        url: Annotated[
            list[str] | None,
            typer.Option(
                metavar="URL",
                help="In place of a path: a server that runs the model. Give it again for each server.",
            ),
        ] = None,
        model: Annotated[str, typer.Option(metavar="NAME", help="The server's own name of the model.")] = "",
        key_env: Annotated[
            str | None,
            typer.Option(metavar="VARIABLE", help="The environment variable that holds the server's key."),
        ] = None,
        jobs: Annotated[
            int | None,
            typer.Option(
                min=1,
                max=1000,
                metavar="N",
                help="How many jobs each server runs at once; asked of it if absent.",
            ),
        ] = None,
        context: Annotated[
            int | None,
            typer.Option(min=64, metavar="N", help="Tokens of its context; asked of the server if absent."),
        ] = None,
        priority: Annotated[
            bool, typer.Option("--priority", help="The server orders requests by priority, as vLLM can.")
        ] = False,
        temperature: Annotated[
            float | None,
            typer.Option(
                callback=_temperature,
                metavar="NUMBER",
                help="As the server's model is recommended to draw tokens; else 0.",
            ),
        ] = None,
        top_p: Annotated[
            float | None,
            typer.Option(
                callback=_top_p, metavar="NUMBER", help="As the server's model is recommended; else 1."
            ),
        ] = None,
    ) -> None:
        """Register a model that is already on this machine, or that servers elsewhere run."""
        from presentation.cli.models import RemoteWish, add_remote
        from presentation.cli.models import add as register

        wish = RemoteWish(tuple(url or ()), model, key_env, jobs, context, priority, temperature, top_p)
        if path is not None and wish.empty:
            register(openers.models(), name, path)
        elif path is None and wish.urls:
            run_async(add_remote(openers.models(), name, wish))
        else:
            raise InvalidRequest("Give either a path, or --url and --model.")

    @models.command()
    def ps() -> None:
        """The engines that are running now."""
        from presentation.cli.models import show_processes

        show_processes(openers.models())

    return models


def _add_inspection(app: CommandLine, openers: Openers) -> None:
    @app.command()
    def ps(
        as_json: Annotated[
            bool, typer.Option("--json", help="All that the scheduler tells, as JSON.")
        ] = False,
    ) -> None:
        """What the running UNIUN does now: who has the model, and who waits."""
        from presentation.cli.top import ps as show

        def installed() -> set[str]:
            return {model.name for model in openers.models().shelf().installed}

        names, library = openers.flow_names, openers.library
        run_async(show(openers.servers_scheduler, names, library, as_json=as_json, installed=installed))

    @app.command("top")
    def live() -> None:
        """The same, live: the queue, the reasons and the last ten minutes. `q` leaves."""
        from presentation.cli.top import top as watch

        run_async(watch(openers.servers_scheduler, openers.flow_names))

    @app.command()
    def simulate(
        file: Annotated[str, typer.Argument(help="A scenario in YAML or JSON; `-` reads stdin.")],
        as_json: Annotated[bool, typer.Option("--json", help="The trace, one JSON object a line.")] = False,
        gantt: Annotated[bool, typer.Option("--gantt", help="A chart of who ran and who waited.")] = False,
    ) -> None:
        """Run a scenario through the scheduler, without a model."""
        from presentation.cli.simulate import simulate as show

        if as_json and gantt:
            raise typer.BadParameter("give --json or --gantt, not both")
        show(openers.simulate(), file, as_json=as_json, gantt=gantt)

    @app.command()
    def demo(
        model: ModelOption = None,
        policy: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME", help="idle, fifo, two-lane or uniun; may be repeated. All of them if absent."
            ),
        ] = None,
        seconds: Annotated[
            float,
            typer.Option(min=2, max=600, metavar="N", help="Seconds that each policy is watched."),
        ] = 40.0,
        json_file: Annotated[
            Path | None,
            typer.Option("--json", metavar="FILE", help="Write everything that was measured into this file."),
        ] = None,
    ) -> None:
        """Watch a chat wait, or not: the same load under one queue, two lanes and this scheduler, measured."""
        from presentation.cli.demo import demo as play

        play(openers, model=model, policies=policy or (), window_s=seconds, json_file=json_file)

    @app.command()
    def doctor(
        run: Annotated[bool, typer.Option("--run", help="Also generate a few tokens.")] = False,
    ) -> None:
        """Look for what is wrong, and say how to mend it."""
        from presentation.cli.doctor import doctor as examine

        if not run_async(examine(openers, run=run)):
            raise typer.Exit(1)
