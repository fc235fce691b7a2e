"""What models are loaded with, changed while the program runs."""

from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from data.models.store import FileModelStore
from data.scheduling.devices import Devices


class EngineSettings:
    """The three who go by it."""

    def __init__(self, runner: EngineRunner, store: FileModelStore, devices: Devices) -> None:
        self._runner = runner
        self._store = store
        self._devices = devices

    def use(self, options: EngineOptions) -> None:
        """At once: a loaded model is loaded anew, and the jobs that this stops go on from their tokens."""
        self._runner.use(options)
        self._store.limit_context(options.context_limit)
        self._devices.reload()
