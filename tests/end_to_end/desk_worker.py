"""The app, with a user who does everything at once, or the background process; to be killed.

Everything is real but the weights and the speed of time: the app is what `uniun.open_app` builds, over a model that
answers by rule and an embedder that counts words. What the user has been told is written to a journal first.
"""

import asyncio
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer
from sqlmodel import col, select

import uniun
from background.process import BackgroundProcess
from data.database.tables.gana import GanaRow
from data.embedding.worker import EmbeddingWorker
from data.inference.fake import FakeRunner
from data.settings import Settings
from domain.entities.conversation import AnswerBegun
from domain.entities.nataraj import WHOLE_LIBRARY
from domain.repositories.inference_runner import RunnerJob
from presentation.cli.openers import Controllers
from presentation.controllers.gana import GanaController
from tests.end_to_end.fast_time import FastClock, FastLoop
from tests.fakes import MemoryStore
from tests.memory.embedder import WordEmbedder

ANSWER = " ".join(f"word{number}" for number in range(100))
ECHO = "echo"
MARK = re.compile(r"mark-\w+")
TICKS, FIRST_TICK_S, TICK_S = 60, 200.0, 30.0
"""One-shot Ganas, the fast seconds until the first is due, and from one to the next."""
USER_PAUSE_S = 20.0


def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, log_dir=folder, background_interval_s=5)


class Journal:
    """What somebody was told. A line is on the disk when `tell` returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(self, *words: str) -> None:
        os.write(self._descriptor, (" ".join(words) + "\n").encode())
        os.fsync(self._descriptor)


def model(beat: Callable[[], None]) -> FakeRunner:
    """Extraction gets JSON, a Gana the marks that it was shown, everybody else the same long answer."""

    def answer(job: RunnerJob) -> str:
        if job.json_schema is not None:
            return '{"concepts": [], "relations": [], "summary": ""}'
        if job.messages[0].content.startswith("You write short notes"):
            marks = dict.fromkeys(MARK.findall(job.messages[-1].content))
            return " ".join(["It ran.", *marks])
        return ANSWER

    return FakeRunner(
        ("tiny",),
        answer=answer,
        context_tokens=100_000,
        prefill_chunk=256,
        on_boundary=lambda job, progress: beat(),
    )


def fast_container(folder: Path, beat: Callable[[], None]) -> DeclarativeContainer:
    container = uniun.build_container(settings(folder))
    container.clock.override(providers.Object(FastClock()))
    container.store.override(providers.Object(MemoryStore("tiny")))
    container.runner.override(providers.Object(model(beat)))
    container.embedder.override(providers.Object(WordEmbedder()))
    container.embedding_worker.override(
        providers.Singleton(
            EmbeddingWorker,
            container.vector_repository,
            providers.Object(nullcontext(WordEmbedder())),
            container.work_claims,
        )
    )
    return container


async def prepare(folder: Path) -> list[str]:
    """Ganas with due times, and one that repeats the marks of every new note; returns the ids of the former."""
    container = fast_container(folder, lambda: None)
    ganas: GanaController = container.gana_controller()
    try:
        echo = {"name": ECHO, "task": "Repeat.", "input_tag": "inbox", "output_tag": ECHO, "reactive": True}
        await ganas.enable((await ganas.create(echo)).id, on=True)
        start = FastClock().now()
        ids = []
        for number in range(1, TICKS + 1):
            once = {"mode": "one_shot", "once_at": start + timedelta(seconds=FIRST_TICK_S + number * TICK_S)}
            gana = await ganas.create({"name": f"tick {number}", "task": "Say something.", **once})
            ids.append((await ganas.enable(gana.id, on=True)).id)
        return ids
    finally:
        await container.database().aclose()


class User:
    """Types, imports, keeps cards and chats, and notes down whatever was said to be done."""

    def __init__(self, app: Controllers, folder: Path, life: int) -> None:
        self._app = app
        self._vault = folder / "vault"
        self._life = life
        self._journal = Journal(folder / "journal")

    async def write(self) -> None:
        for number in count():
            await self._type(f"mark-{self._life}t{number}")
            await self._import(f"mark-{self._life}f{number}")
            await self._play_a_card()
            await asyncio.sleep(USER_PAUSE_S)

    async def chat(self) -> None:
        chat = self._app.chat(None, None)
        with chat:
            await chat.begin()
            while True:
                async for event in chat.send("What is written about the river stone?"):
                    if isinstance(event, AnswerBegun):
                        self._journal.tell("asked", event.question_id, event.answer_id)
                        answer_id = event.answer_id
                self._journal.tell("answered", answer_id)

    async def _type(self, mark: str) -> None:
        note = await self._app.notes.add(f"# Typed {mark}\n\nA river stone.", tags=["inbox"])
        self._journal.tell("note", note.id)

    async def _import(self, mark: str) -> None:
        path = self._vault / f"{mark}.md"
        path.write_text(f"# File {mark}\n\nA stone. #inbox\n")
        report = await self._app.notes.import_folder(self._vault)
        assert not report.problems
        self._journal.tell("file", str(path))

    async def _play_a_card(self) -> None:
        cards = (await self._app.nataraj.deck(WHOLE_LIBRARY)).cards
        if cards:
            note = await self._app.nataraj.keep(cards[0].id)
            self._journal.tell("card", note.id)


async def app(folder: Path, life: int, beat: Callable[[], None]) -> None:
    uniun._container = lambda server=None: fast_container(folder, beat)
    async with uniun.open_app() as controllers:
        user = User(controllers, folder, life)
        await asyncio.gather(user.write(), user.chat())


async def last_app(folder: Path, beat: Callable[[], None]) -> None:
    """Until nothing is left to do."""
    container = fast_container(folder, beat)
    uniun._container = lambda server=None: container
    async with uniun.open_app() as controllers:
        while not await _is_done(controllers, container):  # noqa: ASYNC110 - nobody tells when a loop is idle
            await asyncio.sleep(10)


async def _is_done(controllers: Controllers, container: DeclarativeContainer) -> bool:
    ganas = await controllers.ganas.list()
    claimed = select(GanaRow.id).where(col(GanaRow.claim_due_at).is_not(None))
    ticks = await container.database().read(lambda session: session.exec(claimed).all())
    waiting = [*ticks, *(gana.id for gana in ganas if gana.due_at is not None)]
    [echo] = [gana for gana in ganas if gana.draft.name == ECHO]
    unread = await container.note_repository().arrived_since(echo.cursor, tag="inbox", manas_id=None, limit=1)
    running = [run for run in await controllers.ganas.runs() if run.status == "running"]
    pending = (await container.knowledge_repository().pending_counts()).get("waiting", 0)
    return not (
        waiting or unread or running or pending or await container.vector_repository().waiting_count()
    )


async def background(folder: Path, beat: Callable[[], None]) -> None:
    process = BackgroundProcess(
        settings(folder), clock=FastClock(), store=MemoryStore("tiny"), make_runner=lambda: model(beat)
    )
    await process.run()


def live(mode: str, folder: Path, life: int, report: Connection) -> None:
    """One life. Sends an empty message when it begins and at every boundary of the model, and `done` at the end."""

    def beat() -> None:
        report.send_bytes(b"-")

    lives = {
        "app": lambda: app(folder, life, beat),
        "background": lambda: background(folder, beat),
        "last": lambda: last_app(folder, beat),
    }
    beat()
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        runner.run(lives[mode]())
    report.send_bytes(b"done")
