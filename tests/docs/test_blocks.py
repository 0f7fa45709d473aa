"""The code in README and docs/ runs: block after block of a page, in a folder of the page's own.

A block is ``python`` or ``sh``, and is run, or ``text``, which is output or a drawing. What cannot run here
says why in a comment before it: ``<!-- skip: next "needs a hub" -->``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import SkipTest

import pytest
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = {"python", "sh", "text"}
SKIP = re.compile(r'^<!-- skip: next(?: "(?P<reason>[^"]+)")? -->$', re.MULTILINE)

TURNS = {
    "docs/howto/train.md": 0,
    "docs/howto/judge-and-train.md": 1, "docs/howto/encoder.md": 1, "docs/tutorial.md": 1,
    "docs/studies.md": 1, "docs/howto/no-answer.md": 3,
    "docs/howto/library.md": 2, "docs/howto/published.md": 2, "docs/howto/data-set.md": 2,
    "docs/howto/other-systems.md": 3, "docs/howto/words.md": 3, "docs/howto/editors.md": 3,
    "docs/papers/003-relevant-pairs.md": 3,
}  # fmt: skip
"""Pages whose blocks take more than ten seconds, each with its turn (:mod:`turns`)."""


def shell(example: Example) -> None:
    """Run a block as a reader types it; the first command that fails ends it."""
    scripts = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", str(example.parsed)],
        env=os.environ | {"PATH": os.pathsep.join([scripts, os.environ["PATH"]]), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{example.parsed}\n{done.stdout}{done.stderr}"


def document(page: Path) -> Document:
    """A page with its blocks, in their order."""
    parsers = (SkipParser(), PythonCodeBlockParser(), CodeBlockParser("sh", shell))
    return Document.parse(str(page), *parsers)


def kinds(page: Path) -> list[str]:
    """The language of each block of a page."""
    lexer = FencedCodeBlockLexer(r"[^\n]*")
    return [str(region.lexemes["language"]) for region in lexer(Document.parse(str(page)))]


def name(page: Path) -> str:
    """A page as tests call it."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    assert set(kinds(page)) <= KINDS
    text = page.read_text(encoding="utf-8")
    assert all(found["reason"] for found in SKIP.finditer(text)), "a block is skipped without a reason"
    assert len(SKIP.findall(text)) == text.count("skip:"), 'write <!-- skip: next "reason" -->'


def pages_with_code() -> list[object]:
    """Pages with blocks that are run, marked by how long these take."""
    run = [page for page in PAGES if {"python", "sh"} & set(kinds(page))]
    turns = {page: TURNS.get(name(page)) for page in run}
    assert len(TURNS) == len([turn for turn in turns.values() if turn is not None])
    return [
        pytest.param(page, marks=pytest.mark.slow if turn is None else pytest.mark.long(turn), id=name(page))
        for page, turn in turns.items()
    ]


@pytest.mark.parametrize("page", pages_with_code())
def test_the_blocks_of_a_page_run(page: Path, workplace: Path) -> None:
    skipped = 0
    for example in document(page).examples():
        try:
            example.evaluate()
        except SkipTest:
            skipped += 1
    assert skipped == len(SKIP.findall(page.read_text(encoding="utf-8")))
