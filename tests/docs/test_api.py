"""The API page has all public names and requests; messages quoted in Troubleshooting are the code's."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

import moviola
from docs_reference import PUBLIC, name_tables
from moviola.server import routes

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ROOMS = ("", "types", "errors", "search", "library", "media", "encoders", "features", "index", "retrieval",
         "export", "server", "mcp", "study.measures", "study.public", "study.judging")  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_api_page(room: str) -> None:
    module = importlib.import_module(f"moviola.{room}".rstrip("."))
    tables = name_tables()
    assert API.count(PUBLIC) == 1
    for name in module.__all__:
        assert f"`{module.__name__}.{name}`" in tables
        value = getattr(module, name)
        assert not (inspect.isclass(value) or inspect.isfunction(value)) or inspect.getdoc(value), name


def requests() -> Iterator[str]:
    """Method and path of every route of the server."""
    for module in pkgutil.iter_modules(routes.__path__):
        router = getattr(importlib.import_module(f"{routes.__name__}.{module.name}"), "router", None)
        for route in router.routes if router else ():
            if isinstance(route, APIRoute):
                yield from (f"{method} {route.path}" for method in route.methods)


def test_every_request_is_in_the_api_page_once() -> None:
    """In a row of its own; a second row would say something else of it."""
    rows = {request: API.count(f"| `{request}` |") for request in requests() if "HEAD" not in request}
    assert {request: count for request, count in rows.items() if count != 1} == {}


def test_messages_in_troubleshooting_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+ [^`]+)` \|", page, re.MULTILINE)
    texts = {
        node.value
        for path in Path(moviola.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(quoted) > 5
    assert not [message for message in quoted if not any(message in text for text in texts)]
