"""The served application: API and pages, and what stands before them."""

import os

from fastapi import FastAPI

from presentation.faces import Controllers
from presentation.server.closing import Closing
from presentation.server.guard import Guard
from presentation.server.headers import Headers
from presentation.server.internal import build_internal_router
from presentation.server.limits import BodyLimit, PlacesForPages
from presentation.server.options import ServerOptions


def build_server(faces: Controllers, options: ServerOptions) -> FastAPI:
    """Once a process, on its event loop: pages are registered with NiceGUI, which has one application."""
    # Read by NiceGUI when it is imported, so that is here.
    os.environ.setdefault("NICEGUI_STORAGE_PATH", str(options.state_dir))
    from presentation.api.routes import build_router
    from presentation.web.mount import mount_pages

    app = FastAPI(title="UNIUN", version=faces.version(), docs_url=None, redoc_url=None)
    app.include_router(build_router(faces))
    app.include_router(build_internal_router(faces.peers))
    mount_pages(app, faces)  # last: what nothing else answers goes to the pages
    # From the inside out.
    app.add_middleware(PlacesForPages, most=options.max_connections * 9 // 10)
    app.add_middleware(BodyLimit, max_bytes=options.max_body_bytes, max_upload_bytes=options.max_upload_bytes)
    app.add_middleware(Guard, options=options, key_fits=faces.api.key_fits)
    app.add_middleware(Closing)
    app.add_middleware(Headers)
    return app
