"""Whatever goes wrong within one job ends that job only."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from data.children.lines import Line
from data.clock import SystemClock
from data.inference import engine
from data.inference.backend import Interrupted, Vocabulary
from data.inference.batches import MOST_ONE_BY_ONE, Batches
from data.inference.options import EngineOptions
from data.inference.protocol import error_from_line
from data.inference.stops import Stops
from data.inference.token_loop import TokenLoop
from domain.entities.llm import Sampling
from domain.errors import (
    EngineError,
    InvalidRequest,
    ModelDamaged,
    ModelLoadFailed,
    PromptTooLong,
    UniunError,
)
from domain.repositories.inference_runner import RunnerJob
from tests.data.inference.engines import chat

CONTEXT = 64
END = 256
LONGEST = "ten bytes!"
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"


class Bytes:
    """A back-end on which every byte is a token; it answers `abab…` and fails as and where it is told."""

    name = "bytes"
    context_tokens = CONTEXT
    slots = 3
    least_chunk, most_chunk = 8, 512
    last_alone = False
    interruptible = True

    def __init__(self) -> None:
        self.failures: dict[str, BaseException] = {}
        self.interrupted = False
        self.before_evaluation: Callable[[], None] = lambda: None
        self.held: dict[int, int] = {}
        self.evaluated: list[int] = []
        self.row = np.zeros(258, np.float32)
        self.encoded = 0
        self.stuck = False
        """The logits stay as the test has set them."""
        self.closed = False
        self.vocabulary = Vocabulary(258, self.piece, {}, frozenset({END}), self.encode, None, TEMPLATE)

    def may_fail(self, where: str) -> None:
        if where in self.failures:
            raise self.failures[where]

    def piece(self, token: int) -> bytes:
        self.may_fail("piece")
        return LONGEST.encode() if token == 257 else b"" if token == END else bytes([token])

    def encode(self, text: str, specials: bool) -> list[int]:
        self.may_fail("encode")
        self.encoded += len(text)
        return list(text.encode())

    def arm(self) -> None:
        self.interrupted = False

    def interrupt(self) -> None:
        self.interrupted = True

    def evaluate(self, sequence: int, tokens: Sequence[int], position: int, *, want_logits: bool) -> None:
        self.may_fail("prefill" if len(tokens) > 1 else "evaluate")
        self.before_evaluation()
        if self.interrupted:
            raise Interrupted
        self.held[sequence] = position + len(tokens)
        self.evaluated.append(len(tokens))
        if not self.stuck:
            self.row[:] = 0
            self.row[ord("b" if tokens[-1] == ord("a") else "a")] = 1

    def sample(self, sampling: Sampling, position: int) -> int:
        self.may_fail("sample")
        return int(self.row.argmax())

    def logits(self) -> NDArray[np.float32]:
        self.may_fail("logits")
        return self.row.copy()

    def trim(self, sequence: int, tokens: int) -> bool:
        self.held[sequence] = tokens
        return True

    def clear(self, sequence: int) -> None:
        self.held.pop(sequence, None)

    def kv_bytes(self, sequence: int) -> int:
        return 0

    def close(self) -> None:
        self.closed = True


def job(name: str = "j", **fields: object) -> RunnerJob:
    given = {"id": name, "cache_key": name, "prompt": "hello", "max_tokens": 6} | fields
    return RunnerJob.model_validate(given)


class Play:
    """The engine on that back-end, spoken to in lines."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.backend = Bytes()
        self.said: list[Line] = []
        self.stops = Stops()
        monkeypatch.setattr(engine, "_open", lambda *_: self.backend)
        self.engine = engine.Engine(self.said.append, self.stops, SystemClock())

    def ask(self, line: Line) -> Line:
        self.said.clear()
        self.engine.answer({"id": 1, **line})
        return self.said[-1]

    def load(self) -> Line:
        options = EngineOptions().model_dump()
        return self.ask({"do": "load", "model": "m", "backend": "b", "path": "/m.gguf", "options": options})

    def run(self, job: RunnerJob, since: str = "2026-01-01T12:00:00+00:00") -> Line:
        return self.ask(
            {
                "do": "run",
                "job": job.model_dump(mode="json"),
                "produced": [],
                "batches": [],
                "since": since,
                "stop": False,
            }
        )


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    made = Play(monkeypatch)
    assert "done" in made.load()
    return made


def error_of(line: Line) -> UniunError:
    return error_from_line(line["error"])


FAILURES = [
    *(OverflowError("too large"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")),
    *(MemoryError(), RecursionError("too deep"), KeyError("x"), TypeError("x"), RuntimeError("on fire")),
    *(AssertionError(), AttributeError("x"), ZeroDivisionError("x"), OSError("x"), EngineError("x")),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize(
    ("where", "kind"),
    [
        *(("encode", InvalidRequest), ("prefill", EngineError), ("evaluate", EngineError)),
        *(("sample", EngineError), ("piece", EngineError), ("logits", EngineError)),
    ],
)
def test_a_job_that_fails_fails_alone_and_leaves_nothing(
    play: Play, where: str, kind: type[UniunError], failure: Exception
) -> None:
    assert "done" in play.run(job("before"))
    held = dict(play.backend.held)
    play.backend.failures[where] = failure
    error = error_of(play.run(job("failing", prompt="quite another prompt")))
    assert isinstance(error, EngineError if isinstance(failure, EngineError) else kind)
    if not isinstance(failure, EngineError):
        assert "failing" in str(error)
        assert type(failure).__name__ in str(error)
    assert play.backend.held == held
    play.backend.failures.clear()
    assert play.run(job("failing"))["done"]["text"] == "ababab"
    assert play.run(job("after"))["done"]["text"] == "ababab"


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), SystemExit(1)], ids=["interrupt", "exit"])
def test_an_end_of_the_process_is_no_failure_of_a_job(play: Play, failure: BaseException) -> None:
    play.backend.failures["sample"] = failure
    with pytest.raises(type(failure)):
        play.run(job())


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_tokenized(play: Play) -> None:
    for fields in ({"prompt": "x" * 4_000_000}, {"prompt": None, "messages": chat("x" * 4_000_000)}):
        error = error_of(play.run(job(**fields)))
        assert isinstance(error, PromptTooLong)
        assert (error.prompt_tokens, error.context_tokens, error.at_least) == (400_000, CONTEXT, True)
        assert "at least 400000 tokens" in str(error)
    assert play.backend.encoded == 0


@pytest.mark.parametrize(
    ("size", "counted"),
    [(CONTEXT - 1, True), (CONTEXT, True), (10 * CONTEXT - 10, True), (10 * CONTEXT, False)],
)
def test_a_prompt_that_might_fit_is_counted_exactly(play: Play, size: int, counted: bool) -> None:
    line = play.run(job(prompt="x" * size, max_tokens=1))
    assert (play.backend.encoded == size) is counted
    if size < CONTEXT:
        assert "done" in line
    else:
        error = error_of(line)
        assert isinstance(error, PromptTooLong)
        assert error.at_least is not counted


ROWS: dict[str, Callable[[NDArray[np.float32]], None]] = {
    "all NaN": lambda row: row.fill(math.nan),
    "one NaN": lambda row: row.__setitem__(7, math.nan),
    "infinite": lambda row: row.__setitem__(7, math.inf),
    "all equal": lambda row: row.fill(0.5),
}


@pytest.mark.parametrize("spoil", ROWS.values(), ids=ROWS)
def test_weights_that_compute_nonsense_are_refused_at_the_load(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[NDArray[np.float32]], None]
) -> None:
    play = Play(monkeypatch)
    play.backend.stuck = True
    spoil(play.backend.row)
    error = error_of(play.load())
    assert isinstance(error, ModelDamaged)
    for part in (str(Path("/m.gguf")), "`uniun models pull m`", "put the undamaged file back"):
        assert part in str(error)
    assert play.backend.closed
    assert "holds no model" in str(error_of(play.run(job())))


@pytest.mark.parametrize("spoil", ROWS.values(), ids=ROWS)
def test_nonsense_that_comes_later_ends_the_job_with_an_error(
    play: Play, spoil: Callable[[NDArray[np.float32]], None]
) -> None:
    play.backend.stuck = True
    spoil(play.backend.row)
    error = error_of(play.run(job()))
    assert isinstance(error, EngineError)
    assert "The model" in str(error)


@pytest.mark.parametrize("failure", FAILURES[:-1], ids=lambda failure: type(failure).__name__)
def test_a_model_that_cannot_be_run_is_refused_and_the_engine_goes_on(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    play = Play(monkeypatch)
    play.backend.failures["evaluate"] = failure
    assert isinstance(error_of(play.load()), ModelLoadFailed)
    assert play.backend.closed
    play.backend.failures.clear()
    assert "done" in play.load()
    assert play.run(job())["done"]["text"] == "ababab"


def test_a_loop_told_to_stop_by_an_error_of_its_caller_drops_the_job() -> None:
    backend = Bytes()
    loop = TokenLoop(backend, EngineOptions(), SystemClock())

    def fail(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    with pytest.raises(EngineError, match="BrokenPipeError"):
        loop.run(job(), [], fail, lambda: False)
    assert backend.held == {}


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_stop_interrupts_what_is_being_evaluated_and_loses_nothing(play: Play, at: int) -> None:
    whole = play.run(job("whole"))["done"]["text"]
    evaluations = 0

    def stop_at() -> None:
        nonlocal evaluations
        evaluations += 1
        if evaluations == at:
            play.stops.ask("j")

    play.backend.before_evaluation = stop_at
    stopped = play.run(job(prompt="a quite different prompt"))["done"]
    assert stopped["status"] == "stopped"
    assert evaluations == at
    play.stops.withdraw("j")
    resumed = play.run(job(prompt="a quite different prompt"))["done"]
    assert resumed["status"] == "finished"
    assert resumed["text"] == play.run(job("again", prompt="a quite different prompt"))["done"]["text"]
    assert len(resumed["text"]) == len(whole)


def test_a_stop_for_another_job_interrupts_nothing(play: Play) -> None:
    play.backend.before_evaluation = lambda: play.stops.ask("another")
    assert play.run(job())["done"]["text"] == "ababab"


def test_an_interruption_that_nobody_asked_for_costs_time_only(play: Play) -> None:
    left = 3

    def interrupt() -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            play.backend.interrupt()

    play.backend.before_evaluation = interrupt
    assert play.run(job())["done"]["text"] == "ababab"


def test_a_prompt_with_the_date_has_that_on_which_its_job_first_ran(play: Play) -> None:
    """Also in another process, behind midnight."""
    play.backend.vocabulary = replace(play.backend.vocabulary, template="{{ strftime_now('%Y' * 6) }}")
    play.load()
    today = job(prompt=None, messages=chat("What day is it?"), max_tokens=1)
    for year in ("2025", "2031"):
        play.run(today, f"{year}-07-01T12:00:00+00:00")
        [slot] = play.engine._loop._kv._slots  # type: ignore[union-attr]
        assert bytes(slot.tokens).decode() == year * 6
        play.load()


def test_text_that_comes_with_the_end_comes_in_one_line_with_it(play: Play) -> None:
    """Else an engine that dies between the two lines would have told it, and another would tell it again."""
    left = 3

    def end_soon() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            play.backend.stuck = True
            play.backend.row[:] = 0
            play.backend.row[END] = 1

    play.backend.before_evaluation = end_soon
    answer = play.run(job(stop=("abz",)))
    assert answer["done"]["text"] == "ab"
    assert answer["done"]["finish_reason"] == "stop"
    assert answer["at"][2:] == [2, None, "ab"]
    assert [line["at"][4] for line in play.said[:-1] if "at" in line] == ["", ""]


@pytest.mark.parametrize("last_alone", [False, True])
@pytest.mark.parametrize("produced", [0, 1, 2, 9, 30])
def test_what_a_lost_job_had_produced_is_evaluated_token_by_token(produced: int, last_alone: bool) -> None:
    """As it was the first time; the prompt is read in the same chunks whether something follows it or not."""
    backend = Bytes()
    backend.last_alone = last_alone
    loop = TokenLoop(backend, EngineOptions(), SystemClock())
    answer = [ord("ab"[at % 2]) for at in range(produced)]
    told: list[tuple[int, int]] = []
    loop.run(
        job(prompt="hello world!", max_tokens=produced + 1),
        answer,
        lambda prefilled, prompt, done, token, text: told.append((prefilled, done)),
        lambda: False,
    )
    assert backend.evaluated == ([11, 1] if last_alone else [12]) + [1] * produced
    assert told[-1] == (12, produced + 1)


def test_of_a_very_long_answer_only_the_end_is_evaluated_token_by_token() -> None:
    """Else a job that loses its state in every run might never come further."""
    backend = Bytes()
    backend.context_tokens = 4096
    answer = [ord("ab"[at % 2]) for at in range(2000)]
    for batches in (Batches(), Batches([(11, 11), (1, 1)]), Batches([(11, 11), (1, 1500)])):
        backend.evaluated.clear()
        loop = TokenLoop(backend, EngineOptions(), SystemClock())
        lost = job(prompt="hello world!", max_tokens=2001)
        outcome = loop.run(lost, answer, lambda *told: None, lambda: False, batches)
        assert outcome.tokens_done == 2001
        assert sum(backend.evaluated) == 12 + 2000
        assert MOST_ONE_BY_ONE <= backend.evaluated.count(1) <= MOST_ONE_BY_ONE + 2


def test_a_job_that_loses_its_state_in_every_run_comes_to_its_end() -> None:
    """Three on two sequences, and each is stopped again after a few boundaries."""
    backend = Bytes()
    backend.slots = 2
    backend.context_tokens = 512
    loop = TokenLoop(backend, EngineOptions(), SystemClock())
    left = {name: job(name, prompt=f"{name}, once upon a time", max_tokens=60) for name in ("a", "b", "c")}
    seen: list[int] = []

    def count(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
        seen.append(done)

    for _ in range(200):
        for name in list(left):
            seen.clear()
            outcome = loop.run(left[name], [], count, lambda: len(seen) >= 6)
            if outcome.status == "finished":
                del left[name]
    assert not left
