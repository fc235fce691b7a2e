"""Plays the load under each policy, each time on an engine that has just been started."""

from collections.abc import Callable, Sequence

from data.clock import Clock
from data.demo.load import build_load, describe
from data.demo.machine import machine
from data.demo.verdict import verdict
from data.demo.window import Window
from data.scheduling.config import SchedulerConfig
from data.scheduling.dispatcher import Dispatcher
from domain.entities.demo import DemoEvent, DemoPolicy, DemoReport, DemoRun, DemoStarting
from domain.entities.llm import Sampling
from domain.repositories.inference_runner import InferenceRunner, LoadedModel, RunnerJob
from domain.repositories.model_store import ModelStore

_IDLE_LIMIT = 0.5
"""Of a window: the chats alone end when they are answered, which takes far less unless the machine is very slow."""
_WARM_UP = "Count slowly from one to one hundred, one number a line, and say a word about each of them. " * 4


class EngineDemo:
    """Implements `Demo`."""

    def __init__(
        self,
        open_runner: Callable[[], InferenceRunner],
        store: ModelStore,
        clock: Clock,
        config: SchedulerConfig,
    ) -> None:
        """`open_runner` makes a runner whose engine has not been started; it is closed here."""
        self._open_runner = open_runner
        self._store = store
        self._clock = clock
        self._config = config

    async def play(
        self, model: str, policies: Sequence[DemoPolicy], window_s: float, watch: Callable[[DemoEvent], None]
    ) -> DemoReport:
        config, scale = scaled(self._config, window_s)
        on = await machine()
        watch(on)
        runs: list[DemoRun] = []
        engine = ""
        for number, policy in enumerate(policies, 1):
            watch(DemoStarting(policy=policy, number=number, count=len(policies), window_s=window_s))
            run, engine = await self._play_one(model, policy, window_s, config, watch)
            runs.append(run)
            watch(run)
        return DemoReport(
            at=self._clock.now().isoformat(timespec="seconds"),
            machine=on,
            engine=engine,
            model=model,
            load=describe(),
            policy_time_scale=scale,
            runs=tuple(runs),
            verdict=verdict(runs),
        )

    async def _play_one(
        self,
        model: str,
        policy: DemoPolicy,
        window_s: float,
        config: SchedulerConfig,
        watch: Callable[[DemoEvent], None],
    ) -> tuple[DemoRun, str]:
        """The run, and which engine it was on."""
        runner = self._open_runner()
        try:
            begun = self._clock.monotonic()
            loaded = await _warm_up(runner, model)
            load_s = self._clock.monotonic() - begun
            scheduling = "uniun" if policy == "idle" else policy
            async with Dispatcher(runner, self._store, self._clock, config, policy=scheduling) as dispatcher:
                await dispatcher.switch_model(model)
                load = build_load(model, window_s)
                length_s = window_s * _IDLE_LIMIT if policy == "idle" else window_s
                window = Window(policy, load, length_s, dispatcher, self._clock, watch)
                return await window.play(load_s), loaded.engine
        finally:
            await runner.aclose()


def scaled(config: SchedulerConfig, window_s: float) -> tuple[SchedulerConfig, float]:
    """The policy's long times shrunk, so that a window shows what otherwise takes as long as extract's share looks back."""
    scale = window_s / config.share_window_s
    names = ("share_window_s", "share_min_busy_s", "fair_slice_s", "halving_period_s")
    return config.model_copy(update={name: getattr(config, name) * scale for name in names}), scale


async def _warm_up(runner: InferenceRunner, model: str) -> LoadedModel:
    """Loads the model and runs it once, so that no policy pays for cold memory or an engine that knows no speed yet."""
    loaded = await runner.load(model)
    job = RunnerJob(
        id="warm-up", cache_key="warm-up", prompt=_WARM_UP, sampling=Sampling(seed=0), max_tokens=4
    )
    await runner.run(job, lambda progress: None)
    runner.forget(job.id)
    return loaded
