import asyncio
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from data.database.session import Database
from data.gana.holders import ClaimHolders
from data.repositories.conversations import SqlConversationRepository
from data.repositories.ganas import SqlGanaRepository
from domain.entities.conversation import ChatMessage, Conversation
from domain.entities.gana import Gana, GanaDraft
from tests.data.repositories.samples import START, at
from tests.memory.identity import CountingIdentities

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import sys
from datetime import datetime
from pathlib import Path
from data.gana.holders import ClaimHolders
holders = ClaimHolders(Path(sys.argv[1]))
sys.stdout.write(holders.name() + "\\n"); sys.stdout.flush()
sys.stdin.read()
"""


def holding(folder: Path) -> tuple["subprocess.Popen[str]", str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate(timeout=240)


def test_a_killed_process_is_dead_at_once_and_is_forgotten_once(tmp_path: Path) -> None:
    process, name = holding(tmp_path)
    watcher = ClaimHolders(tmp_path)
    assert watcher.name() not in ("", name)
    assert not watcher.some_died()
    end(process)
    assert watcher.some_died()
    with watcher.dead(forget=True) as names:
        assert names == (name,)
        with ClaimHolders(tmp_path).dead(forget=True) as others:
            assert others == ()
    assert not watcher.some_died()
    assert [path.stem for path in (tmp_path / "claims").iterdir()] == [watcher.name()]


def test_without_a_folder_nobody_has_a_name_and_nobody_is_dead(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    holders = ClaimHolders(tmp_path / "file")
    assert holders.name() == ""
    assert not holders.some_died()


@pytest.mark.parametrize("due_at", [at(0), None])
def test_the_claim_of_a_killed_process_is_over_at_once(
    url: str, tmp_path: Path, due_at: datetime | None
) -> None:
    async def main() -> None:
        async with Database(url) as database:
            identities = CountingIdentities()
            killed, elsewhere = ClaimHolders(tmp_path), ClaimHolders(tmp_path / "another machine")
            process, killed._name = holding(tmp_path)

            def ganas(holders: ClaimHolders) -> SqlGanaRepository:
                return SqlGanaRepository(database, identities, holders=holders)

            here = ganas(ClaimHolders(tmp_path))
            await here.put(
                Gana(
                    id="g",
                    draft=GanaDraft(name="g", task="t"),
                    enabled=True,
                    due_at=at(0),
                    created_at=START,
                )
            )
            assert await ganas(killed).claim("g", due_at, at(300), by="app", now=at(1)) is not None
            assert await here.due(at(2), 9) == ()
            end(process)
            assert await ganas(elsewhere).due(at(3), 9) == ()
            assert [gana.due_at for gana in await here.due(at(3), 9)] == [at(0)]
            again = await here.claim("g", at(0), at(300), by="app", now=at(3))
            assert again is not None
            assert await here.due(at(4), 9) == ()

    asyncio.run(main())


@pytest.mark.parametrize("noticed_by", ["whoever opens it", "a Gana"])
def test_the_answer_of_a_killed_process_has_stopped_at_once(
    url: str, tmp_path: Path, noticed_by: str
) -> None:
    async def main() -> None:
        async with Database(url) as database:
            killed, here = ClaimHolders(tmp_path), ClaimHolders(tmp_path)
            process, killed._name = holding(tmp_path)

            async def answer(holders: ClaimHolders, message_id: str) -> SqlConversationRepository:
                talks = SqlConversationRepository(database, holders)
                await talks.create(Conversation(id=message_id, title="", created_at=START, changed_at=START))
                message = ChatMessage(
                    id=message_id,
                    conversation_id=message_id,
                    parent_id=None,
                    role="assistant",
                    content="half an",
                    state="streaming",
                    created_at=START,
                )
                await talks.put_message(message)
                return talks

            await answer(killed, "lost")
            # Of another machine, or of a process that found no name: who can say?
            await answer(ClaimHolders(tmp_path / "another machine"), "elsewhere")
            talks = await answer(here, "ours")
            assert (await talks.messages("lost"))[0].state == "streaming"
            end(process)
            if noticed_by == "a Gana":
                ganas = SqlGanaRepository(database, CountingIdentities(), holders=here)
                assert await ganas.due(at(3), 9) == ()
            (lost,) = await talks.messages("lost")
            assert (lost.state, lost.content) == ("stopped", "half an")
            for still in ("elsewhere", "ours"):
                assert (await talks.messages(still))[0].state == "streaming"

    asyncio.run(main())
