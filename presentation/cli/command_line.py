"""How the help of a command looks: in plain lines, which fold at words on a narrow terminal, and in people's words."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

Deed = TypeVar("Deed", bound=Callable[..., Any])
_NO_LIMIT = 2**31
"""A largest number that is so large says nothing to anybody."""
_NARROW = 70
_LEFT, _LEFT_NARROW = 30, 20
"""Columns for the options beside their words; a longer one has a line of its own."""

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class CommandLine(typer.Typer):
    """A program, or a group of commands."""

    def __init__(self, words: str, **more: Any) -> None:
        super().__init__(help=words, cls=_Group, rich_markup_mode=None, no_args_is_help=False, **more)

    def command(self, name: str | None = None, **more: Any) -> Callable[[Deed], Deed]:
        return super().command(name, cls=_Command, **more)


class _Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return _usage(self.options_metavar, self.get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self.get_params(ctx), ctx, formatter)


class _Group(TyperGroup):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*_usage(self.options_metavar, self.get_params(ctx)), self.subcommand_metavar]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self.get_params(ctx), ctx, formatter)
        commands = [(name, command) for name, command in self.commands.items() if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help or "") for name, command in commands])


def _usage(options: str | None, parameters: list[Any]) -> list[str]:
    return [*([options] if options else []), *map(_argument, _arguments(parameters))]


def _write_parameters(parameters: list[Any], context: Any, formatter: Any) -> None:
    left = _LEFT_NARROW if formatter.width < _NARROW else _LEFT
    arguments = [(_argument(each), _words(each, context)) for each in _arguments(parameters)]
    options = [
        (_option(each, context), _words(each, context))
        for each in parameters
        if isinstance(each, TyperOption)
    ]
    for name, rows in (("Arguments", arguments), ("Options", options)):
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows, col_max=left)


def _arguments(parameters: list[Any]) -> list[TyperArgument]:
    return [each for each in parameters if isinstance(each, TyperArgument)]


def _argument(argument: TyperArgument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return f"{name if argument.required else f'[{name}]'}{'' if argument.nargs == 1 else '...'}"


def _option(option: TyperOption, context: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    if option.is_flag:
        return " / ".join([names, *option.secondary_opts])
    return f"{names} {option.metavar or option.display_type(context).strip('<>')}"


def _words(parameter: Any, context: Any) -> str:
    """What it is for, in which range, and what holds without it."""
    notes = list(filter(None, (_range(parameter.min, parameter.max), _default(parameter, context))))
    return " ".join(filter(None, (parameter.help, f"[{'; '.join(notes)}]" if notes else "")))


def _range(least: float | None, most: float | None) -> str:
    most = None if most is not None and most >= _NO_LIMIT else most
    if least is not None and most is not None:
        return f"{least:,} to {most:,}"
    return f"{least:,} or more" if least else ""


def _default(parameter: Any, context: Any) -> str:
    if isinstance(parameter.show_default, str):
        return f"default: {parameter.show_default}"
    value = parameter.get_default(context, call=False) if parameter.show_default else None
    if isinstance(value, bool):
        names = parameter.secondary_opts if not value else parameter.opts
        return f"default: {names[0].lstrip('-')}" if names and parameter.secondary_opts else ""
    return (
        ""
        if value in (None, "", ())
        else f"default: {value:g}"
        if isinstance(value, float)
        else f"default: {value}"
    )
