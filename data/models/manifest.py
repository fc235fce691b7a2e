"""What the store knows of one model: a manifest.json beside its files."""

import re
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError, model_validator

from domain.entities.entity import Entity
from domain.entities.llm import Sampling
from domain.entities.models import RemoteModel
from domain.errors import InvalidRequest, ModelDamaged

FILE_NAME = "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_MAX_BYTES = 4 << 20


def check_name(name: str) -> str:
    """Raises `InvalidRequest` unless `name` is `name` or `owner/name` in letters, digits, `.`, `_` and `-`."""
    if not _NAME.fullmatch(name) or ".." in name or "--" in name:
        raise InvalidRequest(
            f"{name[:120]!r} is no model name: use letters, digits, '.', '_' and single '-', with at most one '/'."
        )
    return name


def folder_name(name: str) -> str:
    """The model's folder in the store; two names never share one, because no name contains `--`."""
    return check_name(name).replace("/", "--")


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path:
        raise ValueError("it points outside of the model's folder")
    return path


RelativePath = Annotated[str, AfterValidator(_inside)]


class StoredFile(Entity):
    """`sha256` is none for registered files, which the store does not read in full."""

    path: RelativePath
    size_bytes: int = Field(ge=0)
    sha256: str | None = None


class Manifest(Entity):
    """`registered` is the folder of a model that the user keeps elsewhere; the paths are relative to it. One that servers run
    is `remote` and has no files."""

    name: str
    source: str
    licence: str
    added: datetime
    context_tokens: int | None
    sampling: Sampling | None = None
    files: tuple[StoredFile, ...] = Field(max_length=2000)
    gguf: RelativePath | None = None
    mlx: RelativePath | None = None
    registered: Path | None = None
    remote: RemoteModel | None = None

    @model_validator(mode="after")
    def _has_files(self) -> "Manifest":
        if not self.files and self.remote is None:
            raise ValueError("it names no file")
        return self

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def read_manifest(folder: Path) -> Manifest:
    """Raises `ModelDamaged` if it is missing, unreadable or says what it must not."""
    path = folder / FILE_NAME
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError("it is far too large")
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ModelDamaged(f"{path} is damaged: {reason}. Pull or register the model again.") from error
