"""Proposals equal to the reference for every merging rule that we have (golden ``proposals``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from moviola.features import VideoFeatures
from moviola.index import BACKENDS
from moviola.retrieval import Hits, MeanPooling, Retrieval, propose

RULES: dict[str, dict[str, str]] = {
    "original": {},
    "const_gap": {"gap": "gap"},
    "adp_gap": {"alpha": "adaptive_gap"},
}
"""Their names and settings."""


def features_of(durations: dict[str, float], seconds: float) -> VideoFeatures:
    """Videos of which only times are asked, with one clip per segment."""
    lengths = np.array(list(durations.values()))
    counts = np.ceil(lengths / seconds).astype(np.int64)
    return VideoFeatures(tuple(durations), lengths, seconds, counts, cast("Any", None))


def hits_of(videos: dict[str, list[list[int]]], features: VideoFeatures) -> Hits:
    """The hits of one query; scores are the reference's own ranks, which need not be without holes."""
    ranked = sorted((rank, video, position) for video, rows in videos.items() for position, rank in rows)
    rank, video, position = zip(*ranked, strict=True)
    rows = [features.row_of[name] for name in video]
    return Hits(np.array([rows]), np.array([position]), -np.array([rank], dtype=np.float32), len(rank))


def test_proposals_equal_the_reference(golden: Path) -> None:
    case: dict[str, Any] = json.loads((golden / "proposals.json").read_text())
    features = features_of(case["durations"], case["segment_seconds"])
    compared = 0
    for name, rule in case["rules"].items():
        options = {RULES[rule["rule_type"]][key]: value for key, value in rule.items() if key != "rule_type"}
        for query, videos in case["retrieved"].items():
            found = propose(hits := hits_of(videos, features), features, 1, **options)
            if not options:  # the paper's rule, whatever the number of segments
                paper = Retrieval(features, BACKENDS["flat"](1), MeanPooling(), None, 1, merge="paper")
                assert np.array_equal(paper.merged(hits).start, found.start)
                assert np.array_equal(paper.merged(hits).end, found.end)
            expected = case["expected"][name][query]
            shown = [features.video_ids[video] for video in found.video]
            assert list(zip(shown, (-found.score).tolist(), strict=True)) == [
                (video, rank) for video, _, _, rank in expected
            ]
            assert found.start == pytest.approx([start for _, start, _, _ in expected], abs=1e-6)
            assert found.end == pytest.approx([end for _, _, end, _ in expected], abs=1e-6)
            compared += len(expected)
    assert compared > 0
