"""The page, its scripts and styles: files of the package, as they are."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

__all__ = ["mount_pages"]

PAGES = Path(__file__).resolve().parent.parent / "page"
"""Where the files lie."""


class _Files(StaticFiles):
    """Files that browsers ask for again each time, which costs an answer without content."""

    def file_response(self, *args: object, **options: object) -> Response:
        answer = super().file_response(*args, **options)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def mount_pages(app: FastAPI) -> None:
    """``/`` and ``/judge`` are pages, ``/static/…`` what they are made of."""
    files = _Files(directory=PAGES, check_dir=False)
    app.mount("/static", files)

    async def page(request: Request) -> Response:
        name = {"/": "index.html"}.get(request.url.path, f"{request.url.path.strip('/')}.html")
        return await files.get_response(name, request.scope)

    for path in ("/", "/judge"):
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False, response_model=None)
