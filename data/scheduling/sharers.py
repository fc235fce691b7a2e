"""Who shares a job, as a trace tells it: a job goes by the name of the first of its callers who is still there."""


class Sharers:
    """Callers by name, each with all that wait for the same job, in order."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, None]] = {}

    def enter(self, caller: str, joined: str | None) -> None:
        """The caller asked; `joined` names the job, if it joined one."""
        group = self._groups.get(joined, {}) if joined is not None else {}
        group[caller] = None
        self._groups[caller] = group

    def of(self, caller: str) -> tuple[str, ...]:
        """Everybody who waits for the caller's job, itself included."""
        return tuple(self._groups.get(caller, ()))

    def leave(self, caller: str) -> str | None:
        """The caller has its answer; returns the name that the job has from then on, none when it is over."""
        group = self._groups.pop(caller, {})
        group.pop(caller, None)
        return next(iter(group), None)
