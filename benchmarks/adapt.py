"""Whether stage 1 learns from a library's own subtitles, without labels.

    python benchmarks/adapt.py [--videos 60] [--seed 640014] [--work DIR] [--out adapt.json]

Films are generated with `moviola gridhouse --edited --subtitles`: a narrator has stories that the pictures
do not show, and robots speak of the thing that they go to. Each line is a pseudo query; what answers it lies
within some seconds of it, as in MIL-NCE (Miech et al. 2020), of all places where the same line is said. Stage
1 begins as the plain mean of a segment's frames and learns from the lines of four films in five; those of the
fifth say whether it became better, and the test queries of the world whether that is true (nDCG@20 of coarse
proposals by pictures). Encoders: the demo's, which knows these films, and ConSE, which
does not; lines: all, or those of the robots alone, which no library would know apart.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from moviola.features import FeatureFolder
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.library import export_features
from moviola.media import read_subtitles, write_video
from moviola.search import Library
from moviola.study.datasets import gridhouse
from moviola.study.datasets.readers import ranked_rows
from moviola.study.training.answering import answer
from moviola.study.training.experiment import train_model

NEAR = 4.0  # seconds before and after a line in which what it speaks of is to be seen
FIFTH = 5
MEASURES = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
SETTINGS = ("model.layers=2", "model.identity_start=true", "model.logit_scale=4.0", "loop.epochs=1000000")
STEPS = {"before": ("loop.steps=1", "loop.optimizer.lr=1e-12"), "adapted": ("loop.steps=400",)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=int, default=60)
    parser.add_argument("--seed", type=int, default=640_014)
    parser.add_argument("--encoders", nargs="+", default=["demo", "conse-lite1"])
    parser.add_argument("--work", type=Path, help="where films lie and stay; else a temporary folder")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        films = (options.work or Path(scratch)) / "films"
        gridhouse.build(
            films, videos=options.videos, seed=options.seed, workers=2, write_video=write_video,
            edited=True, subtitles=True,
        )  # fmt: skip
        said = {text for film in read_json(films / "edits.json").values() for *_, text in film["said"]}
        kinds = {"all lines": None, "what robots say": said}
        for encoder in options.encoders:
            folder = Path(scratch) / encoder
            features = features_of(films, encoder, folder)
            for lines, kept in kinds.items():
                for row in adapted(films, features, kept, folder / lines):
                    rows.append({"encoder": encoder, "lines": lines, **row})
                    print(json.dumps(rows[-1]), flush=True)
    options.out.write_text(json.dumps(rows, indent=1) + "\n")


def features_of(films: Path, encoder: str, folder: Path) -> FeatureFolder:
    """Features of all films, of their lines and of the test queries."""
    lines = {
        cue.text for path in sorted((films / "videos").glob("*.srt")) for cue in read_subtitles(path).cues
    }
    texts = [text for _, _, text, _ in ranked_rows(films / "test.json")]
    with Library(folder / "library", encoder=encoder, sentence_encoder="none") as library:
        library.index(films / "videos", ocr=False)
        return export_features(library.store, [*texts, *sorted(lines)], folder / "features")


def adapted(
    films: Path, features: FeatureFolder, kept: set[str] | None, folder: Path
) -> Iterator[dict[str, Any]]:
    """What is found before and after learning from some of the lines, None for all."""
    pairs = {name: folder / f"{name}.json" for name in ("train", "val")}
    names = sorted(features.durations)
    held_out = names[::FIFTH]
    learned = [name for name in names if name not in held_out]
    folder.mkdir()
    write_json(pairs["train"], pseudo_pairs(films, learned, kept))
    write_json(pairs["val"], pseudo_pairs(films, held_out, kept))
    for name, steps in STEPS.items():
        made = train_model(
            "spr-stage1", features, train=pairs["train"], val=pairs["val"], out=folder / name,
            train_videos=learned, val_videos=held_out, overrides=(*SETTINGS, *steps),
        )  # fmt: skip
        own = answer(made.folder, features, pairs["val"], videos=held_out, segments=100)
        true = answer(made.folder, features, films / "test.json", segments=100)
        yield {
            "stage 1": name,
            "lines to learn from": len(read_json(pairs["train"])),
            "held-out lines": {measure: round(own.figures[measure], 4) for measure in MEASURES},
            "test queries": {measure: round(true.figures[measure], 4) for measure in MEASURES},
        }


def pseudo_pairs(films: Path, names: Sequence[str], kept: set[str] | None) -> list[dict[str, Any]]:
    """Each line once, in the form of a pair file, with all places near which it is said."""
    corpus = read_json(films / "video_corpus.json")
    places: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name in names:
        for cue in read_subtitles(films / "videos" / f"{name}.srt").cues:
            if kept is None or cue.text in kept:
                span = [max(0.0, cue.start - NEAR), min(corpus[name], cue.end + NEAR)]
                places[cue.text].append({
                    "pair_id": len(places), "video_name": name, "timestamp": span, "duration": corpus[name],
                    "caption": cue.text, "similarity": 1.0, "relevance": 4,
                })  # fmt: skip
    return [
        {"query_id": number, "query": text, "type": "v", "relevant_moment": own}
        for number, (text, own) in enumerate(sorted(places.items()))
    ]


if __name__ == "__main__":
    main()
