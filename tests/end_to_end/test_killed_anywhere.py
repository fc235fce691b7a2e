"""kill -9 of the app and of the background process in the middle of everything: nothing is lost, nothing is done twice."""

import asyncio
import multiprocessing
import random
import sqlite3
from collections import Counter
from pathlib import Path

from tests.end_to_end import desk_worker
from tests.end_to_end.desk_worker import ANSWER, ECHO, MARK, TICKS

KILLS = 50
MOST_BEATS = 700
"""Boundaries of the model that a life has at most."""
SILENCE_S = 0.2
"""A background process without a due Gana has none, and is killed after so long."""
PATIENCE_S = 60

# Children fork from a process that has imported everything, and that has no threads.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([desk_worker.__name__])


def live(mode: str, folder: Path, life: int, beats: int, spin: int) -> None:
    """Starts a process and kills it after so many beats and a little more."""
    report, theirs = _processes.Pipe(duplex=False)
    process = _processes.Process(target=desk_worker.live, args=(mode, folder, life, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        assert report.poll(PATIENCE_S), "it does not start"
        for _ in range(beats):
            if mode == "background" and not report.poll(SILENCE_S):
                break
            assert report.poll(PATIENCE_S), "it does nothing"
            report.recv_bytes()
        for _ in range(spin):
            pass
        assert process.is_alive(), "it ended by itself"
    finally:
        process.kill()
        process.join()


def live_to_the_end(folder: Path) -> None:
    report, theirs = _processes.Pipe(duplex=False)
    process = _processes.Process(target=desk_worker.live, args=("last", folder, KILLS, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        while report.poll(PATIENCE_S) and report.recv_bytes() != b"done":
            pass
        process.join(PATIENCE_S)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()


def test_everything_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    tick_ids = asyncio.run(desk_worker.prepare(tmp_path))
    chance = random.Random(3)
    for life in range(KILLS):
        mode = "background" if life % 2 else "app"
        live(mode, tmp_path, life, chance.randrange(1, MOST_BEATS), chance.randrange(100_000))
    live_to_the_end(tmp_path)

    told: dict[str, list[list[str]]] = {}
    for line in (tmp_path / "journal").read_text().splitlines():
        what, *ids = line.split()
        told.setdefault(what, []).append(ids)
    assert set(told) >= {"note", "file", "card", "asked", "answered"}, "the load did nothing"

    with sqlite3.connect(tmp_path / "uniun.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        database.execute("INSERT INTO note_search (note_search) VALUES ('integrity-check')")
        check_notes(database, told)
        check_messages(database, told)
        check_pending(database)
        check_ganas(database, tick_ids)


def check_notes(database: sqlite3.Connection, told: dict[str, list[list[str]]]) -> None:
    ids = {note_id for (note_id,) in database.execute("SELECT id FROM note")}
    assert {note_id for what in ("note", "card") for [note_id] in told[what]} <= ids
    origins = Counter(
        path for (path,) in database.execute("SELECT origin FROM note WHERE source = 'imported'")
    )
    assert {path for [path] in told["file"]} <= set(origins)
    assert set(origins.values()) == {1}
    cards = Counter(card for (card,) in database.execute("SELECT origin FROM note WHERE source = 'nataraj'"))
    assert set(cards.values()) == {1}


def check_messages(database: sqlite3.Connection, told: dict[str, list[list[str]]]) -> None:
    messages = {
        message_id: (role, state, content)
        for message_id, role, state, content in database.execute(
            "SELECT id, role, state, content FROM message"
        )
    }
    assert {message_id for ids in told["asked"] for message_id in ids} <= set(messages)
    for [message_id] in told["answered"]:
        assert messages[message_id] == ("assistant", "complete", ANSWER)
    answers = [(state, content) for role, state, content in messages.values() if role == "assistant"]
    assert {state for state, _ in answers} == {"complete", "stopped"}
    assert all(ANSWER.startswith(content) for _, content in answers)
    assert any(content for state, content in answers if state == "stopped")


def check_pending(database: sqlite3.Connection) -> None:
    """The last life had the time to read and embed all that was waiting."""
    notes = database.execute("SELECT count(*) FROM note").fetchone()
    assert database.execute("SELECT count(*) FROM pending_extraction").fetchone() == (0,)
    assert database.execute("SELECT count(*) FROM note_summary").fetchone() == notes
    assert database.execute("SELECT count(*) FROM pending_vector").fetchone() == (0,)
    current = "SELECT count(*) FROM note JOIN note_vector ON note_id = id AND note.content_hash = note_vector.content_hash"
    assert database.execute(current).fetchone() == notes


def check_ganas(database: sqlite3.Connection, tick_ids: list[str]) -> None:
    written = database.execute("SELECT origin FROM note WHERE source = 'gana'").fetchall()
    published = Counter(gana_id for (gana_id,) in written)
    assert [published[gana_id] for gana_id in tick_ids] == [1] * TICKS
    completed = "SELECT count(*) FROM gana_run WHERE completed_due_at IS NOT NULL AND status = 'succeeded'"
    assert database.execute(completed).fetchone() == (TICKS,)
    # A reaction that was killed is no tick; its claim may wait to be taken over.
    assert database.execute("SELECT count(*) FROM gana WHERE claim_due_at IS NOT NULL").fetchone() == (0,)
    # Every note of the inbox was shown to the reactive Gana once.
    [(echo,)] = database.execute("SELECT id FROM gana WHERE name = ?", (ECHO,)).fetchall()
    echoes = database.execute("SELECT text FROM note WHERE origin = ?", (echo,))
    seen = Counter(mark for (text,) in echoes for mark in MARK.findall(text))
    titles = database.execute("SELECT title FROM note WHERE source IN ('typed', 'imported')")
    assert seen == Counter(mark for (title,) in titles for mark in MARK.findall(title))
