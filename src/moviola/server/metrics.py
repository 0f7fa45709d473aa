"""Counters and timings for Prometheus, in the app's own registry, and a line of the log for each request."""

from __future__ import annotations

import logging
from functools import partial
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moviola.server.service import Service

__all__ = ["Measured", "Metrics"]

log = logging.getLogger("moviola.server")
_LONGEST_PATH = 500  # letters of a path in the log


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
