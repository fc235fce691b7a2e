"""What can be typed in `uniun chat` besides questions."""

import difflib
import re
from collections.abc import AsyncGenerator

from domain.entities.conversation import AnswerEvent, PathMessage
from domain.errors import InvalidRequest
from domain.plain_text import shortened
from presentation.cli.ask import sources
from presentation.cli.openers import Controllers
from presentation.cli.progress import ensure
from presentation.cli.terminal import say, write
from presentation.cli.wrap import write_beside
from presentation.controllers.chat import ChatController

HELP = """\
/new            begin a new conversation, over the same notes
/list [WORDS]   conversations, newest first; those in which the words were said
/open ID        go on with one of them; the beginning of its id is enough
/show           this conversation, with the numbers of its messages
/branch N       go on after message N; what followed stays where it is
/other N        what else was said in place of message N
/retry          another answer to the last question
/edit QUESTION  the last question, put differently
/sources        the notes that the last answer cites
/title TITLE    give this conversation a title
/manas [NAME]   draw on the notes of this Manas only; on all without a name
/model [NAME]   let another installed model answer; without a name, say which one answers
/delete ID      delete a conversation and everything in it
/quit           leave
Ctrl-C stops an answer; Ctrl-D, or Ctrl-C twice at the prompt, leaves."""
_NAMES = ("/help", *re.findall(r"^/\w+", HELP, re.MULTILINE))
_COMMAND = HELP.index("begin")
"""Columns of a command in front of its words."""
_LISTED = 20
_ID_SHOWN = 8
_LINE_SHOWN = 200


class Commands:
    """Carries them out; those that lead to an answer return its stream."""

    def __init__(self, controllers: Controllers, conversation: ChatController, model: str) -> None:
        self._models = controllers.models
        self._chat = conversation
        self.answering_model = model

    async def run(self, line: str) -> AsyncGenerator[AnswerEvent, None] | None:
        """Raises what the controller raises."""
        name = command_of(line)
        argument = line.strip()[len(name) :].strip()
        match name:
            case "/help":
                for shown in HELP.split("\n"):
                    at = _COMMAND if shown.startswith("/") else 0
                    write_beside(shown[:at], shown[at:])
            case "/retry":
                return self._chat.retry()
            case "/edit":
                return self._chat.edit(_needed(argument, "/edit QUESTION"))
            case "/new":
                await self._chat.begin(manas=self._chat.conversation.manas_id)
                write("A new conversation.\n")
            case "/list":
                await self._list(argument)
            case "/open":
                await self._open(_needed(argument, "/open ID"))
            case "/show":
                show_path(self._chat)
            case "/branch":
                await self._chat.branch(self._message(argument, "/branch N").message.id)
                show_path(self._chat)
            case "/other":
                await self._other(self._message(argument, "/other N"))
            case "/sources":
                self._sources()
            case "/title":
                write(f"{(await self._chat.rename(_needed(argument, '/title TITLE'))).title}\n")
            case "/manas":
                await self._chat.use_manas(argument or None)
                write(f"From now on: {argument or 'all notes'}.\n")
            case "/model":
                await self._model(argument)
            case "/delete":
                await self._delete(_needed(argument, "/delete ID"))
            case _:
                near = difflib.get_close_matches(name, _NAMES, n=2)
                hint = f"did you mean {' or '.join(near)}? " if near else ""
                say(f"{name} is no command; {hint}/help lists them.")
        return None

    async def _list(self, text: str) -> None:
        found = await self._chat.conversations(text, limit=_LISTED)
        if not found:
            write("No conversation.\n")
        for one in found:
            here = "*" if one.id == self._chat.conversation.id else " "
            write(f"{here} {one.id[:_ID_SHOWN]}  {one.changed_at.astimezone():%Y-%m-%d %H:%M}  {one.title}\n")

    async def _open(self, conversation_id: str) -> None:
        await self._chat.open(conversation_id)
        self.answering_model = (await ensure(self._models, self._chat.model)).name
        show_path(self._chat)

    async def _other(self, shown: PathMessage) -> None:
        if len(shown.siblings) == 1:
            raise InvalidRequest("Nothing else was said in its place. /retry and /edit make branches.")
        at = shown.siblings.index(shown.message.id) + 1
        await self._chat.show_sibling(shown.siblings[at % len(shown.siblings)])
        show_path(self._chat)

    def _sources(self) -> None:
        for shown in reversed(self._chat.path):
            if shown.message.role == "assistant":
                write(
                    sources(shown.message.content, shown.message.citations).lstrip("\n")
                    or "It cites no notes.\n"
                )
                return
        write("There is no answer yet.\n")

    async def _model(self, wanted: str) -> None:
        if wanted:
            self.answering_model = (await ensure(self._models, wanted)).name
            await self._chat.use_model(self.answering_model)
        write(f"{self.answering_model}{' answers from now on.' if wanted else ''}\n")

    async def _delete(self, conversation_id: str) -> None:
        if self._chat.conversation.id.startswith(conversation_id):
            raise InvalidRequest("This conversation is open. Begin another one first: /new")
        await self._chat.delete(conversation_id)
        write("Deleted.\n")

    def _message(self, argument: str, usage: str) -> PathMessage:
        path = self._chat.path
        if not (argument.isascii() and argument.isdigit() and 1 <= int(argument) <= len(path)):
            raise InvalidRequest(f"{usage}: N is one of the {len(path)} numbers that /show shows.")
        return path[int(argument) - 1]


def command_of(line: str) -> str:
    """The first word, in small letters."""
    return next(iter(line.split(maxsplit=1)), "").lower()


def show_path(conversation: ChatController) -> None:
    """Title and messages, each with its number and its place among its siblings; long ones cut to a line."""
    write(f"{conversation.conversation.title}\n")
    for number, shown in enumerate(conversation.path, start=1):
        message = shown.message
        line = shortened(" ".join((message.content or message.error or "").split()), _LINE_SHOWN)
        marks: list[str] = [] if message.state == "complete" else [message.state]
        if len(shown.siblings) > 1:
            marks.append(f"{shown.siblings.index(message.id) + 1} of {len(shown.siblings)}")
        who = "you" if message.role == "user" else message.model or "UNIUN"
        mark = f" ({', '.join(marks)})" if marks else ""
        write(f"{number:3} {who}{mark}: {line}\n")


def _needed(argument: str, usage: str) -> str:
    if not argument:
        raise InvalidRequest(f"It is: {usage}")
    return argument
