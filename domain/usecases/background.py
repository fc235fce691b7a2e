"""The background process, installed and watched."""

from domain.entities.background import BackgroundStatus, ServiceChange
from domain.repositories.background_service import BackgroundService
from domain.repositories.ganas import GanaRepository

RUNS = 5


class ManageBackgroundUseCase:
    """Starts it at login, or no more."""

    def __init__(self, service: BackgroundService) -> None:
        self._service = service

    def install(self) -> ServiceChange:
        """Raises `InvalidRequest` where there is neither launchd nor systemd for this user."""
        return self._service.install()

    def uninstall(self) -> ServiceChange:
        """Harmless when it is not installed."""
        return self._service.uninstall()


class BackgroundStatusUseCase:
    """Whether it is installed, whether it runs, and what it did."""

    def __init__(self, service: BackgroundService, ganas: GanaRepository) -> None:
        self._service = service
        self._ganas = ganas

    async def __call__(self) -> BackgroundStatus:
        """As things stand now."""
        runs = [run for run in await self._ganas.runs(limit=200) if run.by == "background"]
        installed = self._service.installed()
        return BackgroundStatus(
            installed=installed,
            trouble=await self._service.trouble(),
            log=self._service.log() if installed else "",
            pid=self._service.pid(),
            app_open=self._service.app_is_open(),
            runs=tuple(runs[:RUNS]),
            names={gana.id: gana.draft.name for gana in await self._ganas.all()},
        )
