"""Films and a library that a model looks at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviola.search import Library
from two_films import films
from two_films import library as original

__all__ = ["films", "lib", "original"]


@pytest.fixture
def lib(original: Path, tmp_path: Path) -> Iterator[Library]:
    """A copy of the library of two films, opened for reading."""
    with Library(shutil.copytree(original, tmp_path / "lib"), read_only=True) as opened:
        yield opened
