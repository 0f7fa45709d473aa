"""Temporal suppression against the TVR release, within a video and over a corpus."""

from __future__ import annotations

from typing import Any

import numpy as np

from moviola.study.measures import Run, suppress, temporal_nms

NAME = "temporal_nms"


def test_single_video(fixture: dict[str, Any]) -> None:
    for case in fixture["single"]:
        start, end, score = np.array(case["predictions"], np.float64).reshape(-1, 3).T
        keep = case.get("max_after_nms", 100)
        for threshold, expected in case["kept"].items():
            rows = suppress(start, end, score, float(threshold), keep)
            assert [case["predictions"][i] for i in rows] == expected, (case["description"], threshold)


def test_corpus(fixture: dict[str, Any]) -> None:
    for number, case in enumerate(fixture["corpus"]):
        rows = [
            {"video_id": str(video), "start": start, "end": end, "score": score}
            for video, start, end, score in case["predictions"]
        ]
        run = Run.from_dict({"q": rows}, zero_length=True, ranked=True)
        for threshold, expected in case["kept"].items():
            found = temporal_nms(
                run, float(threshold), read=case["max_before_nms"], keep=case["max_after_nms"]
            ).rows()["q"]
            assert [[int(m["video_id"]), m["start"], m["end"], m["score"]] for m in found] == expected, number
