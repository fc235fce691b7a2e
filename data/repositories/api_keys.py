"""API keys in the database."""

from sqlalchemy import delete, or_
from sqlmodel import Session, col, select

from data.database.rows import insert, table
from data.database.session import Database
from data.database.tables.api import ApiKeyRow
from domain.entities.api import ApiKey


class SqlApiKeyRepository:
    """Implements `ApiKeyRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> bool:
        def write(session: Session) -> bool:
            same = or_(col(ApiKeyRow.name) == key.name, col(ApiKeyRow.hash) == key.hash)
            if session.exec(select(ApiKeyRow.id).where(same)).first() is not None:
                return False
            insert(session, ApiKeyRow, [key.model_dump()])
            return True

        return await self._database.write(write)

    async def list(self) -> tuple[ApiKey, ...]:
        def read(session: Session) -> tuple[ApiKey, ...]:
            return tuple(map(_key, session.exec(select(ApiKeyRow).order_by(col(ApiKeyRow.number)))))

        return await self._database.read(read)

    async def by_hash(self, key_hash: str) -> ApiKey | None:
        def read(session: Session) -> ApiKey | None:
            row = session.exec(select(ApiKeyRow).where(ApiKeyRow.hash == key_hash)).first()
            return None if row is None else _key(row)

        return await self._database.read(read)

    async def delete(self, key_id: str) -> None:
        def write(session: Session) -> None:
            rows = table(ApiKeyRow)
            session.connection().execute(delete(rows).where(rows.c.id == key_id))

        await self._database.write(write)


def _key(row: ApiKeyRow) -> ApiKey:
    return ApiKey.model_validate(row.model_dump(exclude={"number"}))
