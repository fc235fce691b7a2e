"""`uniun doctor`."""

from rich.text import Text

from domain.entities.health import Finding
from domain.errors import UniunError
from presentation.cli.chat import describe
from presentation.cli.openers import Openers
from presentation.cli.progress import ensure
from presentation.cli.terminal import out
from presentation.cli.wrap import folded

_LABEL = 16
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


async def doctor(openers: Openers, *, run: bool) -> bool:
    """Shows every finding as it comes; whether nothing is broken."""
    sound = True
    async for finding in openers.diagnose()():
        _show(finding)
        sound &= finding.state != "fail"
    if run:
        trial = await _trial(openers)
        _show(trial)
        sound &= trial.state != "fail"
    return sound


async def _trial(openers: Openers) -> Finding:
    """A real generation, through the whole stack."""
    try:
        async with openers.controllers() as controllers:
            model = await ensure(controllers.models, None)
            result = await controllers.ask.ask("Say hello.", model=model.name, max_tokens=16)
    except UniunError as error:
        return Finding(
            area="generation",
            state="fail",
            text=str(error),
            mend="Mend what is marked above, then try again.",
        )
    if result.usage.completion_tokens == 0:
        return Finding(
            area="generation",
            state="fail",
            text=f"{model.name} ended its answer before the first token",
            mend="Try another model: uniun models list, then uniun models use NAME.",
        )
    return Finding(area="generation", state="ok", text=f"{model.name}: {describe(result)}")


def _show(finding: Finding) -> None:
    console = out()
    label = Text.assemble((f"{finding.state:5}", _STYLES[finding.state]), (f"{finding.area:11}", "bold"))
    console.print(label.append(folded(finding.text, len(label)), style="none"), soft_wrap=True)
    if finding.mend:
        arrow = f"{'':{_LABEL}}→ "
        console.print(Text(arrow + folded(finding.mend, len(arrow))), soft_wrap=True)
