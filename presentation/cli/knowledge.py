"""`uniun notes read`: works off the list of notes that are to be read into the knowledge graph."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from domain.entities.llm import GenerationEvent, Prefilling, TextDelta, Waiting
from presentation.cli.openers import Controllers
from presentation.cli.progress import CountColumn, ensure
from presentation.cli.terminal import err, printable, say, write
from presentation.counting import counted
from presentation.scheduler_words import wait_words

_TITLE_SHOWN = 40


async def read_notes(open_controllers: Callable[[], AbstractAsyncContextManager[Controllers]]) -> bool:
    """Until nothing waits. May be stopped at any moment: what was read is kept, and the rest still waits.

    False if a note was given up.
    """
    done = 0
    async with open_controllers() as controllers:
        await ensure(controllers.models, None)
        waiting = (await controllers.knowledge.overview()).waiting
        with _bar() as bar:
            task = bar.add_task("beginning", total=waiting)

            def tell(event: GenerationEvent) -> None:
                match event:
                    case Waiting(reason=reason):
                        bar.update(task, description=printable(wait_words(reason)))
                    case Prefilling(done_tokens=read, total_tokens=total):
                        bar.update(task, description=f"reading, {read:,} of {counted(total, 'token')}")
                    case TextDelta(tokens=tokens):
                        bar.update(task, description=f"writing, {counted(tokens, 'token')}")

            async with aclosing(controllers.knowledge.read_pending(tell)) as steps:
                async for step in steps:
                    done = step.done
                    if step.outcome == "refused":
                        say(f"{' '.join(step.title.split())[:_TITLE_SHOWN]} could not be read this time.")
                    bar.update(task, completed=done, total=done + step.waiting)
        failed = len(await controllers.knowledge.failures())
    if failed:
        say(f"{counted(failed, 'note')} could not be read. See: uniun notes failures")
    write(f"{counted(done, 'note')} read.\n" if done or failed else "Every note has been read.\n")
    return not failed


def _bar() -> Progress:
    console = err()
    return Progress(
        BarColumn(),
        CountColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
