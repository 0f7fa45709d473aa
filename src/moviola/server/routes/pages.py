"""The page with its scripts and styles, served unchanged from the package."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

__all__ = ["mount_pages"]

PAGES = Path(__file__).resolve().parent.parent / "page"
"""Folder of the files."""


class _Files(StaticFiles):
    """Files that browsers revalidate each time, which costs a response without content."""

    def file_response(self, *args: object, **options: object) -> Response:
        answer = super().file_response(*args, **options)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def mount_pages(app: FastAPI) -> None:
    """Mount ``/``, ``/judge`` and the files below ``/static/``."""
    files = _Files(directory=PAGES, check_dir=False)
    app.mount("/static", files)

    async def page(request: Request) -> Response:
        name = {"/": "index.html"}.get(request.url.path, f"{request.url.path.strip('/')}.html")
        return await files.get_response(name, request.scope)

    for path in ("/", "/judge"):
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False, response_model=None)
