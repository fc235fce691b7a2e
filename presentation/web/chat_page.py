"""Shiv, the chat."""

from presentation.web.shell import heading
from presentation.web.site import Site


async def page_chat(site: Site) -> None:
    """The first page."""
    with heading("Chat"):
        pass
