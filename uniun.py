"""Composition root: what is built from what, who closes it, and the way in.

Imports are inside the functions on purpose: `uniun --help` must not wait for what only `uniun chat` needs.
"""

from __future__ import annotations

from presentation.cli.first import stoppable

with stoppable:
    import sys
    from collections.abc import AsyncIterator, Callable
    from contextlib import AsyncExitStack, asynccontextmanager
    from typing import TYPE_CHECKING, Any

    from presentation.cli.start import begin, interruptible, not_imported

if TYPE_CHECKING:
    from pathlib import Path

    from dependency_injector.containers import DeclarativeContainer

    from data.clock import Clock
    from data.database.session import Database
    from data.embedding.service import EmbeddingService
    from data.embedding.worker import EmbeddingWorker
    from data.presence import ServerAddress
    from data.rest import Rest
    from data.scheduling.devices import Devices
    from data.settings import Settings
    from domain.repositories.vectors import VectorRepository
    from domain.repositories.work_claims import WorkClaims
    from domain.usecases.background import BackgroundStatusUseCase
    from domain.usecases.health import DiagnoseUseCase
    from domain.usecases.scheduler import SimulateUseCase
    from presentation.cli.openers import Library, Place
    from presentation.controllers.background import BackgroundController
    from presentation.controllers.demo import DemoController
    from presentation.controllers.models import ModelsController
    from presentation.controllers.scheduler import SchedulerController
    from presentation.faces import Controllers
    from presentation.flow_names import FlowNames


_KEEP_AGAIN_S = 2.0


def late(name: str) -> Callable[..., Any]:
    """A class that is imported when one of it is first built: no command needs more than a few of all."""
    module, _, attribute = name.rpartition(".")

    def build(*given: Any, **named: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(module), attribute)(*given, **named)

    return build


def build_container(settings: Settings, server: ServerAddress | None = None) -> DeclarativeContainer:
    """The one container: flat, lazy, and only ever seen in this file. With a server, that one's scheduler is used."""
    import asyncio
    from functools import partial

    from dependency_injector import containers, providers

    from data.clock import SystemClock
    from data.demo.load import sample_folder
    from data.identity import RandomIdentities, new_secret
    from data.models.store import FileModelStore
    from domain.usecases import (
        api,
        api_keys,
        ask,
        chat,
        conversations,
        demo,
        embedding,
        export,
        gana,
        gana_book,
        gana_calendar,
        gana_draft,
        gana_tools,
        health,
        importing,
        knowledge,
        llm,
        manases,
        models,
        nataraj,
        notes,
        preferences,
        reading,
        remote_models,
        retrieval,
        scheduler,
        search,
    )
    from presentation.controllers.api import ApiController, ApiKeysController
    from presentation.controllers.archive import ArchiveController
    from presentation.controllers.ask import AskController
    from presentation.controllers.chat import ChatController, ChatUseCases
    from presentation.controllers.composer_chat import ComposerChatController
    from presentation.controllers.demo import DemoController
    from presentation.controllers.gana import GanaController
    from presentation.controllers.knowledge import KnowledgeController
    from presentation.controllers.models import ModelsController
    from presentation.controllers.nataraj import NatarajController
    from presentation.controllers.notes import ManasController, NotesController
    from presentation.controllers.peers import PeersController
    from presentation.controllers.scheduler import SchedulerController
    from presentation.controllers.settings import SettingsController

    class Container(containers.DeclarativeContainer):
        clock = providers.Singleton(SystemClock)
        store = providers.Singleton(
            FileModelStore, settings.data_dir, clock, context_limit=settings.engine.context_limit
        )
        runner = providers.Singleton(
            late("data.inference.supervisor.EngineRunner"), store, settings.engine, clock
        )
        model_servers = providers.Singleton(late("data.inference.remote.servers.RemoteServers"), clock)
        presence = providers.Singleton(
            late("data.presence.Presence"), settings.data_dir, settings.database_url
        )
        dispatcher: providers.Provider[Any] = (
            providers.Singleton(
                late("data.scheduling.devices.Devices"),
                runner,
                model_servers.provided.runner,
                store,
                clock,
                settings.scheduler,
            )
            if server is None
            else providers.Singleton(
                late("data.remote_app.scheduler.RemoteScheduler"),
                server,
                presence.provided.server_address,
                store,
                clock,
            )
        )
        scheduler_history: providers.Provider[Any] = (
            providers.Singleton(late("data.scheduling.history.TraceHistory"), dispatcher, clock)
            if server is None
            else dispatcher
        )
        embedder = providers.Singleton(_build_embedder, settings.data_dir, clock)
        identities = providers.Singleton(RandomIdentities, clock)
        note_changes = providers.Singleton(late("data.note_changes.LocalNoteChanges"))
        database = providers.Singleton(_build_database, settings)
        note_repository = providers.Singleton(late("data.repositories.notes.SqlNoteRepository"), database)
        manas_repository = providers.Singleton(
            late("data.repositories.manases.SqlManasRepository"), database, identities
        )
        claim_holders = providers.Singleton(late("data.gana.holders.ClaimHolders"), settings.data_dir)
        # One for all, so that it knows what this process is at.
        work_claims = providers.Singleton(
            late("data.repositories.work_claims.SqlWorkClaims"), database, identities, claim_holders
        )
        vector_repository = providers.Singleton(
            late("data.repositories.vectors.SqlVectorRepository"), database, work_claims
        )
        knowledge_repository = providers.Singleton(
            late("data.repositories.knowledge.SqlKnowledgeRepository"), database, work_claims
        )
        conversation_repository = providers.Singleton(
            late("data.repositories.conversations.SqlConversationRepository"), database, claim_holders
        )
        card_repository = providers.Singleton(late("data.repositories.cards.SqlCardRepository"), database)
        gana_repository = providers.Singleton(
            late("data.repositories.ganas.SqlGanaRepository"), database, identities, holders=claim_holders
        )
        api_key_repository = providers.Singleton(
            late("data.repositories.api_keys.SqlApiKeyRepository"), database
        )
        loop_log = providers.Singleton(late("data.loops.LoopLog"), settings.log_dir)
        reading_wanted = providers.Singleton(late("data.preference_store.ReadingWanted"), settings.data_dir)
        machine = providers.Singleton(
            late("data.health.MachineHealth"),
            store,
            runner,
            {"data": settings.data_dir, "log": settings.log_dir},
            loop_log,
            clock,
            model_servers,
            presence,
            database.provider,
            reading_wanted,
        )

        # A runner of its own for each policy: nothing is carried over from one to the next.
        engine_demo = providers.Singleton(
            late("data.demo.play.EngineDemo"),
            providers.Factory(
                late("data.inference.supervisor.EngineRunner"), store, settings.engine, clock
            ).provider,
            store,
            clock,
            settings.scheduler,
        )

        send_chat = providers.Factory(llm.SendChatStreamUseCase, dispatcher, store)
        read_ahead = providers.Factory(llm.ReadAheadUseCase, dispatcher, store)
        generate = providers.Factory(llm.GenerateOneShotUseCase, dispatcher, store)
        # One for all, so that it knows who else looks.
        set_foreground = providers.Singleton(scheduler.SetForegroundKindUseCase, dispatcher)
        switch_model = providers.Factory(scheduler.SwitchModelUseCase, dispatcher)
        snapshot = providers.Factory(scheduler.GetSchedulerSnapshotUseCase, dispatcher)
        list_models = providers.Factory(models.ListModelsUseCase, store)
        pull_model = providers.Factory(models.PullModelUseCase, store)
        ensure_model = providers.Factory(models.EnsureModelUseCase, store)
        use_model = providers.Factory(models.UseModelUseCase, store)
        remove_model = providers.Factory(models.RemoveModelUseCase, store)
        register_model = providers.Factory(models.RegisterModelUseCase, store)
        list_processes = providers.Factory(health.ListEngineProcessesUseCase, machine)
        measure_memory = providers.Factory(models.MeasureMemoryUseCase, machine)
        add_remote_model = providers.Factory(remote_models.AddRemoteModelUseCase, store, model_servers)
        propose_models = providers.Factory(
            models.ProposeModelsUseCase,
            store,
            providers.Factory(late("data.models.reachability.HubReachability")),
            machine,
        )
        diagnose = providers.Factory(health.DiagnoseUseCase, machine)
        play_demo = providers.Factory(demo.PlayDemoUseCase, engine_demo)

        rest = providers.Factory(_build_rest, dispatcher.provider, clock)
        embedding_worker = providers.Singleton(
            _build_embedding_worker, vector_repository, embedder, work_claims, rest
        )
        # For who waits for the vectors: at normal priority, in this process.
        prompt_embedding_worker = providers.Factory(
            _build_prompt_embedding_worker, vector_repository, embedder, work_claims
        )
        note_parser = providers.Singleton(late("data.markdown.parser.MarkdownNoteParser"))
        compose_note = providers.Factory(notes.ComposeNote, note_parser, identities)
        edit_note = providers.Factory(
            notes.EditNoteUseCase, note_parser, note_repository, identities, note_changes
        )
        find_note = providers.Factory(notes.FindNoteUseCase, note_repository)
        delete_note = providers.Factory(notes.DeleteNoteUseCase, note_repository, card_repository)
        list_manases = providers.Factory(manases.ListManasesUseCase, manas_repository)
        importer = providers.Factory(
            late("data.importing.folder.FolderImporter"),
            note_repository,
            note_parser,
            identities,
            note_changes,
            rest,
        )
        notes_controller = providers.Factory(
            NotesController,
            create=providers.Factory(notes.CreateNoteUseCase, compose_note, note_repository, note_changes),
            edit=edit_note,
            tag=providers.Factory(notes.TagNoteUseCase, edit_note, note_repository, note_parser),
            delete=delete_note,
            find=find_note,
            follow_link=providers.Factory(notes.FollowLinkUseCase, note_repository),
            complete_title=providers.Factory(notes.CompleteTitleUseCase, note_repository),
            get=providers.Factory(notes.GetNoteUseCase, note_parser, note_repository, knowledge_repository),
            list_notes=providers.Factory(notes.ListNotesUseCase, note_repository),
            search=providers.Factory(search.SearchNotesUseCase, note_repository, vector_repository, embedder),
            import_folder=providers.Factory(importing.ImportFolderUseCase, importer),
            import_upload=providers.Factory(
                importing.ImportUploadUseCase,
                providers.Singleton(late("data.importing.uploads.UploadFolder"), settings.data_dir),
                importer,
            ),
            undo_import=providers.Factory(importing.UndoImportUseCase, note_repository, delete_note),
            samples=sample_folder(),
            manases=list_manases,
            embed=providers.Factory(embedding.EmbedNotesUseCase, vector_repository, prompt_embedding_worker),
        )
        manas_controller = providers.Factory(
            ManasController,
            list_manases,
            providers.Factory(manases.CreateManasUseCase, manas_repository),
            providers.Factory(manases.DeleteManasUseCase, manas_repository),
            providers.Factory(manases.ChangeManasUseCase, manas_repository, note_repository, note_changes),
            find_note,
            providers.Factory(manases.RenameManasUseCase, manas_repository),
        )
        backups = providers.Factory(
            late("data.export.backup.SqliteBackups"), database, settings.data_dir / "backups", clock
        )
        archive_controller = providers.Factory(
            ArchiveController,
            providers.Factory(
                export.ExportUseCase,
                note_repository,
                manas_repository,
                knowledge_repository,
                conversation_repository,
                card_repository,
                gana_repository,
                note_parser,
                providers.Factory(late("data.export.archive.FolderArchives"), clock),
            ),
            providers.Factory(export.BackUpUseCase, backups),
            providers.Factory(
                export.RestoreUseCase,
                providers.Factory(late("data.export.restore.SqliteRestore"), database, backups, presence),
            ),
        )
        # One for all, so that it knows what is being read.
        extract = providers.Singleton(
            knowledge.ExtractKnowledgeUseCase,
            generate,
            store,
            note_repository,
            knowledge_repository,
            work_claims,
        )
        backfill = providers.Singleton(
            late("data.knowledge.backfill.Backfill"),
            extract,
            knowledge_repository,
            clock,
            wanted=reading_wanted,
        )
        retrieve = providers.Factory(
            retrieval.RetrieveContextUseCase,
            providers.Singleton(late("data.embedding.patience.ImpatientEmbedder"), embedder),
            vector_repository,
            note_repository,
            knowledge_repository,
            gana_repository,
        )
        settle_answers = providers.Factory(
            conversations.SettleInterruptedAnswersUseCase, conversation_repository
        )
        chat_use_cases = providers.Factory(
            ChatUseCases,
            answer=providers.Factory(
                chat.AnswerUseCase,
                send_chat,
                read_ahead,
                retrieve,
                conversation_repository,
                note_repository,
                store,
                identities,
                providers.Object(partial(asyncio.sleep, _KEEP_AGAIN_S)),
            ),
            begin=providers.Factory(conversations.BeginConversationUseCase, identities, manas_repository),
            list_conversations=providers.Factory(
                conversations.ListConversationsUseCase, conversation_repository
            ),
            show=providers.Factory(conversations.ShowConversationUseCase, conversation_repository),
            branch=providers.Factory(conversations.BranchUseCase, conversation_repository),
            change=providers.Factory(
                conversations.ChangeConversationUseCase, conversation_repository, manas_repository
            ),
            delete=providers.Factory(conversations.DeleteConversationUseCase, conversation_repository),
            set_foreground=set_foreground,
        )

        due_times = providers.Singleton(late("data.gana.due_times.CalendarDueTimes"))
        gana_engine = providers.Singleton(
            gana.GanaEngine,
            gana_repository,
            providers.Factory(
                gana.GanaMaterial,
                note_repository,
                knowledge_repository,
                providers.Factory(gana_tools.RetrievedPassages, retrieve),
                compose_note,
                note_changes,
            ),
            generate,
            store,
            providers.Factory(late("data.gana.lease.TickLeases"), gana_repository, clock),
            providers.Factory(late("data.gana.webhook.HttpWebhook")),
            identities,
        )
        gana_ticker = providers.Singleton(
            late("data.gana.ticker.GanaTicker"),
            providers.Factory(
                gana_calendar.GanaCalendar, gana_repository, note_repository, due_times, identities
            ),
            gana_engine,
            gana_repository,
            clock,
        )
        draft_gana = providers.Factory(gana_draft.DraftGanaUseCase, due_times, identities)
        # One for all, so that no two of its calls draw the same notes.
        card_generator = providers.Singleton(
            nataraj.NatarajGenerator, card_repository, note_repository, generate, store, identities
        )
        deck_refill = providers.Singleton(
            late("data.nataraj.refill.DeckRefill"), card_generator, card_repository, clock, work_claims
        )

        gana_controller = providers.Factory(
            GanaController,
            look_up=providers.Factory(gana_book.LookUpGanasUseCase, gana_repository),
            draft=draft_gana,
            save=providers.Factory(
                gana_book.SaveGanaUseCase,
                gana_repository,
                manas_repository,
                note_repository,
                due_times,
                identities,
            ),
            enable_gana=providers.Factory(
                gana_book.EnableGanaUseCase, gana_repository, due_times, identities
            ),
            delete=providers.Factory(gana_book.DeleteGanaUseCase, gana_repository),
            engine=gana_engine,
            preview_gana=providers.Factory(
                gana_draft.PreviewGanaUseCase, gana_engine, gana_repository, draft_gana, identities
            ),
            next_fires=providers.Factory(gana_draft.NextFiresUseCase, due_times, identities),
            set_foreground=set_foreground,
            changed=gana_ticker.provided.wake,
        )
        nataraj_controller = providers.Factory(
            NatarajController,
            generator=card_generator,
            show_deck=providers.Factory(nataraj.ShowDeckUseCase, card_repository, note_repository),
            keep_card=providers.Factory(
                nataraj.KeepCardUseCase, card_repository, note_repository, compose_note, note_changes
            ),
            drop_card=providers.Factory(nataraj.DropCardUseCase, card_repository),
            restore_card=providers.Factory(
                nataraj.RestoreCardUseCase, card_repository, note_repository, delete_note
            ),
            manases=providers.Factory(manases.ListManasesUseCase, manas_repository),
            set_foreground=set_foreground,
            looked_at=deck_refill.provided.look_at,
            work=deck_refill.provided.work,
        )
        chat_controller = providers.Factory(ChatController, chat_use_cases)
        composer_chat_controller = providers.Factory(ComposerChatController, chat_use_cases)
        ask_controller = providers.Factory(
            AskController,
            generate,
            providers.Factory(ask.AskNotesUseCase, generate, retrieve, store, manas_repository),
        )
        knowledge_controller = providers.Factory(
            KnowledgeController,
            extract,
            providers.Factory(
                knowledge.ReadPendingNotesUseCase, extract, knowledge_repository, note_repository
            ),
            providers.Factory(knowledge.ShowGraphUseCase, knowledge_repository),
            providers.Factory(knowledge.ListFailuresUseCase, knowledge_repository, note_repository),
            providers.Factory(knowledge.RetryExtractionUseCase, knowledge_repository),
            set_foreground,
            providers.Factory(knowledge.WatchReadingUseCase, knowledge_repository, dispatcher),
            providers.Factory(knowledge.NotesNamingUseCase, knowledge_repository, note_repository),
            providers.Factory(
                reading.OverlookReadingUseCase, knowledge_repository, note_repository, backfill
            ),
        )
        scheduling = providers.Factory(
            SchedulerController,
            set_foreground,
            switch_model,
            snapshot,
            providers.Factory(scheduler.FollowSchedulerUseCase, scheduler_history),
        )
        models_controller = providers.Factory(
            ModelsController,
            list_models,
            pull_model,
            ensure_model,
            use_model,
            remove_model,
            register_model,
            list_processes,
            measure_memory,
            propose_models,
            add_remote_model,
        )
        demo_controller = providers.Factory(DemoController, play_demo)
        peers_controller = providers.Factory(
            PeersController,
            providers.Factory(scheduler.SubmitJobUseCase, dispatcher),
            set_foreground,
            switch_model,
            snapshot,
            providers.Factory(scheduler.FollowSchedulerUseCase, scheduler_history),
        )
        # One for all, so that it knows how often each key was used.
        identify_client = providers.Singleton(api_keys.IdentifyClientUseCase, api_key_repository, identities)
        api_controller = providers.Factory(
            ApiController,
            identify_client,
            providers.Factory(api.SubmitApiJobUseCase, dispatcher, store),
            providers.Factory(api.EmbedTextsUseCase, embedder),
            list_models,
            providers.Factory(health.EngineAnswersUseCase, runner),
            identities,
        )
        api_keys_controller = providers.Factory(
            ApiKeysController,
            providers.Factory(api_keys.CreateApiKeyUseCase, api_key_repository, identities, new_secret),
            providers.Factory(api_keys.ListApiKeysUseCase, api_key_repository),
            providers.Factory(api_keys.RevokeApiKeyUseCase, api_key_repository),
        )
        engine_settings = providers.Singleton(
            late("data.engine_settings.EngineSettings"), runner, store, dispatcher
        )
        nobody = providers.Object(lambda choice: None)
        preference_store = providers.Singleton(
            late("data.preference_store.FilePreferences"),
            settings,
            dispatcher.provided.configure if server is None else nobody,
            engine_settings.provided.use if server is None else nobody,
            backfill.provided.wake,
        )
        settings_controller = providers.Factory(
            SettingsController,
            providers.Factory(preferences.ShowPreferencesUseCase, preference_store),
            providers.Factory(preferences.ChangePreferencesUseCase, preference_store),
            providers.Factory(late("data.desktop.DesktopFolders"), settings.data_dir),
        )

    return Container()


def _build_database(settings: Settings) -> Database:
    from data.database.session import Database, sqlite_url

    return Database(settings.database_url or sqlite_url(settings.data_dir / "uniun.db"))


def _build_embedder(data_dir: Path, clock: Clock) -> EmbeddingService:
    """The lane beside the scheduler. Imported when it is first wanted, not with the container; its numerics with the first text."""
    from data.embedding.cores import lane_width, performance_cores
    from data.embedding.queue import EmbeddingQueue
    from data.embedding.service import EmbeddingService
    from data.embedding.weights import EmbedderWeights

    return EmbeddingService(EmbedderWeights(data_dir), EmbeddingQueue(lane_width(performance_cores())), clock)


def _build_rest(devices: Callable[[], Devices], clock: Clock) -> Rest | None:
    from data.rest import Rest, shares_cores

    return Rest(lambda: devices().somebody_waits, clock) if shares_cores() else None


def _build_embedding_worker(
    vectors: VectorRepository, embedder: EmbeddingService, claims: WorkClaims, rest: Rest | None
) -> EmbeddingWorker:
    from data.embedding.backlog import BacklogEmbedder
    from data.embedding.worker import EmbeddingWorker

    return EmbeddingWorker(vectors, BacklogEmbedder(embedder.weights, embedder.lane), claims, rest)


def _build_prompt_embedding_worker(
    vectors: VectorRepository, embedder: EmbeddingService, claims: WorkClaims
) -> EmbeddingWorker:
    from contextlib import nullcontext

    from data.embedding.worker import EmbeddingWorker

    return EmbeddingWorker(vectors, nullcontext(embedder), claims)


def _container(server: ServerAddress | None = None) -> DeclarativeContainer:
    from data.settings import load_settings

    return build_container(load_settings(), server)


async def _container_beside_server() -> tuple[DeclarativeContainer, ServerAddress | None]:
    """Over the scheduler of the server that runs already, if one does."""
    container = _container()
    server = await container.presence().find_server()
    return (container if server is None else _container(server)), server


@asynccontextmanager
async def open_controllers() -> AsyncIterator[Controllers]:
    """A running scheduler, or that of a server that runs already, and a database that opens when it is first wanted;
    leaving stops what runs and ends the engine process."""
    container, _ = await _container_beside_server()
    async with AsyncExitStack() as stack:
        yield await _open(stack, container)


@asynccontextmanager
async def open_app() -> AsyncIterator[Controllers]:
    """The same for a program that stays open. Without a server, background work goes on beside it."""
    container, server = await _container_beside_server()
    async with AsyncExitStack() as stack:
        if server is None:
            yield await _open_alone(stack, container)
        else:
            await stack.enter_async_context(container.presence().app())
            yield await _open(stack, container)


async def _open_alone(stack: AsyncExitStack, container: DeclarativeContainer) -> Controllers:
    """What an earlier program left unfinished is settled, and in one program at a time background work goes on."""
    from data.loops import Loops

    # First of all: the background process gives way.
    alone = await stack.enter_async_context(container.presence().app())
    controllers = await _open(stack, container)
    if alone:
        await container.settle_answers()()
    backfill, worker = container.backfill(), container.embedding_worker()
    ticker, refill = container.gana_ticker(), container.deck_refill()
    for wake in (lambda note_ids: backfill.wake(), worker.wake, ticker.wake, refill.wake):
        stack.callback(container.note_changes().listen(wake))
    loops = {"reading": backfill.run, "embedding": worker.run, "Ganas": ticker.run, "deck": refill.run}
    work = Loops(loops, container.loop_log(), container.clock(), turn=container.presence().turn)
    await stack.enter_async_context(work)
    return controllers


@asynccontextmanager
async def open_servers_scheduler() -> AsyncIterator[SchedulerController | None]:
    """That of a server that runs already, to be watched; none where there is no server."""
    container, server = await _container_beside_server()
    if server is None:
        yield None
        return
    async with container.dispatcher():
        yield container.scheduling()


@asynccontextmanager
async def open_flow_names() -> AsyncIterator[FlowNames]:
    """From the database; it opens when a title is first wanted."""
    from presentation.flow_names import names_of

    container = _container()
    try:
        yield names_of(
            lambda model, system: container.chat_controller(model=model, system=system),
            container.notes_controller(),
            container.gana_controller(),
            container.manas_controller(),
        )
    finally:
        await container.database().aclose()


@asynccontextmanager
async def open_server(host: str | None, port: int | None) -> AsyncIterator[Place]:
    """An app that others may reach; only one to a data folder."""
    from data.presence import Presence
    from data.server_token import server_token
    from data.settings import load_settings
    from presentation.cli.openers import Place
    from presentation.server.listen import bound
    from presentation.server.options import ServerOptions, is_loopback

    settings = load_settings()
    host = host or settings.server.host
    async with Presence(settings.data_dir).server() as seat:
        with bound(host, settings.server.port if port is None else port) as listener:
            options = ServerOptions(
                host=host,
                port=listener.getsockname()[1],
                secret=seat.secret,
                cookie_secret=seat.secret,
                state_dir=settings.data_dir / "web",
                log_file=settings.log_dir / "server.log",
                names=settings.server.names,
                token=None if is_loopback(host) else server_token(settings.data_dir),
            )
            async with AsyncExitStack() as stack:
                controllers = await _open_alone(stack, build_container(settings))
                yield Place(controllers, options, listener, lambda: seat.announce(options.url), seat.withdraw)


async def _open(stack: AsyncExitStack, container: DeclarativeContainer) -> Controllers:
    from presentation.faces import Controllers

    stack.push_async_callback(container.database().aclose)
    await stack.enter_async_context(container.dispatcher())
    return Controllers(
        chat=lambda model, system: container.chat_controller(model=model, system=system),
        composer_chat=lambda note_id, model: container.composer_chat_controller(note_id=note_id, model=model),
        ask=container.ask_controller(),
        models=container.models_controller(),
        scheduler=container.scheduling(),
        notes=container.notes_controller(),
        manases=container.manas_controller(),
        knowledge=container.knowledge_controller(),
        nataraj=container.nataraj_controller(),
        ganas=container.gana_controller(),
        archive=container.archive_controller(),
        background=_background,
        demo=container.demo_controller,
        diagnose=container.diagnose,
        settings=container.settings_controller(),
        api=container.api_controller(),
        api_keys=container.api_keys_controller(),
        version=_version,
        peers=container.peers_controller(),
    )


@asynccontextmanager
async def open_library() -> AsyncIterator[Library]:
    """The database and what needs no model; no scheduler is started."""
    from presentation.cli.openers import Library

    container = _container()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(container.database().aclose)
        yield Library(
            notes=container.notes_controller(),
            manases=container.manas_controller(),
            knowledge=container.knowledge_controller,
            nataraj=container.nataraj_controller,
            ganas=container.gana_controller,
            archive=container.archive_controller(),
            api_keys=container.api_keys_controller(),
        )


def _background() -> BackgroundController:
    """Without the container, as the process itself is."""
    from pathlib import Path

    from background.service import UserService
    from data.clock import SystemClock
    from data.database.session import Database, sqlite_url
    from data.identity import RandomIdentities
    from data.repositories.ganas import SqlGanaRepository
    from data.settings import load_settings
    from domain.usecases.background import BackgroundStatusUseCase, ManageBackgroundUseCase
    from presentation.controllers.background import BackgroundController

    settings = load_settings()
    service = UserService(settings, Path.home())

    @asynccontextmanager
    async def open_status() -> AsyncIterator[BackgroundStatusUseCase]:
        async with Database(settings.database_url or sqlite_url(settings.data_dir / "uniun.db")) as database:
            yield BackgroundStatusUseCase(
                service, SqlGanaRepository(database, RandomIdentities(SystemClock()))
            )

    return BackgroundController(ManageBackgroundUseCase(service), open_status)


async def _run_background(tell: Callable[[str], None]) -> None:
    from background.process import BackgroundProcess
    from data.settings import load_settings

    await BackgroundProcess(load_settings(), tell=tell, look_again=load_settings).run()


def _open_models() -> ModelsController:
    controller: ModelsController = _container().models_controller()
    return controller


def _demo() -> DemoController:
    controller: DemoController = _container().demo_controller()
    return controller


def _diagnose() -> DiagnoseUseCase:
    use_case: DiagnoseUseCase = _container().diagnose()
    return use_case


def _simulate() -> SimulateUseCase:
    """Without the container: a simulation needs nothing else and should answer at once."""
    from data.scheduling.simulation import ScenarioSimulator
    from domain.usecases.scheduler import SimulateUseCase

    return SimulateUseCase(ScenarioSimulator())


def _log_file() -> Path:
    from data.settings import load_settings

    return load_settings().log_dir / "last-error.txt"


def _version() -> str:
    from importlib.metadata import version

    return version("uniun")


def main() -> None:
    """The `uniun` command."""
    begin()
    try:
        from presentation.cli.app import build_app
        from presentation.cli.openers import Openers
        from presentation.cli.run import run
    except ImportError as error:
        if (told := not_imported(error)) is None:
            raise
        sys.exit(f"uniun: {told}")

    app = build_app(
        Openers(
            controllers=open_controllers,
            app=open_app,
            server=open_server,
            servers_scheduler=open_servers_scheduler,
            flow_names=open_flow_names,
            library=open_library,
            background=_background,
            background_process=_run_background,
            models=_open_models,
            simulate=_simulate,
            demo=_demo,
            diagnose=_diagnose,
            version=_version,
        )
    )
    with interruptible():
        status = run(app, sys.argv[1:], _log_file)
    sys.exit(status)


if __name__ == "__main__":
    main()
