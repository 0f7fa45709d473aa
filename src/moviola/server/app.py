"""The ASGI app: routes, error handlers, guards and metrics around one library."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moviola.server.options import Options
from moviola.server.problems import ANSWERS, Defects, handle_problems, require_known_parameters
from moviola.server.routes import (
    dres,
    exports,
    jobs,
    judging,
    kept,
    library,
    search,
    streams,
    upkeep,
    uploads,
    videos,
)
from moviola.server.security import HEADERS, AddedHeaders, BodyLimit, Guard, RawPaths, Right
from moviola.server.service import Service

__all__ = ["create_app"]

# The page with its scripts and styles, served unchanged from the package.
_PAGES = Path(__file__).resolve().parent / "page"

log = logging.getLogger("moviola.server")
_LONGEST_PATH = 500  # letters of a path in the log


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
    for routes in (
        library, search, videos, streams, exports, jobs, judging, kept, upkeep, uploads, dres,
    ):  # fmt: skip
        app.include_router(routes.router, dependencies=[Depends(require_known_parameters)])
    metrics = Metrics(service)
    app.add_api_route("/metrics", metrics.answer, include_in_schema=False, response_class=Response)
    files = _Files(directory=_PAGES, check_dir=False)
    app.mount("/static", files)

    async def page(request: Request) -> Response:
        return await files.get_response(f"{request.url.path.strip('/') or 'index'}.html", request.scope)

    for path in ("/", "/judge"):
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False, response_model=None)
    _guard(app, options, metrics)
    return app


def _guard(app: FastAPI, options: Options, metrics: Metrics) -> None:
    """Wrap the app; the guard added last comes first."""
    limits = options.limits
    app.add_middleware(streams.Ranges)
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
    app.add_middleware(Guard, tokens=tokens, hosts=options.allow_hosts)
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


class Metrics:
    """Counters, timings and gauges of a server; gauges show the service as it is when they are read."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route")
        self.requests = Counter(
            "moviola_requests", "Requests answered.", (*labels, "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "moviola_request_seconds", "Time to the end of the response.", labels, registry=self.registry
        )
        inside = Gauge("moviola_pool_calls", "Running and waiting calls.", ("pool",), registry=self.registry)
        for pool in service.pools:
            inside.labels(pool.name).set_function(partial(getattr, pool, "inside"))
        videos = Gauge("moviola_videos", "Searchable videos.", registry=self.registry)
        videos.set_function(lambda: len(service.library))
        ready = Gauge("moviola_ready", "Whether queries can be answered.", registry=self.registry)
        ready.set_function(lambda: not service.unready)

    def answer(self) -> Response:
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class Measured:
    """Counts requests by route, not by path, since paths are unlimited; logs each path, without its query."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request and record its status and time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = perf_counter(), "500"

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if route != "other" else "other"
            self.metrics.requests.labels(method, route, status).inc()
            taken = perf_counter() - began
            self.metrics.seconds.labels(method, route).observe(taken)
            if log.isEnabledFor(logging.INFO):
                fields = {
                    "method": scope["method"], "path": scope["path"][:_LONGEST_PATH], "status": int(status),
                    "milliseconds": round(1000 * taken, 1),
                }  # fmt: skip
                log.info("request", extra={"fields": fields})
