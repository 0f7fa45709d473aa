"""The ASGI app: routes, error handlers and guards around one library."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.routing import Mount, Route

from moviola.plugins import ServerAddition, plugin, server_additions
from moviola.server.compressing import Compressed
from moviola.server.file_headers import Ranges
from moviola.server.metrics import Measured, Metrics
from moviola.server.options import Options
from moviola.server.page_files import PageFiles, unversioned
from moviola.server.problems import ANSWERS, Defects, handle_problems, require_known_parameters
from moviola.server.routes import (
    exports,
    jobs,
    kept,
    library,
    questions,
    search,
    sharing,
    streams,
    upkeep,
    uploads,
    videos,
)
from moviola.server.security import (
    HEADERS,
    AddedHeaders,
    Below,
    BodyLimit,
    GivenParameters,
    Guard,
    Guarded,
    RawPaths,
    Right,
)
from moviola.server.service import Service
from moviola.threads import one_blas_thread

__all__ = ["create_app"]

# The page with its scripts and styles, served unchanged from the package.
_PAGES = Path(__file__).resolve().parent / "page"


def create_app(
    library_folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], options: Options | None = None
) -> FastAPI:
    """An ASGI app that serves a library; opened now, its encoder is loaded when the app starts.

    Args:
        library_folder: of a library, or of several, which are served as one (:class:`moviola.Libraries`).
        options: access and limits; by default only this machine has access, without a token.

    Raises:
        NotFound: no library there, or a folder to watch that does not exist and is none of the library's.
        LibraryError: it is damaged, or several do not fit together.
        InvalidValue: several libraries, and folders to watch.
        BrokenPlugin: what a package adds cannot be used.
    """
    options = options or Options()
    folders = [library_folder] if isinstance(library_folder, str | os.PathLike) else [*library_folder]
    service = Service(folders, options)
    app = FastAPI(
        title="moviola", version=version("moviola"),
        description="Video moment search: text in, a ranked list of moments out.",
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, responses=ANSWERS, lifespan=_lifespan,
        servers=[{"url": options.root_path}] if options.root_path else None,
    )  # fmt: skip
    app.state.service = service
    handle_problems(app)
    own = (library, search, questions, videos, streams, exports, jobs, kept, upkeep, uploads, sharing)
    added = server_additions()
    routers = [*(one.router for one in own), *(_added(*one) for one in added.items())]
    routers.append(_heads(routers))
    for router in routers:
        app.include_router(router, dependencies=[Depends(require_known_parameters)])
    metrics = Metrics(service)
    app.add_api_route(
        "/metrics", metrics.answer, methods=["GET", "HEAD"], include_in_schema=False, response_class=Response
    )
    files = PageFiles([_PAGES, *(one.pages for one in added.values() if one.pages is not None)])
    pages = _add_pages(app, files)
    own_routes = [route for route in app.routes if isinstance(route, Route | Mount)]
    app.state.routes = [*(route for router in routers for route in router.routes), *own_routes]
    reading = tuple(f"/api/{name}/" for name, one in added.items() if one.right == "read")
    _guard(app, options, Guarded(files, pages | {sharing.SHARED}, reading), metrics)
    return app


def _added(name: str, addition: ServerAddition) -> APIRouter:
    """The routes of an addition; :class:`BrokenPlugin` where one is not below its path."""
    router: APIRouter = addition.router()
    path = f"/api/{name}"
    paths = [route.path for route in router.routes if isinstance(route, Route)]
    if outside := [one for one in paths if not f"{one}/".startswith(f"{path}/")]:
        found = plugin("moviola.routes", name)
        assert found is not None
        raise found.broken(ValueError(f"its route {outside[0]!r} is not below {path}"))
    return router


def _add_pages(app: FastAPI, files: PageFiles) -> frozenset[str]:
    """Serve the page, and those of additions; returns their paths."""

    async def page(request: Request) -> Response:
        return files.page(request.url.path.strip("/") or "index", request.headers)

    async def icon() -> Response:
        headers = {"Cache-Control": "private, max-age=604800"}
        return Response(files.text("icon.svg"), media_type="image/svg+xml", headers=headers)

    async def kept(request: Request) -> Response:
        """A file under the address that names its content; of another version, the one that there is now."""
        path = request.url.path
        return files.file(path, request.headers) or await plain.get_response(
            unversioned(path).removeprefix("/static/"), request.scope
        )

    plain = _Files(directory=files.folders[0], check_dir=False)
    plain.all_directories += list(files.folders[1:])
    paths = frozenset(
        {"/", *(f"/{html.stem}" for folder in files.folders[1:] for html in folder.glob("*.html"))}
    )
    routes: dict[str, Callable[..., Any]] = dict.fromkeys(paths, page)
    routes |= {"/favicon.ico": icon, "/static/v-{version}/{name:path}": kept}
    for path, answer in routes.items():
        app.add_api_route(path, answer, methods=["GET", "HEAD"], include_in_schema=False, response_model=None)
    app.mount("/static", plain)
    return paths


def _heads(routers: list[APIRouter]) -> APIRouter:
    """Routes that answer HEAD where those of routers answer GET alone; a server sends no body then."""
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    known = {route.path for route in routes if "HEAD" in (route.methods or ())}
    heads = APIRouter()
    for route in routes:
        if "GET" in (route.methods or ()) and route.path not in known:
            heads.add_api_route(
                route.path, route.endpoint, methods=["HEAD"], include_in_schema=False,
                dependencies=route.dependencies, response_class=route.response_class,
                response_model=route.response_model,
            )  # fmt: skip
    return heads


def _guard(app: FastAPI, options: Options, guarded: Guarded, metrics: Metrics) -> None:
    """Wrap the app; the guard added last comes first."""
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
    app.add_middleware(
        Guard, tokens=tokens, hosts=options.allow_hosts, guarded=guarded, root=options.root_path
    )
    app.add_middleware(Defects)
    app.add_middleware(Measured, metrics=metrics)
    app.add_middleware(AddedHeaders, headers={"Tus-Resumable": uploads.VERSION}, below=uploads.PATH)
    app.add_middleware(AddedHeaders, headers=HEADERS)
    app.add_middleware(Compressed)
    app.add_middleware(Below, root=options.root_path)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    with one_blas_thread():  # whatever it computes is small, and other requests wait for it
        service.start()
        yield
        await service.close()


class _Files(StaticFiles):
    """Files that browsers revalidate each time, which costs a response without content."""

    def file_response(self, *args: object, **options: object) -> Response:
        answer = super().file_response(*args, **options)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = "no-cache"
        return answer
