"""The schema that migrations make, and schemas that are not ours."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from data.database import tables
from data.database.columns import Row
from data.database.schema import HEAD, MIGRATIONS
from data.database.session import PRAGMAS, Database, sqlite_url
from domain.errors import DatabaseError

_OURS: dict[str, Any] = {
    "include_name": lambda name, kind, _: kind != "table" or not str(name).startswith("note_search")
}


async def _open(url: str) -> None:
    async with Database(url):
        pass


def test_migrations_make_the_tables_that_the_program_uses(url: str) -> None:
    assert tables
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=_OURS)
        assert compare_metadata(context, Row.metadata) == []
    engine.dispose()


def test_there_is_one_newest_migration_and_the_program_knows_it() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_a_newer_schema_is_refused_untouched(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    path = None if engine.url.get_backend_name() != "sqlite" else Path(str(engine.url.database))
    before = path.read_bytes() if path else b""
    for _ in range(2):
        with pytest.raises(
            DatabaseError, match=r"newer version of UNIUN .*9999.* Nothing was changed\. Update UNIUN"
        ):
            asyncio.run(_open(url))
    assert (path.read_bytes() if path else b"") == before
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{HEAD}'"))
    engine.dispose()
    asyncio.run(_open(url))


def test_the_file_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE album (id INTEGER)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match="belongs to another program: it has the table album"):
        asyncio.run(_open(sqlite_url(path)))
    assert path.read_bytes() == before


def test_a_migration_that_cannot_end_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "uniun.db"
    url = sqlite_url(path)

    async def main() -> None:
        database = Database(url)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("data.database.session.PRAGMAS", (*PRAGMAS, "max_page_count = 20"))
            with pytest.raises(DatabaseError, match="disk is full"):
                await database.read(lambda session: None)
        await database.aclose()
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        await _open(url)

    asyncio.run(main())


def test_paths_may_have_any_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a folder %20 with ? and # and ü"
    asyncio.run(_open(sqlite_url(folder / "uni?un#%.db")))
    assert (folder / "uni?un#%.db").exists()


def test_what_a_gana_has_read_by_the_clock_it_has_read_by_number(blank_url: str) -> None:
    engine = create_engine(blank_url)
    columns = (
        "id, source, created_at, changed_at, content_hash, characters, title, tags, aliases, links, text"
    )
    at = "2026-01-01 00:00:0"
    with engine.begin() as connection:
        _upgrade(connection, "0001")
        for number, second in ((1, 2), (2, 1), (3, 3)):
            values = f"'n{number}', 'typed', '{at}0', '{at}{second}', '', 0, '', '[]', '[]', '[]', ''"
            connection.execute(text(f"INSERT INTO note ({columns}) VALUES ({values})"))
        for name, cursor in (("some", f"'{at}2'"), ("none", f"'{at}0'"), ("all", "NULL")):
            connection.execute(
                text(
                    "INSERT INTO gana (id, name, draft, enabled, cursor, created_at) "
                    f"VALUES ('{name}', '', '{{}}', false, {cursor}, '{at}0')"
                )
            )
        _upgrade(connection, "0002")
        notes = connection.execute(text("SELECT id FROM note ORDER BY change")).scalars().all()
        read: dict[str, int | None] = {
            row.id: row.cursor for row in connection.execute(text("SELECT id, cursor FROM gana"))
        }
        last = connection.execute(text("SELECT value FROM counter WHERE name = 'changes'")).scalar()
    engine.dispose()
    assert notes == ["n2", "n1", "n3"]
    assert read == {"some": 2, "none": 0, "all": None}
    assert last == 3


def test_what_a_gana_has_not_read_is_new_to_it_still(blank_url: str) -> None:
    engine = create_engine(blank_url)
    columns = "id, source, created_at, changed_at, content_hash, characters, title, tags, aliases, links, text, change"
    at = "2026-01-01 00:00:00"
    with engine.begin() as connection:
        _upgrade(connection, "0007")
        for name, change in (("old", 3), ("new", 8)):
            values = f"'{name}', 'typed', '{at}', '{at}', '', 0, '', '[]', '[]', '[]', '', {change}"
            connection.execute(text(f"INSERT INTO note ({columns}) VALUES ({values})"))
            connection.execute(text(f"INSERT INTO note_tag VALUES ('{name}', 'in')"))
        connection.execute(text("INSERT INTO manas (id, name, key) VALUES ('m', 'M', 'm')"))
        connection.execute(text("INSERT INTO manas_note (manas_id, note_id) VALUES ('m', 'old')"))
        connection.execute(text("UPDATE counter SET value = 8 WHERE name = 'changes'"))
        _upgrade(connection, "head")
        found = connection.execute(text("SELECT note_id, place, number FROM note_arrival"))
        arrivals = {tuple(row) for row in found}
        last = connection.execute(text("SELECT value FROM counter WHERE name = 'arrivals'")).scalar()
    engine.dispose()
    assert arrivals == {("old", "tag:in", 3), ("new", "tag:in", 8), ("old", "manas:m", 3)}
    assert last == 8


def test_assertions_take_the_names_of_their_note_or_it_is_read_again(blank_url: str) -> None:
    engine = create_engine(blank_url)
    columns = "id, source, created_at, changed_at, content_hash, characters, title, tags, aliases, links, text, change"
    at = "2026-01-01 00:00:00"
    with engine.begin() as connection:
        _upgrade(connection, "0005")

        def put(into: str, *rows: str) -> None:
            for row in rows:
                connection.execute(text(f"INSERT INTO {into} VALUES ({row})"))

        for each in ("one", "two", "none", "silent"):
            put(
                f"note ({columns})",
                f"'{each}', 'typed', '{at}', '{at}', 'h-{each}', 0, '', '[]', '[]', '[]', '', 0",
            )
        put("concept (id, name, type, note_count)", "'x', 'LLM', 'thing', 2", "'y', 'Text', 'thing', 2")
        put(
            "mention (note_id, concept_id, name, type)",
            "'one', 'x', 'Écrits', 'thing'",
            "'one', 'y', 'texts', 'thing'",
            "'two', 'x', 'LLMs', 'thing'",
            "'two', 'x', 'LLM', 'thing'",
            "'two', 'y', 'Text', 'thing'",
        )
        put(
            "assertion (note_id, source_id, verb, target_id)",
            "'one', 'x', 'writes', 'y'",
            "'one', 'y', 'is of', 'x'",
            "'two', 'x', 'writes', 'y'",
            "'none', 'x', 'writes', 'y'",
        )
        _upgrade(connection, "head")
        names = "note_id, source_name, verb, target_name, source_id, target_id"
        assertions = {tuple(row) for row in connection.execute(text(f"SELECT {names} FROM assertion"))}
        keys = {tuple(row) for row in connection.execute(text("SELECT name, key FROM mention"))}
        waiting = "SELECT note_id, content_hash, state, attempts, error FROM pending_extraction"
        queued = {tuple(row) for row in connection.execute(text(waiting))}
        assert compare_metadata(MigrationContext.configure(connection, opts=_OURS), Row.metadata) == []
    engine.dispose()
    assert assertions == {
        ("one", "Écrits", "writes", "texts", "x", "y"),
        ("one", "texts", "is of", "Écrits", "y", "x"),
        ("two", "LLM", "writes", "Text", "x", "y"),
        ("none", "LLM", "writes", "Text", "x", "y"),
    }
    assert keys == {
        ("Écrits", "ecrits"),
        ("texts", "texts"),
        ("LLMs", "llms"),
        ("LLM", "llm"),
        ("Text", "text"),
    }
    assert queued == {(each, f"h-{each}", "waiting", 0, None) for each in ("two", "none")}


def _upgrade(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
