"""`uniun chat`: a conversation on the terminal."""

import asyncio
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing
from dataclasses import dataclass

from domain.entities.conversation import AnswerBegun, AnswerEvent, AnswerUnkept, ThinkingDelta
from domain.entities.llm import Finished, GenerationResult, TextDelta
from domain.errors import InvalidRequest, UniunError
from presentation.cli.ask import sources
from presentation.cli.chat_commands import Commands, command_of, show_path
from presentation.cli.openers import Controllers
from presentation.cli.progress import WaitingLine, ensure
from presentation.cli.prompt import Reader, open_reader
from presentation.cli.quiet import quiet_terminal
from presentation.cli.terminal import out, say, write
from presentation.cli.wrap import WordWrap
from presentation.controllers.chat import ChatController
from presentation.counting import counted


@dataclass(frozen=True)
class Wanted:
    """What was typed."""

    model: str | None = None
    system: str | None = None
    manas: str | None = None
    conversation: str | None = None
    last: bool = False


async def chat(
    open_controllers: Callable[[], AbstractAsyncContextManager[Controllers]], wanted: Wanted
) -> None:
    """Runs until the user leaves."""
    async with open_controllers() as controllers:
        conversation = controllers.chat(wanted.model, wanted.system)
        await _enter(conversation, wanted)
        installed = await ensure(controllers.models, conversation.model)
        with conversation:
            reader = open_reader()
            if reader.interactive:
                out().print(f"{installed.name}. /help lists the commands.", style="dim")
                if conversation.path:
                    show_path(conversation)
            commands = Commands(controllers, conversation, installed.name)
            await _Session(conversation, commands, reader).run()


async def _enter(conversation: ChatController, wanted: Wanted) -> None:
    """Opens the conversation that is asked for, or begins one."""
    wanted_id = wanted.conversation
    if wanted.last:
        newest = await conversation.conversations(limit=1)
        if not newest:
            raise InvalidRequest("There is no conversation yet. Begin one with: uniun chat")
        wanted_id = newest[0].id
    if wanted_id is None:
        await conversation.begin(manas=wanted.manas)
        return
    await conversation.open(wanted_id)
    if wanted.model is not None:
        await conversation.use_model(wanted.model)
    if wanted.manas is not None:
        await conversation.use_manas(wanted.manas)


class _Session:
    def __init__(self, conversation: ChatController, commands: Commands, reader: Reader) -> None:
        self._chat = conversation
        self._commands = commands
        self._reader = reader
        self._leaving = False
        self._told_hindrance: str | None = None
        self._unkept = False
        """The answer has ended, and waits for the database."""

    async def run(self) -> None:
        """One line after another; Ctrl-C goes to the answer while there is one."""
        loop = asyncio.get_running_loop()
        reading = asyncio.current_task()
        assert reading is not None

        def interrupt() -> None:
            if self._chat.answering and not self._unkept:
                self._chat.cancel()
            else:
                self._leaving = True
                reading.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            while (line := await self._reader.read()) is not None:
                if command_of(line) == "/quit":
                    return
                await self._obey(line)
        except asyncio.CancelledError:
            if not self._leaving:
                raise
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _obey(self, line: str) -> None:
        """An error ends what the line asked for, not the conversation."""
        try:
            if not line.startswith("/"):
                if line.strip():
                    await self._answer(self._chat.send(line))
                return
            asked = await self._commands.run(line)
            if asked is not None:
                await self._answer(asked)
        except UniunError as error:
            say(str(error))

    async def _answer(self, stream: AsyncGenerator[AnswerEvent, None]) -> None:
        """Shows the answer as it comes, and the notes that it cites."""
        result: GenerationResult | None = None
        begun = False
        show = write
        with ExitStack() as stack:
            waiting = stack.enter_context(WaitingLine(f"waiting for {self._commands.answering_model}"))
            if self._reader.interactive:
                stack.enter_context(quiet_terminal())
                show = WordWrap(_emit, lambda: shutil.get_terminal_size().columns).write
            try:
                async with aclosing(stream) as events:
                    async for event in events:
                        match event:
                            case TextDelta(text=text):
                                waiting.close()
                                begun = True
                                show(text)
                            case ThinkingDelta():
                                waiting.show("thinking")
                            case AnswerBegun(hindrance=hindrance):
                                self._tell(hindrance)
                            case Finished(result=result):
                                pass
                            case AnswerUnkept(reason=reason):
                                waiting.close()
                                self._wait_for_database(reason)
                            case _:
                                waiting.tell(event)
            finally:
                self._unkept = False
                waiting.close()
                write("\n" if begun else "")
        if begun and self._chat.path:
            answer = self._chat.path[-1].message
            write(sources(answer.content, answer.citations))
        self._footer(result)

    def _tell(self, hindrance: str | None) -> None:
        """Once, and again only if it has changed."""
        if hindrance is not None and hindrance != self._told_hindrance:
            say(f"the notes are searched by words alone: {hindrance}")
        self._told_hindrance = hindrance

    def _wait_for_database(self, reason: str) -> None:
        """Says so once."""
        if not self._unkept:
            self._unkept = True
            write("\n")
            say(f"the answer is not kept yet; it is tried again until Ctrl-C. {reason}")

    def _footer(self, result: GenerationResult | None) -> None:
        if not (self._reader.interactive and sys.stdout.isatty()):
            return
        if result is None:
            out().print("stopped", style="dim")
        else:
            out().print(describe(result), style="dim")


def _emit(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def describe(result: GenerationResult) -> str:
    """Tokens, time to the first one, and speed, as measured for this answer."""
    count = result.usage.completion_tokens
    parts = [counted(count, "token")]
    if result.first_token_s is not None:
        parts.append(f"first after {result.first_token_s:.2f} s")
    if result.service_s > 0:
        parts.append(f"{counted(round(count / result.service_s), 'token')}/s with the prompt")
    if result.finish_reason == "length":
        parts.append("cut at the longest answer")
    return " · ".join(parts)
