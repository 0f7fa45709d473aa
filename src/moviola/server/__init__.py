"""HTTP server of a library: search, videos, stills, streams, jobs, and the page.

``app`` joins the other modules: routes by theme (``routes/``), request and response types (``schemas``),
access control (``security``), concurrency limits (``pools``), files made of videos (``stills``), indexing
jobs (``jobs``), and errors as responses (``problems``).

Examples:
    >>> from fastapi.testclient import TestClient
    >>> from moviola import Library
    >>> from moviola.server import Options, create_app
    >>> with Library("lib", encoder="none", sentence_encoder="none"):
    ...     pass
    >>> http = TestClient(create_app("lib", Options(token="secret")), base_url="http://localhost")
    >>> http.get("/api/library").status_code
    401
    >>> http.get("/api/library", headers={"Authorization": "Bearer secret"}).json()["videos"]
    0
"""

from moviola.server.app import create_app
from moviola.server.options import Options
from moviola.server.running import serve

__all__ = ["Options", "create_app", "serve"]
