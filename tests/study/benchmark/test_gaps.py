"""Segments merged over gaps, on a toy world."""

from __future__ import annotations

from comparison.bench import Bench
from gaps import RULES, merged
from moviola.retrieval import MeanPooling


def test_wider_gaps_make_fewer_and_longer_proposals(bench: Bench) -> None:
    rows = merged(bench, bench.job("spr-stage1-n20"), MeanPooling())
    assert [row[0] for row in rows] == list(RULES)
    counts, seconds = ([float(str(row[column])) for row in rows[:4]] for column in (1, 2))
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]
    assert seconds == sorted(seconds) and seconds[0] < seconds[-1]
    values = [float(str(value)) for row in rows for value in row[3:]]
    assert all(0 <= value <= 1 for value in values) and max(values) > 0
