"""`uniun chat`: a conversation on the terminal."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing

from domain.entities.llm import Finished, GenerationResult, TextDelta
from domain.errors import UniunError
from presentation.cli.openers import Controllers
from presentation.cli.progress import WaitingLine, ensure
from presentation.cli.prompt import Reader, open_reader
from presentation.cli.terminal import out, say, write
from presentation.controllers.chat import ChatController

HELP = """\
/new          begin a new conversation
/model NAME   let another installed model answer from now on
/model        name the model that answers
/quit         leave
Ctrl-C stops an answer; Ctrl-D, or Ctrl-C twice at the prompt, leaves."""


async def chat(
    open_controllers: Callable[[], AbstractAsyncContextManager[Controllers]],
    model: str | None,
    system: str | None,
) -> None:
    """Runs until the user leaves."""
    async with open_controllers() as controllers:
        installed = await ensure(controllers.models, model)
        with controllers.chat(installed.name, system) as conversation:
            reader = open_reader()
            if reader.interactive:
                out().print(f"{installed.name}. /help lists the commands.", style="dim")
            await _Session(controllers, conversation, reader).run()


class _Session:
    def __init__(self, controllers: Controllers, conversation: ChatController, reader: Reader) -> None:
        self._models = controllers.models
        self._chat = conversation
        self._reader = reader
        self._leaving = False

    async def run(self) -> None:
        """One line after another; Ctrl-C goes to the answer while there is one."""
        loop = asyncio.get_running_loop()
        reading = asyncio.current_task()
        assert reading is not None

        def interrupt() -> None:
            if self._chat.answering:
                self._chat.cancel()
            else:
                self._leaving = True
                reading.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            while (line := await self._reader.read()) is not None:
                if line.startswith("/"):
                    if line.strip() == "/quit":
                        return
                    await self._command(line)
                elif line.strip():
                    await self._answer(line)
        except asyncio.CancelledError:
            if not self._leaving:
                raise
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _command(self, line: str) -> None:
        name, _, argument = line.strip().partition(" ")
        match name, argument.strip():
            case "/help", _:
                write(HELP + "\n")
            case "/new", _:
                self._chat.restart()
                write("A new conversation.\n")
            case "/model", "":
                write(f"{self._chat.model}\n")
            case "/model", wanted:
                await self._change_model(wanted)
            case _:
                say(f"{name} is no command; /help lists them.")

    async def _change_model(self, wanted: str) -> None:
        try:
            self._chat.model = (await ensure(self._models, wanted)).name
        except UniunError as error:
            say(str(error))
        else:
            write(f"{self._chat.model} answers from now on.\n")

    async def _answer(self, question: str) -> None:
        """Shows the answer as it comes. An error ends the answer, not the conversation."""
        result: GenerationResult | None = None
        begun = False
        with WaitingLine(f"waiting for {self._chat.model}") as waiting:
            try:
                async with aclosing(self._chat.send(question)) as events:
                    async for event in events:
                        match event:
                            case TextDelta(text=text):
                                waiting.close()
                                begun = True
                                write(text)
                            case Finished(result=result):
                                pass
                            case _:
                                waiting.tell(event)
            except UniunError as error:
                waiting.close()
                write("\n" if begun else "")
                say(str(error))
                return
        write("\n" if begun else "")
        self._footer(result)

    def _footer(self, result: GenerationResult | None) -> None:
        if not (self._reader.interactive and sys.stdout.isatty()):
            return
        if result is None:
            out().print("stopped", style="dim")
        else:
            out().print(describe(result), style="dim")


def describe(result: GenerationResult) -> str:
    """Tokens, time to the first one, and speed, as measured for this answer."""
    count = result.usage.completion_tokens
    parts = [f"{count} tokens"]
    if result.first_token_s is not None:
        parts.append(f"first after {result.first_token_s:.2f} s")
    if result.service_s > 0:
        parts.append(f"{count / result.service_s:.0f} tokens/s with the prompt")
    if result.finish_reason == "length":
        parts.append("cut at the longest answer")
    return " · ".join(parts)
