"""The table of a question's fields: one declaration is all that a filter is, wherever one asks."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import moviola.search
from moviola.search.fields import PARTS
from moviola.search.filters import FILTERS
from moviola.search.options import FIELDS
from page_scripts import run_script

TOY = """
    wide: str | None = declared(
        LINES,
        "Videos with this in their id: film1.",
        of=lambda facts: [facts.video.video_id],
        passes=lambda text, ids: ids.having([text in one for one in ids.texts]),
        label="Anywhere in its name", short="called", example="film1",
    )
"""
"""A filter: all that has to be written to add one, in one place."""

WITH_TOY = """
import json, sys
from importlib.machinery import SourceFileLoader

class Added(SourceFileLoader):
    def get_data(self, path):
        text = super().get_data(path).decode()
        if path.endswith("filters.py"):
            before, after = text.split("    def __post_init__(self) -> None:", 1)
            text = before + {toy!r} + "    def __post_init__(self) -> None:" + after
        return text.encode()

    def get_code(self, fullname):
        return compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)

class Finder:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "moviola.search.filters":
            from importlib.util import spec_from_file_location
            return spec_from_file_location(name, {source!r}, loader=Added(name, {source!r}))

sys.meta_path.insert(0, Finder)

import contextlib, io
import anyio
from fastapi.testclient import TestClient
from mcp import Client

from moviola.cli import main
from moviola.mcp import library_server
from moviola.search import Asked, Filter, Library, SearchOptions
from moviola.server import create_app

def command(*words):
    sys.argv, out = ["moviola", *words], io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main()
    return out.getvalue()

library, said = {library!r}, {{}}
said["help"] = command("search", "--help")
printed = command("search", "a wall", "--wide", "film1", "--save", "toy", "--json", "-l", library)
said["command line"] = sorted({{json.loads(line)["video_id"] for line in printed.splitlines()}})
body = {{"query": "a wall", "filter": {{"wide": "film1"}}}}
with TestClient(create_app(library), base_url="http://localhost") as http:
    said["fields"] = http.get("/api/fields").json()["fields"]
    said["api"] = sorted({{one["video_id"] for one in http.post("/api/search", json=body).json()["moments"]}})
    schemas = http.get("/api/openapi.json").json()["components"]["schemas"]
    said["schema"] = schemas["Filters"]["properties"]["wide"]
with Library(library, read_only=True) as opened:
    said["saved"] = opened.saved.asked("toy") == Asked("a wall", SearchOptions(filter=Filter(wide="film1")))

    async def agent():
        async with Client(library_server(opened)) as client:
            (tool, *_) = (await client.list_tools()).tools
            return tool.input_schema, (await client.call_tool("search_moments", body)).structured_content

    schema, found = anyio.run(agent)
said["agents"] = sorted({{one["video_id"] for one in found["moments"]}})
said["agents' schema"] = schema["$defs"]["Filters"]["properties"]["wide"]
print(json.dumps(said))
"""


def test_a_filter_is_one_declaration(folder: Path, tmp_path: Path) -> None:
    """By it, there is an option, a parameter of HTTP and of agents, a field of the page; and it is saved."""
    source = str(Path(moviola.search.__file__).with_name("filters.py"))
    script = WITH_TOY.format(toy=TOY, source=source, library=str(folder))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert "--wide" in said["help"] and "Videos with this in their id" in said["help"]
    assert said["command line"] == said["api"] == said["agents"] == ["film1"]
    for schema in (said["schema"], said["agents' schema"]):
        assert schema["description"] == "Videos with this in their id: film1." and schema["examples"] == [
            "film1"
        ]
    assert said["saved"] is True
    page = f"""
      const fields = {json.dumps(said["fields"])};
      const {{ questionFields, currentSearch }} = await page("base/store.js");
      const {{ searchOf }} = await page("base/asked.js");
      const filters = await page("search/filters.js");
      questionFields.value = fields;
      await page("search/panel.js");
      const texts = (part) => typeof part === "string" ? [part] : (part?.children ?? []).flatMap(texts);
      const search = searchOf({{ query: "a wall", filter: {{ wide: "film1" }} }});
      const chips = filters.activeFilters(search).map(({{ text }}) => text);
      console.log(JSON.stringify([texts(filters.filterPanel), chips]));
    """
    panel, chips = run_script(page, tmp_path)
    assert "Anywhere in its name" in panel and chips == ["called film1"]


def test_every_field_says_what_is_shown_of_it() -> None:
    for field in FIELDS.values():
        assert field.help.endswith(".") and field.parts <= PARTS
        assert field.label or "page" not in field.parts, field.name
        assert field.example is not None or field.default is not None, field.name
    for field in FILTERS.values():
        value = field.value(field.example)
        assert field.short and field.value(field.form.written(value)) == value, field.name


def test_help_of_commands_needs_no_library() -> None:
    """Fields of a question are known without what answers it, and a search without pydantic and FastAPI."""
    script = """
import sys
from moviola.cli.asking import field_options
assert [one.name for one in field_options()][:2] == ["folder", "modified"]
heavy = {"numpy", "pydantic", "fastapi", "moviola.library", "moviola.search.library"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
import moviola.cli.search
from moviola.search import Asked, Library, last_answer
assert not {"pydantic", "fastapi"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


ROOMS = ("", ".encoders", ".encoders.readers", ".features", ".library", ".retrieval", ".search")


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_gives_on_first_use_is_what_types_say(room: str) -> None:
    """Type checkers, readers and imports have a list each: catches a name that one lacks, or another home."""
    module = import_module(f"moviola{room}")
    checked = next(
        one
        for one in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
        if isinstance(one, ast.If) and isinstance(one.test, ast.Name) and one.test.id == "TYPE_CHECKING"
    )
    homes = {
        name.asname or name.name: str(one.module)
        for one in checked.body
        if isinstance(one, ast.ImportFrom)
        for name in one.names
    }
    given = {name: getattr(module, name) for name in module.__all__}
    for name, home in homes.items():
        assert given[name] is getattr(import_module(home), name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("name", moviola.search.__all__)
def test_a_public_name_has_one_home(name: str) -> None:
    """The room gives it when it is first used, from the module that has it."""
    found_modules = iter_modules(moviola.search.__path__, "moviola.search.")
    modules = [import_module(module.name) for module in found_modules]
    homes = [module for module in modules if name in module.__all__]
    assert len(homes) == 1, homes
    found: Any = getattr(moviola.search, name)
    assert found is getattr(homes[0], name)
