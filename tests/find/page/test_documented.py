"""What the documentation says of the page holds for its files; no browser is needed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "src" / "moviola" / "server" / "page"
HOWTO = (ROOT / "docs" / "howto" / "page.md").read_text(encoding="utf-8")
NAMES = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓", " ": "Space", "Escape": "Esc"}


def test_every_key_is_documented() -> None:
    table = (PAGE / "keyboard.js").read_text(encoding="utf-8")
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


def test_the_page_is_as_light_as_is_said() -> None:
    """All that a first visit loads but pictures, as it is sent."""
    loaded = [
        path
        for path in PAGE.iterdir()
        if path.suffix in {".js", ".css", ".svg"} and path.stem not in {"judge", "sign-in"}
    ]
    weight = sum(path.stat().st_size for path in [*loaded, PAGE / "index.html"])
    said = re.search(r"(\d+) kB", HOWTO)
    assert said and weight <= int(said[1]) * 1000 <= 260_000
