"""A library over HTTP: search, videos, stills, streams, jobs, and the page that shows them.

``app`` puts together what the other modules hold: routes by theme (``routes/``), what they read and answer
(``schemas``), who may ask (``security``), how many at once (``pools``), files made of videos (``stills``),
bringing videos in (``jobs``), and errors as answers (``problems``). ``client`` asks one from Python.
"""

from __future__ import annotations

from moviola.server.app import create_app
from moviola.server.client import Client
from moviola.server.options import Options
from moviola.server.running import serve

__all__ = ["Client", "Options", "create_app", "serve"]
