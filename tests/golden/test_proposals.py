"""Proposals equal to the reference for every merging rule (golden ``proposals``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moviola.propose import propose
from moviola.types import Hit, Segment, Span

RULES: dict[str, dict[str, str]] = {
    "original": {},
    "const_gap": {"gap": "gap"},
    "adp_gap": {"alpha": "adaptive_gap"},
}


def hits_of(videos: dict[str, list[list[int]]], durations: dict[str, float], seconds: float) -> list[Hit]:
    ranked = sorted((rank, video, position) for video, rows in videos.items() for position, rank in rows)
    return [
        Hit(
            Segment(
                video, position, Span(position * seconds, min((position + 1) * seconds, durations[video]))
            ),
            -float(rank),
        )
        for rank, video, position in ranked
    ]


def test_proposals_equal_the_reference(golden: Path) -> None:
    case: dict[str, Any] = json.loads((golden / "proposals.json").read_text())
    compared = 0
    for name, rule in case["rules"].items():
        options = {RULES[rule["rule_type"]][key]: value for key, value in rule.items() if key != "rule_type"}
        for query, videos in case["retrieved"].items():
            hits = hits_of(videos, case["durations"], case["segment_seconds"])
            found = propose(hits, **options)
            expected = case["expected"][name][query]
            # Scores carry the reference's own rank, which need not count from 0 without holes.
            ranks = [-proposal.score for proposal in found]
            assert [(p.video_id, r) for p, r in zip(found, ranks, strict=True)] == [
                (video, rank) for video, _, _, rank in expected
            ]
            for proposal, (_, start, end, _) in zip(found, expected, strict=True):
                assert proposal.span.start == pytest.approx(start, abs=1e-6)
                assert proposal.span.end == pytest.approx(end, abs=1e-6)
            compared += len(expected)
    assert compared > 0
