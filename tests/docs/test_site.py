"""The site builds without a warning, and asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from made_once import made_once

ROOT = Path(__file__).resolve().parents[2]
# Addresses that a browser fetches by itself, unlike that of a link, which a reader may follow.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
)
FROM_STYLES = re.compile(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` builds it."""

    def build(out: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
            cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    return made_once(tmp_path_factory, "site", build)


@pytest.mark.long
def test_no_page_asks_another_host(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    styles = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.css")}
    assert pages and styles
    fetched = [url for text in pages.values() for url in FETCHED.findall(text)]
    fetched += [url for text in (pages | styles).values() for url in FROM_STYLES.findall(text)]
    assert not fetched


@pytest.mark.long
def test_the_reference_is_made_from_the_code(site: Path) -> None:
    commands = (site / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "moviola dataset pseudo" in commands and "--per-video" in commands
    retrieval = (site / "reference" / "api" / "retrieval" / "index.html").read_text(encoding="utf-8")
    assert 'id="moviola.retrieval.proposals.propose"' in retrieval
    assert not re.search(r":(?:class|func|meth|mod|data|attr):`", retrieval)
