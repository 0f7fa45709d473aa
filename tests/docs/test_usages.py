"""Code in docstrings runs: the usage that a public module opens with, and examples of its names."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src"
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
OPENING = [
    "moviola", "moviola.types", "moviola.errors", "moviola.temporal", "moviola.plugins", "moviola.files.rows",
    "moviola.files.writing", "moviola.media", "moviola.encoders", "moviola.features", "moviola.index",
    "moviola.compiled", "moviola.retrieval", "moviola.retrieval.feedback", "moviola.export",
    "moviola.export.timebase", "moviola.search.asked", "moviola.server", "moviola.study.measures",
    "moviola.study.measures.no_answer", "moviola.study.datasets.gridhouse", "moviola.study.datasets.readers",
    "moviola.study.models.pretrained", "moviola.study.training.settings", "moviola.study.public",
]  # fmt: skip
"""Modules that open with a usage: the first thing in one is how it is called."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder each, and with the output that they show."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = doctest.testmod(import_module(name), optionflags=doctest.REPORT_NDIFF)
    assert not found.failed


@pytest.mark.parametrize("name", OPENING)
def test_public_modules_open_with_a_usage(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(import_module(name).__doc__ or "")
    assert any(f"from {name} import" in one.source or f"from {parent(name)} import" in one.source
               for one in examples), "no example imports from it"  # fmt: skip
    assert any(one.want for one in examples), "no example shows what comes out"


def parent(name: str) -> str:
    """The package that a module lies in; a module's names may be its package's."""
    return name.rpartition(".")[0] or name
