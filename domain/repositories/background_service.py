"""The machine's way of keeping a process running for a user: launchd, or systemd."""

from typing import Protocol

from domain.entities.background import ServiceChange


class BackgroundService(Protocol):
    """The background process as a service, and who is open now."""

    def install(self) -> ServiceChange:
        """Writes the file and starts the service. Raises `InvalidRequest`, as where no manager can be reached."""
        ...

    def uninstall(self) -> ServiceChange:
        """Stops the service and removes the file. Harmless when there is none."""
        ...

    def installed(self) -> str | None:
        """The file's path."""
        ...

    def pid(self) -> int | None:
        """The running background process, however it was started."""
        ...

    def app_is_open(self) -> bool:
        """Whether an app is open on this machine."""
        ...

    def log(self) -> str:
        """The command that shows what the service said."""
        ...

    async def trouble(self) -> str:
        """Why what is installed does not run, or not at login, and what to do. Empty: it does, or is not installed."""
        ...
