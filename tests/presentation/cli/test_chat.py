"""`uniun chat` through pipes, and through a real terminal with real keys."""

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from domain.entities.conversation import ChatMessage
from domain.errors import ConversationNotFound, DatabaseError, EngineError, InvalidRequest, ModelUnavailable
from presentation.cli.app import build_app
from presentation.cli.openers import Openers
from tests.fakes import MemoryStore, ScriptedCoordinator, answer, fake_openers
from tests.memory.conversations import MemoryConversations
from tests.memory.library import MemoryLibrary

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = [sys.executable, "-m", "tests.presentation.cli.chat_program"]
LIMIT_S = 240
CTRL_C, CTRL_D, ENTER = b"\x03", b"\x04", b"\r"


def chat(
    text: str,
    coordinator: ScriptedCoordinator,
    store: MemoryStore | None = None,
    openers: Openers | None = None,
    arguments: tuple[str, ...] = (),
) -> tuple[str, str]:
    app = build_app(openers or fake_openers(coordinator, store))
    result = CliRunner().invoke(app, ["chat", "-s", "Be brief.", *arguments], input=text)
    assert result.exit_code == 0, result.exception
    return result.stdout, result.stderr


def test_piped_lines_are_turns_of_one_conversation() -> None:
    coordinator = ScriptedCoordinator(answer("One", "."), answer("[b]Two[/b]\x1b[2J"))
    out, err = chat("first\n\nsecond\n/quit\nnever\n", coordinator)
    assert out == "One.\n[b]Two[/b][2J\n"
    assert err == ""
    assert [m.content for m in coordinator.requests[1].messages] == ["Be brief.", "first", "One.", "second"]
    assert coordinator.surfaces[-1] == (None, None)


def test_commands() -> None:
    coordinator = ScriptedCoordinator()
    store = MemoryStore("tiny", "other")
    out, err = chat(
        "/help\none\n/new\n/model other\n/model absent\n/model\ntwo\n/dance\n", coordinator, store
    )
    assert "/model [NAME]" in out
    assert "A new conversation." in out
    assert "other answers from now on.\nother\n" in out
    assert "There is no model absent" in err
    assert "/dance is no command" in err
    assert [request.model for request in coordinator.requests] == ["tiny", "other"]
    assert [m.content for m in coordinator.requests[1].messages] == ["Be brief.", "two"]


def test_commands_in_capitals_with_more_behind_them_or_misspelt() -> None:
    coordinator = ScriptedCoordinator()
    out, err = chat("/HELP\n/Hlep\n/retri\n/zzz\n/QUIT now\nnever\n", coordinator)
    assert out.startswith("/new ")
    assert err == (
        "uniun: /hlep is no command; did you mean /help? /help lists them.\n"
        "uniun: /retri is no command; did you mean /retry? /help lists them.\n"
        "uniun: /zzz is no command; /help lists them.\n"
    )
    assert coordinator.requests == []


def test_a_failed_answer_does_not_end_the_conversation() -> None:
    coordinator = ScriptedCoordinator(
        [*answer("Ha")[:1], EngineError("It broke. Ask again.")], answer("Fine.")
    )
    out, err = chat("one\ntwo\n", coordinator)
    assert out == "Ha\nFine.\n"
    assert err == "uniun: It broke. Ask again.\n"


def test_an_answer_that_the_database_does_not_take_is_tried_again_and_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, refusals = MemoryConversations.put_message, [3]

    async def put_message(self: MemoryConversations, message: ChatMessage) -> None:
        if message.state == "complete" and message.role == "assistant" and refusals[0]:
            refusals[0] -= 1
            raise DatabaseError("It cannot be reached.")
        await real(self, message)

    monkeypatch.setattr(MemoryConversations, "put_message", put_message)
    out, err = chat("one\n/show\n", ScriptedCoordinator(answer("Here.")))
    assert "  2 tiny: Here.\n" in out
    assert err == (
        "uniun: the answer is not kept yet; it is tried again until Ctrl-C. It cannot be reached.\n"
    )


def test_the_conversation_is_kept_and_can_be_gone_on_with() -> None:
    coordinator = ScriptedCoordinator(answer("One."), answer("Two."), answer("Three."))
    openers = fake_openers(coordinator)
    chat("first\n", coordinator, openers=openers)
    chat("second\n", coordinator, openers=openers, arguments=("--last",))
    out, _ = chat("/list\n/open id\n/list nonsense\n", coordinator, openers=openers)
    assert out.splitlines()[0].split()[0].startswith("id")
    assert out.splitlines()[0].endswith("  first")
    assert "  1 you: first\n  2 tiny: One.\n  3 you: second\n  4 tiny: Two.\n" in out
    assert out.endswith("No conversation.\n")
    assert [m.content for m in coordinator.requests[1].messages] == ["Be brief.", "first", "One.", "second"]


def test_branches() -> None:
    coordinator = ScriptedCoordinator(*(answer(word) for word in ("One.", "Uno.", "Two.", "Three.")))
    out, err = chat(
        "first\n/retry\n/other 2\n/branch 2\nsecond\n/edit the second\n/show\n"
        "/branch 9\n/other 2x\n/edit\n/branch 1\n/other 1\n",
        coordinator,
    )
    assert out.startswith("One.\nUno.\nfirst\n  1 you: first\n  2 tiny (1 of 2): One.\n")
    assert "  3 you (2 of 2): the second\n  4 tiny: Three.\n" in out
    assert "/branch N: N is one of the 4 numbers" in err
    assert "/other N: N is one of" in err
    assert "It is: /edit QUESTION" in err
    assert "Nothing else was said in its place" in err
    assert [m.content for m in coordinator.requests[3].messages] == [
        "Be brief.",
        "first",
        "One.",
        "the second",
    ]


def test_answers_cite_notes() -> None:
    library = MemoryLibrary()
    asyncio.run(library.write("n1", "Green\x1b tea", "Green tea steeps two minutes."))
    asyncio.run(library.write("n2", "Black tea", "Black tea steeps four minutes, and tastes of smoke."))
    coordinator = ScriptedCoordinator(answer("Two minutes [1]."), answer("It depends."))
    out, err = chat(
        "How long does green tea steep?\n/sources\nHow long does tea steep?\n",
        coordinator,
        openers=fake_openers(coordinator, library=library),
    )
    assert out == (
        "Two minutes [1].\n\n[1] Green tea\n[1] Green tea\nIt depends.\n\n"
        "Looked at, not cited: Green tea; Black tea\n"
    )
    assert err == ""
    first, second = coordinator.requests
    assert "[1] Green" in first.messages[-1].content
    assert first.messages[0] == second.messages[0]
    assert second.messages[1].content == "How long does green tea steep?"


def test_a_scope_a_title_and_deleting() -> None:
    library = MemoryLibrary()
    manas = asyncio.run(library.manases.create("Tea"))
    asyncio.run(library.write("n1", "Green tea", "Green tea steeps two minutes."))
    asyncio.run(library.write("n2", "White tea", "White tea steeps one minute."))
    asyncio.run(library.manases.add(manas.id, ["n2"]))
    coordinator = ScriptedCoordinator()
    openers = fake_openers(coordinator, library=library)
    out, err = chat(
        "How long does tea steep?\n/title My [b]tea\n/manas\n/manas nonsense\n/delete id\n/new\n/delete id0002\n/list\n",
        coordinator,
        openers=openers,
        arguments=("--manas", "Tea"),
    )
    assert "Green" not in coordinator.requests[0].messages[-1].content
    assert "White" in coordinator.requests[0].messages[-1].content
    assert "My [b]tea\nFrom now on: all notes.\n" in out
    assert "no Manas nonsense" in err
    assert "This conversation is open." in err


def test_thinking_is_not_shown() -> None:
    out, _ = chat("x\n", ScriptedCoordinator(answer("<thi", "nk>Hm.</think>\n\nFo", "ur.")))
    assert out == "Four.\n"


def test_a_hindrance_is_told_once() -> None:
    library = MemoryLibrary()
    asyncio.run(library.write("n1", "Green tea", "Green tea steeps two minutes."))
    library.embedder.error = ModelUnavailable("The index cannot be reached.")
    coordinator = ScriptedCoordinator()
    out, err = chat("green tea?\nand tea?\n", coordinator, openers=fake_openers(coordinator, library=library))
    assert err == "uniun: the notes are searched by words alone: The index cannot be reached.\n"
    assert "Looked at, not cited: Green tea" in out


def test_options_that_exclude_each_other_and_conversations_that_are_not_there() -> None:
    app = build_app(fake_openers())
    both = CliRunner().invoke(app, ["chat", "--last", "--conversation", "x"])
    assert both.exit_code == 2
    assert isinstance(CliRunner().invoke(app, ["chat", "--last"]).exception, InvalidRequest)
    absent = CliRunner().invoke(app, ["chat", "--conversation", "x"])
    assert isinstance(absent.exception, ConversationNotFound)


class Terminal:
    """The other end of a pseudo-terminal."""

    def __init__(self, end: int, program: subprocess.Popen[bytes]) -> None:
        self.end = end
        self._program = program
        self._seen = ""

    def press(self, *keys: bytes) -> None:
        for key in keys:
            os.write(self.end, key)

    def interrupt(self) -> None:
        self._program.send_signal(signal.SIGINT)

    def kill(self, number: signal.Signals) -> None:
        self._program.send_signal(number)

    def expect(self, words: str) -> str:
        """Reads until the words have appeared, forgets everything up to them, and returns what was before."""
        while words not in self._seen:
            assert self._read(), f"{words!r} did not come; seen: {self._seen!r}"
        before, self._seen = self._seen.split(words, 1)
        return before

    def status(self) -> int:
        while self._read():
            pass
        return self._program.wait(LIMIT_S)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.end], [], [], LIMIT_S)
        assert ready, f"silence; seen: {self._seen!r}"
        try:
            data = os.read(self.end, 65536)
        except OSError:  # how Linux says that the program has closed its end
            return False
        self._seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace"))
        return bool(data)


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    env = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    # As its controlling terminal, so that Ctrl-C becomes a signal as it does for a user.
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=ROOT, env=env, preexec_fn=lambda: os.login_tty(theirs)
    ) as program:
        os.close(theirs)
        try:
            yield Terminal(ours, program)
        finally:
            program.kill()
            os.close(ours)


def test_ctrl_c_stops_the_answer_and_not_the_program_and_ctrl_d_leaves() -> None:
    with terminal("chat") as screen:
        screen.expect(">")
        screen.press(b"question", ENTER)
        screen.expect("Half an answer")
        screen.press(CTRL_C)
        screen.expect("stopped")
        screen.expect(">")
        screen.press(b"again", ENTER)
        screen.expect("A whole one.")
        screen.expect(">")
        screen.press(b"more", ENTER)
        screen.expect("loading tiny")  # after a second of silence
        screen.press(CTRL_C)
        screen.expect("stopped")
        screen.expect(">")
        screen.press(CTRL_D)
        assert screen.status() == 0


def echoes(screen: Terminal) -> bool:
    return bool(termios.tcgetattr(screen.end)[3] & termios.ECHO)


def test_what_is_typed_while_an_answer_streams_is_not_shown_but_kept() -> None:
    with terminal("chat") as screen:
        screen.expect(">")
        screen.press(b"question", ENTER)
        screen.expect("Half an answer")
        assert not echoes(screen)
        screen.press(b"/show", b"\n")
        screen.interrupt()  # Ctrl-C as a key would make the terminal forget what was typed
        before = screen.expect("stopped")
        assert "/show" not in before
        screen.expect("  1 you: question")
        screen.expect(">")
        screen.press(CTRL_D)
        assert screen.status() == 0
        assert echoes(screen)


@pytest.mark.parametrize("killer", [signal.SIGTERM, signal.SIGHUP])
def test_a_chat_that_is_killed_while_it_answers_leaves_the_echo_on(killer: signal.Signals) -> None:
    with terminal("chat") as screen:
        screen.expect(">")
        screen.press(b"question", ENTER)
        screen.expect("Half an answer")
        screen.kill(killer)
        assert screen.status() == -killer
        assert echoes(screen)


def test_several_pasted_lines_are_one_message() -> None:
    with terminal("chat") as screen:
        screen.expect(">")
        screen.press(b"\x1b[200~first\rsecond\x1b[201~", ENTER)
        screen.expect("Half an answer")
        screen.press(b"\x1b[200~third\rfourth\x1b[201~\r")
        screen.interrupt()
        screen.expect("A whole one.")
        screen.press(b"/show", ENTER)
        screen.expect("  1 you: first second")
        screen.expect("  3 you: third fourth")


def test_ctrl_c_twice_at_the_prompt_leaves() -> None:
    with terminal("chat") as screen:
        screen.expect(">")
        screen.press(b"half a line", CTRL_C)
        screen.expect("Ctrl-C again")
        screen.expect(">")
        screen.press(CTRL_C)
        assert screen.status() == 0


def test_a_line_after_ctrl_c_forgets_it() -> None:
    with terminal("chat") as screen:
        screen.expect(">")
        screen.press(CTRL_C)
        screen.expect("Ctrl-C again")
        screen.expect(">")
        screen.press(b"/model", ENTER)
        screen.expect("tiny")
        screen.expect(">")
        screen.press(CTRL_C)
        screen.expect("Ctrl-C again")
        screen.expect(">")
        screen.press(CTRL_D)
        assert screen.status() == 0


def test_a_signal_at_the_prompt_leaves() -> None:
    with terminal("chat") as screen:
        screen.expect(">")
        screen.interrupt()
        assert screen.status() == 0


def test_ctrl_c_ends_ask_with_1_and_without_a_traceback() -> None:
    program = subprocess.Popen(
        [*PROGRAM, "ask", "question"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert program.stdout is not None
    assert program.stdout.read(len("Half an answer")) == b"Half an answer"
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 1
    assert out == b""
    assert err == b"uniun: stopped.\n"


def test_ctrl_c_while_waiting_for_a_piped_line_leaves() -> None:
    with subprocess.Popen(
        [*PROGRAM, "chat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(b"/model\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"tiny\n"
        program.send_signal(signal.SIGINT)
        assert program.wait(LIMIT_S) == 0


def test_piped_bytes_that_are_no_text_are_refused() -> None:
    app = build_app(fake_openers())
    result = CliRunner().invoke(app, ["chat"], input=b"\n\n\xff\n")
    assert isinstance(result.exception, InvalidRequest)
    assert "byte 1 of line 3" in str(result.exception)


@pytest.mark.parametrize("last", ["/quit\n", ""])
def test_the_end_of_the_input_leaves(last: str) -> None:
    out, _ = chat(f"hello\n{last}", ScriptedCoordinator())
    assert out == "Hello there.\n"
