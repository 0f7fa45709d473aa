"""What the documentation says of the page holds for its files; no browser is needed."""

from __future__ import annotations

import gzip
import re
from os.path import normpath
from pathlib import Path

from starlette.datastructures import Headers

from moviola.server.page_files import PageFiles

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "src" / "moviola" / "server" / "page"
HOWTO = (ROOT / "docs" / "howto" / "page.md").read_text(encoding="utf-8")
NAMES = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓", " ": "Space", "Escape": "Esc"}


def test_every_key_is_documented() -> None:
    table = (PAGE / "base" / "keyboard.js").read_text(encoding="utf-8")
    keys = {
        key.rpartition("+")[2] or key
        for keys in re.findall(r'\[\[("[^\]]+")\], "', table)
        for key in re.findall(r'"([^"]+)"', keys)
    }
    assert len(keys) > 20
    assert not {key for key in keys if f"`{NAMES.get(key, key)}`" not in HOWTO}


def test_data_never_becomes_markup_and_nothing_is_asked_of_another_host() -> None:
    files = [path for path in PAGE.rglob("*") if path.suffix in {".js", ".css", ".html"}]
    assert len(files) > 20
    for path in files:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path
        assert not re.search(r"https?://", text), path
        # Versions of videos are opaque: what comes later has a larger `number`.
        assert not re.search(
            r"(parseInt|parseFloat|Number)\(\w*\.?version|version\.(split|slice|match)", text
        ), path
        assert path.suffix != ".html" or not re.search(
            r"<script(?![^>]* src=)|<style| style=| on\w+=", text
        ), path


def test_pictures_of_the_page_are_small_and_there() -> None:
    shown = re.findall(r"\(\.\./images/(page-[\w-]+\.jpg)\)", HOWTO)
    assert len(shown) >= 6
    for name in shown:
        assert 10_000 < (ROOT / "docs" / "images" / name).stat().st_size < 300_000


def test_the_page_is_as_light_as_is_said() -> None:
    """All that a first visit loads but pictures, as it is sent, in the longest language."""
    files = PageFiles([PAGE])
    taken = Headers({"accept-encoding": "gzip"})
    page = files.page("index", taken)
    at = re.search("static/(v-[0-9a-f]+)/", gzip.decompress(bytes(page.body)).decode())
    assert at
    names = ("style.css", "icon.svg", "main.js")
    sent = [page, *(files.file(f"/static/{at[1]}/{name}", taken) for name in names)]
    languages = [
        files.file(f"/static/{at[1]}/languages/{path.name}", taken) for path in PAGE.glob("languages/*.json")
    ]
    weight = sum(len(one.body) for one in sent if one) + max(len(one.body) for one in languages if one)
    said = re.search(r"a first visit takes less than (\d+) kB", HOWTO)
    assert said and 60_000 < weight < int(said[1]) * 1000 <= 120_000


# Folders of the page, each with those that it may import; the scripts beside them may import all.
WINGS: dict[str, set[str]] = {
    "base": set(),
    "collection": {"base"},
    "search": {"base", "collection"},
    "player": {"base", "collection", "search"},
    "library": {"base", "collection", "search"},
    "judge": {"base"},
}


def test_wings_of_the_page_import_one_way() -> None:
    """Types in comments count, too; the page for raters is an addition, and has base from the server's."""
    pages = sorted(path for path in (ROOT / "src" / "moviola").rglob("page") if path.is_dir())
    scripts = {script.relative_to(page): script for page in pages for script in page.rglob("*.js")}
    assert {name.parent.name for name in scripts} == {"", *WINGS}
    for name, script in scripts.items():
        text = script.read_text(encoding="utf-8")
        for other in re.findall(r'(?:from |import\()"([^"]+)"', text):
            target = Path(normpath(name.parent / other))
            assert target in scripts, f"{name}: {other} is not there"
            own = name.parent.name
            allowed = {own, *WINGS[own]} if own else WINGS.keys()
            assert target.parent.name in allowed, f"{name}: imports {other}"
