"""HTTP server of a library: search, videos, stills, streams, jobs, and the page.

``app`` joins the other modules: routes by theme (``routes/``), request and response types (``schemas``),
access control (``security``), concurrency limits (``pools``), files made of videos (``stills``), indexing
jobs (``jobs``), and errors as responses (``problems``).
"""

from moviola.server.app import create_app
from moviola.server.options import Options
from moviola.server.running import serve

__all__ = ["Options", "create_app", "serve"]
