"""What the documentation says of the page holds for its files; no browser is needed."""

from __future__ import annotations

import re
from os.path import normpath
from pathlib import Path

import pytest

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
        assert path.suffix != ".html" or not re.search(
            r"<script(?![^>]* src=)|<style| style=| on\w+=", text
        ), path


def test_pictures_of_the_page_are_small_and_there() -> None:
    shown = re.findall(r"\(\.\./images/(page-[\w-]+\.jpg)\)", HOWTO)
    assert len(shown) >= 6
    for name in shown:
        assert 10_000 < (ROOT / "docs" / "images" / name).stat().st_size < 300_000


def imports_of(script: Path) -> set[Path]:
    """The modules that come with a script, those that they import among them."""
    found, new = set[Path](), {script}
    while new:
        found |= new
        new = {
            (one.parent / name).resolve()
            for one in new
            for name in re.findall(r'(?<= from ")[^"]+', one.read_text(encoding="utf-8"))
        } - found
    return found


def test_the_page_is_as_light_as_is_said() -> None:
    """All that a first visit loads but pictures, as it is sent; and what comes when it is opened."""
    first = imports_of(PAGE / "main.js")
    assert len(first) > 20
    others = ["index.html", "style.css", "icon.svg"]
    weight = sum(path.stat().st_size for path in [*first, *(PAGE / name for name in others)])
    said = re.search(r"less than (\d+) kB.*?, (\d+), (\d+) and (\d+) kB", HOWTO, re.DOTALL)
    assert said and weight <= int(said[1]) * 1000 <= 260_000
    for name, number in zip(
        ("search/panel.js", "library/library.js", "collection/exporting.js"), said.groups()[1:], strict=True
    ):
        later = imports_of(PAGE / name) - first
        assert sum(path.stat().st_size for path in later) == pytest.approx(int(number) * 1000, abs=1000), name


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
