"""Queries to try: what a library shows, each for another video, found again when it has changed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from moviola.search import Library
from moviola.search.found import SearchResult
from moviola.search.suggestions import ExampleReader
from moviola.types import Query


@pytest.mark.slow
def test_shown_things_are_offered_and_found(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made / "photographs", tmp_path / "photographs"))
    with Library(folder) as library:
        offered = library.examples(4)
        assert len(offered) == 4
        answers = [library.search(text, by="visual") for text in offered]
        assert all(answer[0].strong for answer in answers)
        every = {library.search(text, by="visual")[0].video_id for text in library.examples(50)}
        assert len({answer[0].video_id for answer in answers}) == min(4, len(every)) > 1
        assert library.examples(2) == offered[:2]
        library.indexer.remove(["home/a cat"])
        assert "a cat" in offered and "a cat" not in library.examples(50)


def test_only_one_thread_looks_and_the_others_do_not_wait(tmp_path: Path) -> None:
    meanwhile = []

    def search(queries: Sequence[Query]) -> list[SearchResult]:
        meanwhile.append(reader.read(5))  # as another thread would meanwhile
        return [SearchResult() for _ in queries]

    with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
        reader = ExampleReader(library.store, search)
        assert reader.read(5) == () and reader.read(5) == ()
    assert meanwhile == [()]


def test_a_library_without_pictures_has_none(tmp_path: Path) -> None:
    with Library(tmp_path / "library", encoder="none", sentence_encoder="none") as library:
        library.index(tmp_path)
        assert library.examples() == ()
