"""Running a Gana now, watching it, and what else is done to one from more than one page."""

from nicegui import ui

from domain.entities.gana import Gana, GanaRun
from domain.errors import UniunError
from presentation.web.errands import Errand
from presentation.web.gana_words import progress_words, run_words
from presentation.web.notices import tell, tell_error
from presentation.web.page_words import page_words
from presentation.web.parts import confirm
from presentation.web.site import Site


def run_of(site: Site, gana_id: str) -> Errand | None:
    """The run that some page asked for."""
    return site.errands.get(f"gana/{gana_id}")


def run_line(site: Site, gana_id: str) -> str:
    """What it does now; empty when no page asked for a run that is going on."""
    errand = run_of(site, gana_id)
    return progress_words(errand.step) if errand is not None and errand.running else ""


def run_now(site: Site, gana: Gana) -> None:
    """Begins a run that goes on when the page is closed; says at its end how it went."""
    ganas, client = site.faces.ganas, ui.context.client
    errand = site.errands.begin(f"gana/{gana.id}", lambda say: ganas.run(gana.id, say))
    assert errand.task is not None

    def say() -> None:
        if errand.error is not None:
            tell_error(errand.error)
        elif isinstance(errand.result, GanaRun):
            run = errand.result
            detail = f" {page_words(run.detail)}" if run.status == "failed" and run.detail else ""
            tell(f"{gana.draft.name} {run_words(run)}.{detail}")

    def done(_: object) -> None:
        site.changes.tell("ganas")
        site.changes.tell("notes")
        client.safe_invoke(say)

    errand.task.add_done_callback(done)
    site.changes.tell("ganas")


def stop(site: Site, gana_id: str) -> None:
    """At its next token; the log says that it was stopped."""
    site.faces.ganas.stop(gana_id)


async def switch(site: Site, gana: Gana, *, on: bool) -> None:
    """On or off, and when it will run."""
    client = ui.context.client
    try:
        changed = await site.faces.ganas.enable(gana.id, on=on)
    except UniunError as error:
        with client:
            tell_error(error)
    else:
        with client:
            tell(f"{changed.draft.name} is {'on' if on else 'off'}.")
    site.changes.tell("ganas")


async def delete(site: Site, gana: Gana) -> bool:
    """After asking."""
    client = ui.context.client
    text = "Its log goes too. The notes that it wrote stay."
    if not await confirm(f"Delete {gana.draft.name}?", text, "Delete"):
        return False
    try:
        await site.faces.ganas.remove(gana.id)
    except UniunError as error:
        with client:
            tell_error(error)
        return False
    with client:
        tell(f"{gana.draft.name} is deleted.")
    site.changes.tell("ganas")
    return True
