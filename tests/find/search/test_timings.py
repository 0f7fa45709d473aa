"""How long each stage of a search took, as the search itself says."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from moviola.search import Library
from moviola.timing import STAGES, milliseconds, recorded, stage
from moviola.types import Query


def test_stages_of_a_text(library: Library) -> None:
    found = library.search("a red square")
    assert [*found.timings] == [name for name in STAGES if name in found.timings] + ["total"]
    assert {"text", "retrieval", "proposals", "refinement", "calibration", "cues", "names"} < {*found.timings}
    stages = [seconds for name, seconds in found.timings.items() if name != "total"]
    assert min(stages) >= 0
    assert sum(stages) <= found.timings["total"]


def test_stages_that_do_not_run_are_not_there(library: Library) -> None:
    found = library.search("a red square", by="subtitles")
    assert "cues" in found.timings
    assert not {"retrieval", "proposals", "refinement", "names"} & {*found.timings}


def test_queries_asked_at_once_share_their_timings(library: Library) -> None:
    first, second = library.search_many([Query("1", "a red square"), Query("2", "something green")])
    assert first.timings == second.timings


def test_opening_is_part_of_what_surrounds_it(library: Library) -> None:
    with recorded() as outer, Library(library.folder, read_only=True) as opened:
        found = opened.search("a red square")
    assert outer["opening"] > found.timings["opening"]
    assert outer["refinement"] == found.timings["refinement"]
    assert outer["total"] >= found.timings["total"]


def test_a_stage_inside_of_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("moviola.timing.perf_counter", lambda: float(next(clock)))
    with recorded() as seconds, stage("text"), stage("retrieval"):
        pass
    # A reading of the clock a second: start twice, text, retrieval, their ends, and the end.
    assert seconds == {"text": 2.0, "retrieval": 1.0, "total": 5.0}


def test_a_stage_that_fails_ends() -> None:
    with recorded() as seconds:
        with pytest.raises(KeyError), stage("text"):
            raise KeyError
        with stage("names"):
            pass
    assert {*seconds} == {"text", "names", "total"}


def test_nobody_needs_to_record() -> None:
    with stage("text"):
        pass
    assert milliseconds({"text": 0.0123456}) == {"text": 12.346}


def test_a_search_uses_one_blas_thread_whatever_the_process_has_set(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who loaded NumPy before moviola has threads that spin after each product, beside all other work."""
    monkeypatch.setattr("moviola.threads._inside", [])  # a server of other tests may be inside
    inside: list[int] = []
    with threadpool_limits(2, "blas"):
        library.search_many(
            [Query("1", "a red square")], progress=lambda answered: inside.append(numpys_threads())
        )
        assert (inside, numpys_threads()) == ([1], 2)


def numpys_threads() -> int:
    (pool,) = (pool for pool in threadpool_info() if "numpy" in pool["filepath"])
    return int(pool["num_threads"])
