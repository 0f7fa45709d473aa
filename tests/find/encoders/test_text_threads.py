"""Texts are encoded on one BLAS thread, and everything else on as many as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from moviola import threads
from moviola.encoders import load_encoder, load_sentence_encoder, towers
from moviola.library import View, Viewer
from moviola.search.searcher import Searcher
from moviola.threads import one_blas_thread


def blas_threads() -> set[int]:
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and library["threading_layer"] != "openmp"
    }


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """As on a machine with two cores, whatever this one and its environment have.

    Tests before may have loaded a BLAS more than were there when the first text was encoded (spaCy's).
    """
    threads._blas_with.cache_clear()
    with threadpool_limits(limits=2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this NumPy's BLAS has no threads that can be set")
        yield


def test_one_thread_inside_and_as_many_as_before_outside() -> None:
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_error_inside_gives_the_threads_back() -> None:
    with pytest.raises(ValueError, match="stop"), one_blas_thread():
        raise ValueError("stop")
    assert blas_threads() == {2}


def test_overlapping_texts_give_the_threads_back() -> None:
    """Two threads of a program that leave in the order in which they came."""
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_any_thread_limits_and_restores() -> None:
    """Catches requests of 700 ms: of a server's threads only the first one limited anything, since
    threadpoolctl lets no other, and after it had ended once in another order, nothing was restored.
    """
    first, second = one_blas_thread(), one_blas_thread()
    seen: list[set[int]] = []

    def in_a_thread(act: Callable[[], object]) -> set[int]:
        thread = Thread(target=lambda: (act(), seen.append(blas_threads())))
        thread.start()
        thread.join()
        return seen.pop()

    with one_blas_thread():  # this thread is the first
        pass
    assert in_a_thread(first.__enter__) == {1}
    assert in_a_thread(second.__enter__) == {1}
    assert in_a_thread(lambda: first.__exit__(None, None, None)) == {1}
    assert in_a_thread(lambda: second.__exit__(None, None, None)) == {2}


@pytest.mark.parametrize("kind", ["clip", "siglip", "bert"])
def test_the_towers_run_on_one_thread(
    kind: str,
    make_clip: Callable[..., Path],
    make_siglip: Callable[..., Path],
    make_bert: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = {"clip": make_clip, "siglip": make_siglip, "bert": make_bert}[kind]()
    seen: list[set[int]] = []
    before = blas_threads()  # one that is loaded for these checkpoints has what the environment says

    def watched(activation: Callable[..., NDArray[np.float32]]) -> Callable[..., NDArray[np.float32]]:
        def call(x: NDArray[np.float32]) -> NDArray[np.float32]:
            seen.append(blas_threads())
            return activation(x)

        return call

    for name, activation in towers.ACTIVATIONS.items():
        monkeypatch.setitem(towers.ACTIVATIONS, name, watched(activation))
    encoder = load_sentence_encoder(str(folder)) if kind == "bert" else load_encoder(str(folder))
    encoder.encode_text(["a key"])
    assert seen
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == before


def test_every_answer_takes_one(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a question to a library whose small products wait for other threads: a curve did."""
    counts: dict[str, set[int]] = {}

    class Asked(Exception):
        pass

    def opened(viewer: Viewer) -> View:
        counts["now"] = blas_threads()
        raise Asked

    monkeypatch.setattr(Viewer, "view", opened)
    searcher = Searcher(cast(Any, SimpleNamespace(parts=(), settings=SimpleNamespace(built_with=()))))
    monkeypatch.setattr(searcher, "_understood", lambda query: (query, []))
    asked: dict[str, Callable[[], object]] = {
        "search_many": lambda: searcher.search_many([cast(Any, None)], cast(Any, None)),
        "curve": lambda: searcher.curve(cast(Any, None), "film"),
        "teach": lambda: searcher.teach("waves", cast(Any, None)),
    }
    for name, ask in asked.items():
        with pytest.raises(Asked):
            ask()
        assert counts.pop("now") == {1}, name
