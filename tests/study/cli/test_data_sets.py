"""Charades-STA, DiDeMo and ActivityNet: from annotations and feature files to recall as TVR counts it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.features import Computed, convert
from moviola.retrieval.saved.description import read_description
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.readers import read_annotations
from moviola.study.measures import read_run, read_tvr_truth, tvr_recall
from moviola.study.training.data_sets import settings_of_data_set
from moviola.types import Span

VIDEOS, DIM = 8, 6


@dataclass(frozen=True)
class DataSetFiles:
    """A few videos of a data set: its annotation file, how it is read, the length of its clips."""

    path: Path
    kind: str
    clip_seconds: float
    durations: Path | None = None

    def read(self) -> Annotations:
        return read_annotations(self.path, self.kind, self.durations)


def charades(annotations: Path, folder: Path) -> DataSetFiles:
    source = annotations / "charades-sta"
    with (source / "durations_test.csv").open() as file:
        known = {line.split(",")[0] for line in file}
    lines = (source / "charades_sta_test.txt").read_text().splitlines()
    videos = [name for name in dict.fromkeys(line.split()[0] for line in lines) if name in known][:VIDEOS]
    path = folder / "charades_sta_test.txt"
    path.write_text("\n".join(line for line in lines if line.split()[0] in videos))
    durations = shutil.copy(source / "durations_test.csv", folder)
    return DataSetFiles(path, "charades", 3.0, Path(durations))


def activitynet(annotations: Path, folder: Path) -> DataSetFiles:
    whole = json.loads((annotations / "activitynet-captions" / "val_2.json").read_text())
    path = folder / "val_2.json"
    path.write_text(json.dumps(dict(list(whole.items())[:VIDEOS])))
    return DataSetFiles(path, "activitynet", 4.0)


def didemo(annotations: Path, folder: Path) -> DataSetFiles:
    """In its release's form, which is not among the reference material: pieces of 5 s, four annotators."""
    entries = [
        {"annotation_id": number, "video": f"v{number % VIDEOS}.mov", "description": f"thing {number} moves",
         "times": [[number % 5, number % 5 + 1], [number % 5, number % 5 + 1], [0, 0], [5, 5]]}
        for number in range(20)
    ]  # fmt: skip
    path = folder / "val_data.json"
    path.write_text(json.dumps(entries))
    return DataSetFiles(path, "didemo", 2.5)


def write_features(found: Annotations, clip_seconds: float, folder: Path) -> None:
    """Clips of noise in which the vector of a moment's caption shows."""
    draw = np.random.default_rng(0)
    words = {caption: draw.normal(size=(4, DIM)).astype(np.float32) for caption in found.captions}
    videos = [found.videos[video] for video in np.unique(found.video)]
    durations = dict(zip(found.videos, found.durations.tolist(), strict=True))

    def visual(name: str) -> NDArray[np.float32]:
        count = int(np.ceil(durations[name] / clip_seconds))
        rows = draw.normal(size=(count, DIM)).astype(np.float32)
        for place in np.flatnonzero(found.video == found.videos.index(name)):
            first, last = (int(t[place] // clip_seconds) for t in (found.start, found.end))
            rows[first : last + 1] += words[found.captions[place]][-1]
        return rows

    convert(Computed(tuple(videos), visual), folder / "visual")
    convert(Computed(tuple(words), words.__getitem__), folder / "queries")
    about = {
        "clip_seconds": clip_seconds, "segment_clips": 4, "encoder": "toy", "encoder_revision": "1",
        "durations": {name: durations[name] for name in videos},
    }  # fmt: skip
    (folder / "features.json").write_text(json.dumps(about))


def recall(run: Path, found: Annotations, top: int, overlap: float | None) -> float:
    """Percent of queries with a right answer among the first ones; without ``overlap`` a right video."""
    rows, hits = read_run(run).rows(), []
    for place, name in enumerate(found.moment_ids):
        home = found.videos[found.video[place]]
        truth = Span(float(found.start[place]), float(found.end[place]))
        hits.append(
            any(
                m["video_id"] == home
                and (overlap is None or Span(m["start"], m["end"]).iou(truth) >= overlap)
                for m in rows.get(name, [])[:top]
            )
        )
    return round(100 * float(np.mean(hits)), 2)


@pytest.mark.parametrize("make", [charades, didemo, activitynet], ids=lambda make: make.__name__)
def test_from_annotations_to_recall(
    make: Callable[[Path, Path], DataSetFiles], request: pytest.FixtureRequest, tmp_path: Path,
    moviola: Callable[..., Any],
) -> None:  # fmt: skip
    annotations = Path() if make is didemo else request.getfixturevalue("annotations")
    files = make(annotations, tmp_path)
    found = files.read()
    truth, pairs, features = tmp_path / "truth.jsonl", tmp_path / "pairs.json", tmp_path / "features"
    write_features(found, files.clip_seconds, features)

    def run(*words: object) -> Any:
        outcome = moviola(*words, "--json")
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    assert run("dataset", "convert", files.path, "--out", truth)["moments"] == len(found)
    run("dataset", "convert", files.path, "--pairs", "--out", pairs)
    run(
        "train", "xml", "--features", features, "--train", pairs, "--val", pairs, "--out", tmp_path / "xml",
        "--data-set", files.kind, "--set", "loop.steps=3", "--set", "loop.batch_size=16",
        "--set", "model.hidden_size=8", "--set", "model.heads=2",
    )  # fmt: skip
    config = read_description(tmp_path / "xml").config
    expected = settings_of_data_set(files.kind, "xml", files.clip_seconds)["model"]
    assert {name: config[name] for name in expected} == expected

    for task in ("vcmr", "svmr", "vr"):
        out = tmp_path / f"{task}.jsonl"
        answered = run("answer", pairs, "--model", tmp_path / "xml", "--features", features,
                       "--task", task, "--out", out)  # fmt: skip
        assert answered["queries"] == len(found)
        figures = run("evaluate", out, truth, "--tvr", task)[task.upper()]
        overlaps = [None] if task == "vr" else [0.5, 0.7]
        for overlap in overlaps:
            for top in (1, 5, 10, 100):
                name = f"r{top}" if overlap is None else f"{overlap}-r{top}"
                assert figures[name] == pytest.approx(recall(out, found, top, overlap), abs=0.011)
    videos = read_run(tmp_path / "vr.jsonl").rows()
    assert all(len({m["video_id"] for m in rows}) == VIDEOS for rows in videos.values())
    assert run("evaluate", tmp_path / "vr.jsonl", truth, "--tvr", "vr")["VR"]["r100"] == 100


def test_the_evaluator_takes_submissions_as_they_are(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    truth = tmp_path / "truth.jsonl"
    truth.write_text('{"desc_id": 1, "vid_name": "a", "ts": [0, 4]}\n')
    submission = {"video2idx": {"a": 0}, "SVMR": [{"desc_id": 1, "predictions": [[0, 0, 4, 1.0]]}]}
    (tmp_path / "run.json").write_text(json.dumps(submission))
    found = moviola("evaluate", tmp_path / "run.json", truth, "--tvr", "VCMR", "--json")
    assert json.loads(found.out) == tvr_recall(submission, read_tvr_truth(truth))
    assert found.err == ""
    submission["SVMR"][0]["desc_id"] = 2
    (tmp_path / "run.json").write_text(json.dumps(submission))
    other = moviola("evaluate", tmp_path / "run.json", truth, "--tvr", "SVMR")
    assert "1 query judged, but missing from the run: 1" in other.err
    assert "1 query in the run, but not judged (they do not count): 2" in other.err
    given = moviola("evaluate", tmp_path / "run.json", truth, "--tvr", "VR", "--run-format", "trec")
    assert given.code == 2 and "--run-format: not with --tvr" in given.err
    wrong = moviola("evaluate", tmp_path / "run.json", truth, "--tvr", "vqa")
    assert wrong.code == 1
    assert "choose VCMR, SVMR, VR" in wrong.err


def test_limits_of_moments_are_those_of_the_data_set() -> None:
    """Whole clips of the papers' own lengths, ends inside: n clips are end - start < n."""
    limits = {
        ("charades", "xml", 3.0): (0, 8),  # 1 to 8 clips (Maeoki et al., appendix A)
        ("didemo", "xml", 2.5): (1, 4),  # 2 to 4 clips
        ("didemo", "prem", 1.5): (2, 7),  # 3 to 7 clips (PREM, section 4.2)
        ("charades", "xml", 1.0): (2, 24),
        ("activitynet", "reloclnet", 2.0): (0, 128),
    }
    for (name, model, clip), (shortest, longest) in limits.items():
        found = settings_of_data_set(name, model, clip)["model"]
        assert (found["shortest_span"], found["longest_span"]) == (shortest, longest)
    assert settings_of_data_set("tvr", "xml", 1.5) == {}
    assert settings_of_data_set("didemo", "prem", 1.5)["sampling"] == {"negatives": 2}
    assert settings_of_data_set("charades", "spr-clip", 1.0) == {}
    with pytest.raises(InvalidValue, match="choose tvr, charades, didemo, activitynet"):
        settings_of_data_set("msr-vtt", "xml", 1.0)


def test_tvrs_rules_hold_for_sets_without_types_and_moments_of_no_length(
    tmp_path: Path, moviola: Callable[..., Any]
) -> None:
    """Sets without types are converted with an empty one; an answer of no length is wrong."""
    truth, answers = tmp_path / "truth.jsonl", tmp_path / "run.csv"
    annotation = {"vid_name": "a", "ts": [0, 4], "type": ""}
    truth.write_text("".join(json.dumps({"desc_id": n, **annotation}) + "\n" for n in (1, 2)))
    answers.write_text("query_id,video_id,start,end,score\n1,a,0,4,1\n2,a,0,0,1\n")
    found = moviola("evaluate", answers, truth, "--tvr", "VCMR", "--json")
    assert found.code == 0, found.err
    recall = json.loads(found.out)
    assert list(recall) == ["VCMR"]
    assert recall["VCMR"]["0.5-r1"] == 50
