"""A background process in name only."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from domain.entities.background import ServiceChange
from domain.repositories.ganas import GanaRepository
from domain.usecases.background import BackgroundStatusUseCase, ManageBackgroundUseCase
from presentation.controllers.background import BackgroundController

FILE = "/home/somebody/uniun-background.service"


class MemoryService:
    """Implements `BackgroundService`."""

    def __init__(self) -> None:
        self.file: str | None = None
        self.process: int | None = None
        self.app_open = False
        self.ill = ""

    def install(self) -> ServiceChange:
        self.file = FILE
        return ServiceChange(
            path=FILE, done=True, told=False, hint="The service manager was not told. Run: systemctl"
        )

    def uninstall(self) -> ServiceChange:
        was, self.file = self.file, None
        return ServiceChange(path=FILE, done=was is not None)

    def installed(self) -> str | None:
        return self.file

    def pid(self) -> int | None:
        return self.process

    def app_is_open(self) -> bool:
        return self.app_open

    def log(self) -> str:
        return "journalctl"

    async def trouble(self) -> str:
        return self.ill


def fake_background(ganas: GanaRepository, service: MemoryService | None = None) -> BackgroundController:
    service = service or MemoryService()

    @asynccontextmanager
    async def opened() -> AsyncIterator[BackgroundStatusUseCase]:
        yield BackgroundStatusUseCase(service, ganas)

    def open_status() -> AbstractAsyncContextManager[BackgroundStatusUseCase]:
        return opened()

    return BackgroundController(ManageBackgroundUseCase(service), open_status)


async def quiet_process(tell: Callable[[str], None]) -> None:
    """Ends at once."""
    tell("The background process looks for due Ganas.")
