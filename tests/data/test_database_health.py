import asyncio
import sqlite3
from pathlib import Path

import pytest

from data.database.session import Database, sqlite_url
from data.database_health import examine_database


async def state(path: Path) -> tuple[str, str]:
    finding = await examine_database(Database(sqlite_url(path)))
    assert (finding.mend == "") == (finding.state == "ok")
    return finding.state, finding.text


async def made(path: Path) -> None:
    async with Database(sqlite_url(path)):
        pass


def test_looking_makes_no_database(tmp_path: Path) -> None:
    assert asyncio.run(state(tmp_path / "none.db"))[0] == "ok"
    assert not list(tmp_path.iterdir())


def test_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "one?#.db"

    async def scenario() -> None:
        await made(path)
        assert await state(path) == ("ok", f"{path} is whole")

    asyncio.run(scenario())


@pytest.mark.parametrize("harm", ["noise", "hole", "newer", "folder"])
def test_what_no_other_command_can_use_is_found(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "uniun.db"

    async def scenario() -> tuple[str, str]:
        if harm == "folder":
            path.mkdir()
            return await state(path)
        await made(path)
        if harm == "newer":
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE alembic_version SET version_num = 'r9999'")
            connection.close()
            return await state(path)
        whole = path.read_bytes()
        assert len(whole) > 20_000
        path.write_bytes(
            b"noise" * 1_000 if harm == "noise" else whole[:8_192] + b"\xff" * 600 + whole[8_792:]
        )
        return await state(path)

    assert asyncio.run(scenario())[0] == "fail"
