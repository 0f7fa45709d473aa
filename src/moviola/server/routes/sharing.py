"""A link to the page that unfolds as a card with a still where it is posted (Open Graph, https://ogp.me)."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from moviola.errors import NotFound
from moviola.library import VideoRow
from moviola.server.service import Service, ServiceOf
from moviola.types import clock

router = APIRouter(include_in_schema=False)

SHARED = "/watch"
_PLAY = re.compile(r"(.+)@([0-9]{1,9}(?:\.[0-9]{1,6})?)-[0-9.]+", re.DOTALL)
_WIDTH = 960  # pixels of the still

# Those who unfold links read the head; browsers go on, with what stands behind the question mark.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
{card}<meta http-equiv="refresh" content="0; url=./#/search?{query}">
</head>
<body><a href="./#/search?{query}">{title}</a></body>
</html>
"""


@router.get(SHARED, response_class=HTMLResponse)
def shared(request: Request, service: ServiceOf) -> HTMLResponse:
    """The page's link to a moment, ``play=VIDEO@START-END`` among its parameters, as an address of its own.

    Where the server has a token, who has none gets no card.
    """
    query = escape(request.scope["query_string"].decode("latin-1"))
    title, card = "moviola", ""
    if found := _PLAY.fullmatch(request.query_params.get("play", "")):
        try:
            video = service.library.catalogue.video(found[1])
        except NotFound:  # the page says so
            return HTMLResponse(_PAGE.format(title=title, card=card, query=query))
        start = min(float(found[2]), video.duration)
        title = escape(f"{video.video_id.rpartition('/')[2]} · {clock(start)}")
        card = _card(title, _still(request, service, video, start), escape(service.name))
    return HTMLResponse(_PAGE.format(title=title, card=card, query=query))


def _still(request: Request, service: Service, video: VideoRow, start: float) -> str:
    """The whole address of a picture: a card is made elsewhere."""
    root = f"{request.url.scheme}://{request.headers['host']}{service.options.root_path}"
    fields = {"time": round(start, 3), "width": _WIDTH, "v": video.row}
    return escape(f"{root}/api/videos/{quote(video.video_id, safe='')}/still?{urlencode(fields)}")


def _card(title: str, still: str, site: str) -> str:
    about = {"og:type": "video.other", "og:title": title, "og:site_name": site, "og:image": still}
    lines = [f'<meta property="{name}" content="{content}">\n' for name, content in about.items()]
    return "".join([*lines, '<meta name="twitter:card" content="summary_large_image">\n'])
