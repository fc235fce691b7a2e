"""Models that the catalogue does not know: repositories of the hub, and files of one's own."""

from pathlib import Path

from nicegui import ui

from domain.errors import UniunError
from presentation.web.notices import sentence, tell
from presentation.web.parts import fold, main_button
from presentation.web.pulls import pull_words
from presentation.web.site import Site

_LOOK_S = 0.5


def draw_adding(site: Site) -> None:
    """Repositories of the hub by name, and files of one's own."""
    with ui.element("section").classes("u-card"), fold("Another model"):
        name = ui.input("Repository on the Hugging Face hub (MLX)", placeholder="owner/name").props(
            "outlined stack-label"
        )

        def pull() -> None:
            wanted = str(name.value or "").strip()
            if "/" not in wanted:
                name.error = "Write it as owner/name."
                return
            name.error = None
            errand = site.pulls.begin(wanted)
            client = ui.context.client

            def done(_: object) -> None:
                if errand.error is not None:
                    client.safe_invoke(
                        lambda: setattr(name, "error", sentence(errand.error or RuntimeError()))
                    )

            assert errand.task is not None
            errand.task.add_done_callback(done)

        progress = ui.label("").classes("u-muted u-small u-number")

        def look() -> None:
            errand = site.pulls.get(str(name.value or "").strip())
            progress.text = pull_words(errand.step) if errand is not None and errand.running else ""

        ui.timer(_LOOK_S, look)
        main_button("Fetch", icon="download", on_click=pull)
        ui.separator()
        own = ui.input("A name for a model of your own").props("outlined")
        path = ui.input("Its folder (MLX) or its .gguf file").props("outlined")

        def add() -> None:
            own.error = path.error = None
            try:
                model = site.faces.models.add(
                    str(own.value or "").strip(), Path(str(path.value or "").strip())
                )
            except UniunError as error:
                path.error = sentence(error)
                return
            tell(f"{model.name} can be used now.")
            site.changes.tell("models")

        main_button("Add", on_click=add)
