"""What the commands are given; nothing is imported, built or opened before a command asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from presentation.faces import Controllers as Controllers

if TYPE_CHECKING:
    from socket import socket

    from domain.usecases.health import DiagnoseUseCase
    from domain.usecases.scheduler import SimulateUseCase
    from presentation.controllers.api import ApiKeysController
    from presentation.controllers.archive import ArchiveController
    from presentation.controllers.background import BackgroundController
    from presentation.controllers.demo import DemoController
    from presentation.controllers.gana import GanaController
    from presentation.controllers.knowledge import KnowledgeController
    from presentation.controllers.models import ModelsController
    from presentation.controllers.nataraj import NatarajController
    from presentation.controllers.notes import ManasController, NotesController
    from presentation.controllers.scheduler import SchedulerController
    from presentation.flow_names import FlowNames
    from presentation.server.options import ServerOptions


@dataclass(frozen=True)
class Library:
    """The faces of an open database, without a language model; valid while the context manager that gave them is open."""

    notes: NotesController
    manases: ManasController
    knowledge: Callable[[], KnowledgeController]
    """Of it, only what needs no model; so too of the next two."""
    nataraj: Callable[[], NatarajController]
    ganas: Callable[[], GanaController]
    archive: ArchiveController
    api_keys: ApiKeysController


@dataclass(frozen=True)
class Place:
    """A server that is about to open: the port is its own, and everything behind it is there."""

    faces: Controllers
    options: ServerOptions
    listener: socket
    announce: Callable[[], None]
    """Tells other processes where it is …"""
    withdraw: Callable[[], None]
    """… and no more."""


@dataclass(frozen=True)
class Openers:
    """One way in for each sort of command, so that `models list` starts no engine and `simulate` nothing at all."""

    controllers: Callable[[], AbstractAsyncContextManager[Controllers]]
    """For a command that does one thing."""
    app: Callable[[], AbstractAsyncContextManager[Controllers]]
    """For one that stays open: background work goes on beside it."""
    server: Callable[[str | None, int | None], AbstractAsyncContextManager[Place]]
    """The same, and a port, by host and number; those of the settings when none. Raises `ServerRuns`."""
    servers_scheduler: Callable[[], AbstractAsyncContextManager[SchedulerController | None]]
    """Of the server that runs; none where there is no server."""
    flow_names: Callable[[], AbstractAsyncContextManager[FlowNames]]
    """Titles in place of the ids that its jobs go by."""
    library: Callable[[], AbstractAsyncContextManager[Library]]
    background: Callable[[], BackgroundController]
    background_process: Callable[[Callable[[str], None]], Awaitable[None]]
    """Runs until it is cancelled, and tells what it does."""
    models: Callable[[], ModelsController]
    simulate: Callable[[], SimulateUseCase]
    demo: Callable[[], DemoController]
    diagnose: Callable[[], DiagnoseUseCase]
    version: Callable[[], str]
