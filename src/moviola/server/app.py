"""The ASGI app: routes, error handlers and guards around one library."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

from moviola.plugins import server_additions
from moviola.server.file_headers import Ranges
from moviola.server.metrics import Measured, Metrics
from moviola.server.options import Options
from moviola.server.problems import ANSWERS, Defects, handle_problems, require_known_parameters
from moviola.server.routes import (
    exports,
    jobs,
    kept,
    library,
    search,
    streams,
    upkeep,
    uploads,
    videos,
)
from moviola.server.security import HEADERS, AddedHeaders, BodyLimit, GivenParameters, Guard, RawPaths, Right
from moviola.server.service import Service

__all__ = ["create_app"]

# The page with its scripts and styles, served unchanged from the package.
_PAGES = Path(__file__).resolve().parent / "page"


def create_app(library_folder: str | os.PathLike[str], options: Options | None = None) -> FastAPI:
    """An ASGI app that serves a library; opened now, its encoder is loaded when the app starts.

    ``options`` are access and limits; by default only this machine has access, without a token.

    Raises:
        NotFound: no library there, or a folder to watch that does not exist and is none of the library's.
        LibraryError: it is damaged.
    """
    options = options or Options()
    service = Service(library_folder, options)
    app = FastAPI(
        title="moviola", version=version("moviola"),
        description="Video moment search: text in, a ranked list of moments out.",
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, responses=ANSWERS, lifespan=_lifespan,
    )  # fmt: skip
    app.state.service = service
    handle_problems(app)
    own = (library, search, videos, streams, exports, jobs, kept, upkeep, uploads)
    added = server_additions()
    for router in (*(one.router for one in own), *(one.router() for one in added.values())):
        app.include_router(router, dependencies=[Depends(require_known_parameters)])
    metrics = Metrics(service)
    app.add_api_route("/metrics", metrics.answer, include_in_schema=False, response_class=Response)
    pages = _add_pages(app, [one.pages for one in added.values() if one.pages is not None])
    reading = tuple(f"/api/{name}/" for name, one in added.items() if one.right == "read")
    _guard(app, options, metrics, pages, reading)
    return app


def _add_pages(app: FastAPI, folders: Sequence[Path]) -> frozenset[str]:
    """Serve the page, and those of additions; returns their paths."""
    files = _Files(directory=_PAGES, check_dir=False)
    files.all_directories += folders
    app.mount("/static", files)

    async def page(request: Request) -> Response:
        return await files.get_response(f"{request.url.path.strip('/') or 'index'}.html", request.scope)

    paths = frozenset({"/", *(f"/{html.stem}" for folder in folders for html in folder.glob("*.html"))})
    for path in paths:
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False, response_model=None)
    return paths


def _guard(
    app: FastAPI, options: Options, metrics: Metrics, pages: frozenset[str], reading: tuple[str, ...]
) -> None:
    """Wrap the app; the guard added last comes first. Requests below ``reading`` need the right to read."""
    limits = options.limits
    app.add_middleware(Ranges)
    app.add_middleware(GivenParameters)
    app.add_middleware(RawPaths)
    app.add_middleware(
        BodyLimit,
        most=limits.body_bytes,
        longer={
            "/api/pictures": limits.picture_bytes,
            "/api/uploads/": limits.upload_bytes,
            "/api/kept": limits.kept_bytes,
        },
    )
    tokens: dict[Right, str] = {"change": options.token, "read": options.read_token}
    app.add_middleware(Guard, tokens=tokens, hosts=options.allow_hosts, pages=pages, reading=reading)
    app.add_middleware(Defects)
    app.add_middleware(Measured, metrics=metrics)
    app.add_middleware(AddedHeaders, headers={"Tus-Resumable": uploads.VERSION}, below=uploads.PATH)
    app.add_middleware(AddedHeaders, headers=HEADERS)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    service.start()
    yield
    await service.close()


class _Files(StaticFiles):
    """Files that browsers revalidate each time, which costs a response without content."""

    def file_response(self, *args: object, **options: object) -> Response:
        answer = super().file_response(*args, **options)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = "no-cache"
        return answer
