"""Queries beside or before a query change no bit of its answer: in searches of many, files of
queries, over HTTP and for agents.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from mcp import Client

from awake import Awake
from moviola.cli import main
from moviola.mcp import library_server
from moviola.search import Library, SearchResult, Text
from moviola.server import Options, create_app

_WORDS = "lighthouse keeper umbrella harbour winter red green wall door street market dog snow".split()  # noqa: SIM905
_generator = np.random.default_rng(0)
TEXTS = (
    "lighthouse", "the umbrella", "a red wall", "winter", "?",
    *(" ".join(_generator.choice(_WORDS, count)) for count in (2, 3, 4, 5, 6, 8, 11, 14, 18, 25)),
)  # fmt: skip
"""Texts of different lengths; more than are encoded on one thread, with their phrases."""

TOP = 20
"""Moments of an answer; agents may ask for no more."""

Answers = list[list[tuple[Any, ...]]]
"""Video, start, end, score and reasons of the moments of each text."""


def moments(found: SearchResult) -> list[tuple[Any, ...]]:
    return [(m.video_id, m.start, m.end, m.score, m.why) for m in found]


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The answer to each text, the only one that its library was ever asked."""
    return _each_alone(folder, resident=False)


@pytest.fixture(scope="module")
def alone_on_a_server(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The same by the compiled towers of a process that stays."""
    return _each_alone(folder, resident=True)


def _each_alone(folder: Path, resident: bool) -> dict[str, list[tuple[Any, ...]]]:
    answers = {}
    for text in TEXTS:
        with Library(folder, read_only=True, resident=resident) as library:
            answers[text] = moments(library.search(text, top_k=TOP))
    assert any(score > 0.3 for found in answers.values() for *_, score, _ in found)
    return answers


def in_one_batch(folder: Path, texts: Sequence[str]) -> Answers:
    with Library(folder, read_only=True) as library:
        return [moments(found) for found in library.search_many([Text(t) for t in texts], top_k=TOP)]


def one_after_the_other(folder: Path, texts: Sequence[str]) -> Answers:
    with Library(folder, read_only=True) as library:
        return [moments(library.search(text, top_k=TOP)) for text in texts]


@pytest.mark.parametrize("ask", [in_one_batch, one_after_the_other])
@pytest.mark.parametrize(
    "order", [TEXTS, TEXTS[::-1], TEXTS[4:7], TEXTS * 3], ids=["", "back", "few", "many"]
)
def test_searches(
    folder: Path, alone: dict[str, Any], ask: Callable[..., Answers], order: Sequence[str]
) -> None:
    assert ask(folder, order) == [alone[text] for text in order]


def test_parts_of_queries(folder: Path) -> None:
    """A text in a sum, a sequence or an exclusion is encoded with the other texts."""
    wall, door, snow = Text("a red wall"), Text("the lighthouse keeper"), Text("umbrella in winter")
    queries = [wall + door, wall.then(door), wall.without(snow), door.without(wall), snow]
    for order in (queries, queries[::-1]):
        with Library(folder, read_only=True) as library:
            together = [moments(found) for found in library.search_many(order, top_k=TOP)]
        for query, found in zip(order, together, strict=True):
            with Library(folder, read_only=True) as library:
                assert moments(library.search(query, top_k=TOP)) == found


def test_files_of_queries(
    folder: Path, alone: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`moviola answer`, of all queries in two orders and of single ones."""
    for order in (TEXTS * 3, TEXTS[::-1], TEXTS[:1], TEXTS[7:8]):
        (tmp_path / "queries").write_text("".join(f"{text}\n" for text in order))
        words = ["answer", tmp_path / "queries", "-o", tmp_path / "run.json", "-l", folder, "-k", TOP]
        monkeypatch.setattr(sys, "argv", ["moviola", *map(str, words)])
        with pytest.raises(SystemExit, match=r"^0$"):
            main()
        run = json.loads((tmp_path / "run.json").read_text())
        for number, text in enumerate(order, 1):
            found = [(m["video_id"], m["start"], m["end"], m["score"]) for m in run[str(number)]]
            assert found == [tuple(row[:4]) for row in alone[text]]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[Any, ...]]]:
    """The library's answer to each text, before scores are rounded for the caller."""
    answers: dict[str, list[tuple[Any, ...]]] = {}
    own = Library.search

    def search(self: Library, query: Any, *given: Any, **changes: Any) -> SearchResult:
        found = own(self, query, *given, **changes)
        assert answers.setdefault(str(query), moments(found)) == moments(found)
        return found

    monkeypatch.setattr(Library, "search", search)
    return answers


def test_over_http(folder: Path, alone_on_a_server: dict[str, Any], searched: dict[str, Any]) -> None:
    """One after the other and at once, of one server."""
    with Awake(create_app(folder, Options(threads=2))) as client:

        def ask(text: str) -> list[tuple[Any, ...]]:
            answer = client.post("/api/search", json={"query": text, "top_k": TOP}).raise_for_status()
            return [(m["video_id"], m["start"], m["end"], m["score"]) for m in answer.json()["moments"]]

        expected = [[tuple(row[:4]) for row in alone_on_a_server[text]] for text in TEXTS]
        assert [ask(text) for text in TEXTS] == expected
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(ask, TEXTS)) == expected
    assert {
        text: searched[text] for text in TEXTS
    } == alone_on_a_server  # a server asks something itself, too


def test_of_agents(folder: Path, alone: dict[str, Any], searched: dict[str, Any]) -> None:
    """Calls at once, of one server."""

    async def ask(library: Library) -> None:
        async with Client(library_server(library)) as client, anyio.create_task_group() as tasks:
            for text in TEXTS:
                tasks.start_soon(client.call_tool, "search_moments", {"query": text, "top_k": TOP})

    with Library(folder, read_only=True) as library:
        anyio.run(ask, library)
    assert searched == alone
