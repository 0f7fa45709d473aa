"""HTTP server of a library: search, videos, stills, streams, jobs, and the page.

``app`` joins the other modules: routes by theme (``routes/``), request and response types (``schemas``),
access control (``security``), concurrency limits (``pools``), files made of videos (``stills``), indexing
jobs (``jobs``), and errors as responses (``problems``). ``client`` is the Python client.
"""

from moviola.server.app import create_app
from moviola.server.client import Client
from moviola.server.options import Options
from moviola.server.running import serve

__all__ = ["Client", "Options", "create_app", "serve"]
