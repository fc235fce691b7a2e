"""The background process, for every face."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from domain.entities.background import BackgroundStatus, ServiceChange
from domain.usecases.background import BackgroundStatusUseCase, ManageBackgroundUseCase


@dataclass(frozen=True)
class BackgroundController:
    """`open_status` opens the database for as long as it is asked."""

    manage: ManageBackgroundUseCase
    open_status: Callable[[], AbstractAsyncContextManager[BackgroundStatusUseCase]]

    def install(self) -> ServiceChange:
        """Starts it at login from now on. Raises `InvalidRequest`."""
        return self.manage.install()

    def uninstall(self) -> ServiceChange:
        """No more."""
        return self.manage.uninstall()

    async def status(self) -> BackgroundStatus:
        """As things stand now."""
        async with self.open_status() as status:
            return await status()
