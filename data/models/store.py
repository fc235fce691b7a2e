"""Models on this machine. Layout below the root:

settings.json                   the default model
models/NAME/manifest.json       sizes and SHA-256 of its files; for a registered model, where they lie
models/NAME/gguf, models/NAME/mlx
partial/                        unfinished work: swept, or resumed, by the next pull
lock, lock-holder               held while something is written
"""

import asyncio
import difflib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from data.clock import Clock
from data.models.catalogue import CATALOGUE, Offer
from data.models.files import sha256_of, write_atomically
from data.models.folder import StoreFolder
from data.models.inspection import begins_rightly, inspect_gguf, inspect_mlx, read_json
from data.models.manifest import FILE_NAME, Manifest, StoredFile, check_name, folder_name, read_manifest
from data.models.pull import Pull
from data.models.space import FreeBytes, free_bytes
from data.models.threads import after, in_thread
from domain.entities.models import CatalogueEntry, InstalledModel, PullProgress, RemoteModel
from domain.errors import InvalidRequest, ModelDamaged, ModelError, StoreBusy, UnknownModel

_LOOKS_PER_S = 5
_WAIT_S = 6 * 3600
"""For another process that fetches the same model; a large one takes hours on a slow line."""


class FileModelStore:
    """Implements `ModelStore` on a folder. Reading takes milliseconds and no lock; `pull` does not block the loop."""

    def __init__(
        self,
        root: Path,
        clock: Clock,
        *,
        context_limit: int | None = None,
        offers: tuple[Offer, ...] = CATALOGUE,
        free: FreeBytes = free_bytes,
    ) -> None:
        """`context_limit` is the engine's: what a model could hold beyond it is not promised to anybody."""
        self._folder = StoreFolder(root)
        self._models = root / "models"
        self._settings = root / "settings.json"
        self._clock = clock
        self._context_limit = context_limit
        self._offers = offers
        self._free = free

    def limit_context(self, tokens: int) -> None:
        """The engine's limit is another one from now on."""
        self._context_limit = tokens

    def catalogue(self) -> tuple[CatalogueEntry, ...]:
        return tuple(offer.entry for offer in self._offers)

    def installed(self) -> tuple[InstalledModel, ...]:
        found = []
        for path in sorted(self._models.glob(f"*/{FILE_NAME}")):
            try:
                found.append(self._checked(read_manifest(path.parent)))
            except (ModelError, InvalidRequest):
                continue  # damaged: `get` says how
        return tuple(sorted(found, key=lambda model: model.name))

    def get(self, name: str) -> InstalledModel:
        return self._checked(self._manifest(name))

    async def verify(
        self, name: str, progress: Callable[[PullProgress], None] = lambda step: None
    ) -> InstalledModel:
        """Reads every file in full and compares its SHA-256. Raises as `get` does.

        Registered files have no known SHA-256; of those the whole headers are checked.
        """
        manifest = self._manifest(name)
        model = self._checked(manifest)
        total = manifest.size_bytes
        await in_thread(
            lambda step: self._compare(manifest, step),
            lambda done: progress(PullProgress(stage="check", done_bytes=done, total_bytes=total)),
        )
        return model

    def _usable(self, context_tokens: int | None) -> int | None:
        limits = [tokens for tokens in (context_tokens, self._context_limit) if tokens is not None]
        return min(limits, default=None)

    def default_name(self) -> str:
        if self._settings.is_file():
            try:
                return check_name(str(read_json(self._settings)["default"]))
            except (ModelDamaged, InvalidRequest, KeyError):
                pass  # a broken choice is no choice
        return self._offers[0].entry.name

    async def pull(self, name: str, progress: Callable[[PullProgress], None]) -> InstalledModel:
        offer = self._offer(name)
        model = await self._present(name, offer, progress)
        if model is None:
            if offer is None:
                raise self._unknown(name)
            async with self._turn(name, progress) as waited:
                model = await self._present(name, offer, progress) if waited else None
                if model is None:
                    self._folder.sweep()
                    await Pull(name, offer, self._folder, self._clock, self._free, progress).run(
                        self._place(name)
                    )
                    model = self.get(name)
        progress(PullProgress(stage="done", done_bytes=model.size_bytes, total_bytes=model.size_bytes))
        return model

    async def _present(
        self, name: str, offer: Offer | None, progress: Callable[[PullProgress], None]
    ) -> InstalledModel | None:
        """The model if every file is as it should be, none if it must be fetched."""
        if not (self._models / folder_name(name)).exists():
            return None
        try:
            return await self.verify(name, progress)
        except ModelDamaged:
            if offer is None or self.is_registered(name):
                raise
            return None

    @asynccontextmanager
    async def _turn(self, name: str, progress: Callable[[PullProgress], None]) -> AsyncIterator[bool]:
        """Holds the lock; says whether it had to wait for another process that fetched `name`.

        Raises `StoreBusy` if somebody does something else.
        """
        work = f"pull {name}"
        untold = 0
        with ExitStack() as stack:
            for look in itertools.count():
                try:
                    stack.enter_context(self._folder.exclusive(work))
                    break
                except StoreBusy:
                    theirs = self._folder.work()
                    untold = untold + 1 if theirs is None else 0
                    if theirs not in (work, None) or untold > _LOOKS_PER_S or look > _WAIT_S * _LOOKS_PER_S:
                        raise
                    if theirs is not None:
                        progress(PullProgress(stage="wait", done_bytes=0))
                    await asyncio.sleep(1 / _LOOKS_PER_S)
            yield look > 0

    def register(self, name: str, path: Path) -> InstalledModel:
        self._check_own_name(name)
        try:
            path = path.expanduser().resolve()
        except (RuntimeError, OSError) as error:  # no such home folder, a circle of links
            raise InvalidRequest(
                f"{path} leads nowhere: {error}. Give an MLX folder or a .gguf file."
            ) from None
        if not path.exists():
            raise InvalidRequest(f"{path} does not exist. Give an MLX folder or a .gguf file.")
        is_gguf = path.is_file()
        found = inspect_gguf(path) if is_gguf else inspect_mlx(path)
        manifest = Manifest(
            name=name,
            source=f"registered, {path}",
            licence="unknown",
            added=self._clock.now(),
            context_tokens=found.context_tokens,
            sampling=found.sampling,
            files=tuple(
                StoredFile(path=f, size_bytes=(found.folder / f).stat().st_size) for f in found.files
            ),
            gguf=path.name if is_gguf else None,
            mlx=None if is_gguf else ".",
            registered=found.folder,
        )
        return self._register(manifest)

    def register_remote(self, name: str, remote: RemoteModel, context_tokens: int | None) -> InstalledModel:
        self._check_own_name(name)
        manifest = Manifest(
            name=name,
            source=f"remote, {remote.model} at {', '.join(remote.urls)}",
            licence="unknown",
            added=self._clock.now(),
            context_tokens=context_tokens,
            files=(),
            remote=remote,
        )
        return self._register(manifest)

    def _check_own_name(self, name: str) -> None:
        if self._offer(name) is not None and "/" not in name:
            raise InvalidRequest(
                f"{name} is a name of the catalogue. Register your model under another name."
            )

    def _register(self, manifest: Manifest) -> InstalledModel:
        name, place = manifest.name, self._place(manifest.name)
        with self._folder.exclusive():
            if place.exists() and not self.is_registered(name):
                raise InvalidRequest(f"{name} is installed already. Remove it first, or choose another name.")
            place.mkdir(parents=True, exist_ok=True)
            write_atomically(place / FILE_NAME, manifest.model_dump_json(indent=2))
        return self.get(name)

    def use(self, name: str) -> InstalledModel:
        self.get(name)
        # One atomic replacement: a pull that runs for an hour need not hold this up.
        with self._folder.writing():
            write_atomically(self._settings, json.dumps({"default": name}))
        return self.get(name)

    def remove(self, name: str) -> int:
        offer = self._offer(name)
        with self._folder.exclusive():
            owned = [] if self.is_registered(name) else [self._place(name)]
            if offer is not None and offer.repository is not None:
                owned.append(self._folder.resumable_partial(folder_name(offer.repository)))
            # A registered model has but its manifest in the store, and that counts for nothing.
            freed = sum(p.stat().st_size for place in owned for p in place.rglob("*") if p.is_file())
            doomed = [place for place in {self._place(name), *owned} if place.is_dir()]
            if not doomed:
                raise self._unknown(name)
            for place in doomed:
                self._folder.discard(place)
            if self.default_name() == name:
                self._settings.unlink(missing_ok=True)
        return freed

    def _place(self, name: str) -> Path:
        return self._models / folder_name(name)

    def _manifest(self, name: str) -> Manifest:
        place = self._models / folder_name(name)
        if not place.is_dir():
            raise self._unknown(name)
        manifest = read_manifest(place)
        if manifest.name != name:  # a file system that ignores case
            raise self._unknown(name)
        return manifest

    def can_be_pulled(self, name: str) -> bool:
        """Whether there is a source for it."""
        return self._offer(name) is not None

    def is_registered(self, name: str) -> bool:
        """Whether it is a model that the user keeps, or has servers for, elsewhere; false if its manifest does not say."""
        try:
            manifest = self._manifest(name)
            return manifest.registered is not None or manifest.remote is not None
        except ModelError:
            return False

    def _offer(self, name: str) -> Offer | None:
        check_name(name)
        for offer in self._offers:
            if offer.entry.name == name:
                return offer
        if "/" not in name:
            return None
        entry = CatalogueEntry(
            name=name,
            title=name,
            source=f"Hugging Face hub, {name}",
            licence="unknown",
            download_bytes=0,
            memory_bytes=0,
            context_tokens=0,
            good_for="",
        )
        return Offer(entry, repository=name)

    def _checked(self, manifest: Manifest) -> InstalledModel:
        """Existence, sizes and first bytes of every file: a few system calls each."""
        base = manifest.registered or self._place(manifest.name)
        for file in manifest.files:
            path = base / file.path
            try:
                size = path.stat().st_size
                if size != file.size_bytes:
                    raise ModelDamaged(
                        f"{path} has {size} bytes instead of {file.size_bytes}. {self._advice(manifest)}"
                    )
                if not begins_rightly(path):
                    raise ModelDamaged(
                        f"{path} was overwritten: it does not begin as such a file does. {self._advice(manifest)}"
                    )
            except OSError as error:
                raise ModelDamaged(
                    f"{path} cannot be read: {error.strerror}. {self._advice(manifest)}"
                ) from error
        return InstalledModel(
            name=manifest.name,
            source=manifest.source,
            licence=manifest.licence,
            size_bytes=manifest.size_bytes,
            context_tokens=manifest.context_tokens
            if manifest.remote
            else self._usable(manifest.context_tokens),
            sampling=manifest.remote.sampling if manifest.remote else manifest.sampling,
            gguf_path=base / manifest.gguf if manifest.gguf else None,
            mlx_path=base / manifest.mlx if manifest.mlx else None,
            remote=manifest.remote,
            is_default=manifest.name == self.default_name(),
        )

    def _compare(self, manifest: Manifest, step: Callable[[int], None]) -> None:
        base = manifest.registered or self._place(manifest.name)
        before = 0
        for file in manifest.files:
            path = base / file.path
            if file.sha256 is not None and sha256_of(path, after(before, step)) != file.sha256:
                raise ModelDamaged(
                    f"{path} was altered: its SHA-256 is not {file.sha256}. {self._advice(manifest)}"
                )
            before += file.size_bytes
        if manifest.gguf:
            inspect_gguf(base / manifest.gguf)
        if manifest.mlx:
            inspect_mlx(base / manifest.mlx)

    @staticmethod
    def _advice(manifest: Manifest) -> str:
        if manifest.registered:
            return f"Put the file back, or register {manifest.name} again."
        return f"`uniun models pull {manifest.name}` repairs it."

    def _unknown(self, name: str) -> UnknownModel:
        if any(offer.entry.name == name for offer in self._offers):
            return UnknownModel(f"The model {name} is not installed. Fetch it with: uniun models pull {name}")
        names = sorted(
            {offer.entry.name for offer in self._offers} | {model.name for model in self.installed()}
        )
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        return UnknownModel(
            f"There is no model {name!r}.{hint} `uniun models list` shows what is installed and what can be fetched; "
            "any `owner/name` of the Hugging Face hub in MLX format can be fetched too."
        )
